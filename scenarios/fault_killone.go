package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hotsku/hotsku/chaos"
)

// KillOne kills one process of a kind, whichever the seed says, when the seed
// says, From to Until after the load began.
type KillOne struct {
	Kind        string
	From, Until time.Duration
	// Work is the metric that counts what the others of the kind do after it.
	Work string
}

func (k KillOne) name() string { return chaos.KillAtMomentName }

// Validate wants a span of time, and a way to see that the others worked.
func (k KillOne) Validate() error {
	switch {
	case k.From < 0 || k.Until <= k.From:
		return fmt.Errorf("a moment from %v to %v of the load: must be a span of it", k.From, k.Until)
	case k.Work == "":
		return errors.New("one of several is killed: say by which metric the others are seen to work on")
	}
	return nil
}

func (k KillOne) fits(s *Scenario) error {
	switch alike := s.processes(k.Kind); {
	case alike < 2:
		return fmt.Errorf("the fleet has %d processes of kind %q: must be two at least", alike, k.Kind)
	case k.Until > s.Load.Duration:
		return fmt.Errorf("a moment up to %v into a load of %v", k.Until, s.Load.Duration)
	}
	return nil
}

func (k KillOne) build(at site) (chaos.Fault, error) {
	alike := at.members(k.Kind)
	if len(alike) < 2 {
		return nil, fmt.Errorf("the fleet has %d processes of kind %q", len(alike), k.Kind)
	}
	victim := at.rng.IntN(len(alike))
	others := slices.Delete(slices.Clone(alike), victim, victim+1)
	return &chaos.KillAtMoment{Process: alike[victim], Load: at.load,
		After: k.From + time.Duration(at.rng.Int64N(int64(k.Until-k.From))),
		Others: func(ctx context.Context) (int64, error) {
			total := int64(0)
			for _, m := range others {
				metrics, err := m.Scrape(ctx)
				if err != nil {
					return 0, err
				}
				total += metrics.Count(k.Work)
			}
			return total, nil
		}}, nil
}
