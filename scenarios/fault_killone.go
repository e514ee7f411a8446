package scenarios

import (
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

func (k KillOne) name() string { return "kill@one-" + k.Kind }

// Validate wants a span of time, and a way to see that the others worked.
func (k KillOne) Validate() error {
	switch {
	case checkSpan(k.From, k.Until) != nil:
		return checkSpan(k.From, k.Until)
	case k.Work == "":
		return errors.New("one of several is killed: say by which metric the others are seen to work on")
	}
	return nil
}

func (k KillOne) fits(s *Scenario) error {
	switch alike := s.processes(k.Kind); {
	case alike < 2:
		return fmt.Errorf("the fleet has %d processes of kind %q: must be two at least", alike, k.Kind)
	}
	return s.lastsUntil(k.Until)
}

func (k KillOne) build(at site) (chaos.Fault, error) {
	alike := at.members(k.Kind)
	if len(alike) < 2 {
		return nil, fmt.Errorf("the fleet has %d processes of kind %q", len(alike), k.Kind)
	}
	victim := at.rng.IntN(len(alike))
	moment := at.moment(k.From, k.Until)
	return &chaos.KillAtMoment{Called: k.name(), Process: alike[victim], Moment: moment, Others: counter(k.Work, slices.Delete(slices.Clone(alike), victim, victim+1))}, nil
}
