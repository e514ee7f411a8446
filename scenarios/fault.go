package scenarios

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hotsku/hotsku/chaos"
	"github.com/hotsku/hotsku/scenarios/fleet"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// Fault is a fault of a scenario, before the fleet exists: one of its kinds
// is filled in.
type Fault struct {
	Kill    KillPoint // a process at a counted fault point
	KillOne KillOne   // one of several alike, at a seeded moment
	Limits  chaos.Limits
	Must    []rundir.MustHit // Fault is filled in
}

// KillPoint kills Member at the At-th hit of Point.
type KillPoint struct {
	Member string
	Point  seckill.FaultPoint
	At     int64
}

// KillOne kills one process of a kind, whichever the seed says, when the seed
// says, From to Until after the load began.
type KillOne struct {
	Kind        string
	From, Until time.Duration
	// Work is the metric that counts what the others of the kind do after it.
	Work string
}

// name is that of the chaos.Fault it builds.
func (f Fault) name() string {
	if f.KillOne != (KillOne{}) {
		return chaos.KillAtMomentName
	}
	return fmt.Sprintf("kill@%s", f.Kill.Point)
}

// Validate says what is wrong with a fault's definition.
func (f Fault) Validate() error {
	switch point, one := f.Kill != (KillPoint{}), f.KillOne; {
	case point == (one != KillOne{}):
		return errors.New("a fault is of one kind")
	case point && !slices.Contains(seckill.FaultPoints(), f.Kill.Point):
		return fmt.Errorf("fault point %q is not known", f.Kill.Point)
	case point && f.Kill.At < 1:
		return fmt.Errorf("hit %d of the point: counted from 1", f.Kill.At)
	case !point && (one.From < 0 || one.Until <= one.From):
		return fmt.Errorf("a moment from %v to %v of the load: must be a span of it", one.From, one.Until)
	case !point && one.Work == "":
		return errors.New("one of several is killed: say by which metric the others are seen to work on")
	case len(f.Must) == 0:
		return errors.New("a fault must say what it must hit, or its run proves nothing")
	}
	for _, must := range f.Must {
		if must.Hit == "" || must.AtLeast < 1 {
			return fmt.Errorf("must hit %q at least %d times: needs a name and a positive number", must.Hit, must.AtLeast)
		}
	}
	return f.Limits.Validate()
}

// fits says whether a fleet, given as the kind of each process, has what the
// fault breaks while the load lasts.
func (f Fault) fits(kinds map[string]string, load time.Duration) error {
	if f.Kill != (KillPoint{}) {
		if kinds[f.Kill.Member] == "" {
			return fmt.Errorf("the fleet has no process %q", f.Kill.Member)
		}
		return nil
	}
	alike := 0
	for _, kind := range kinds {
		if kind == f.KillOne.Kind {
			alike++
		}
	}
	switch {
	case alike < 2:
		return fmt.Errorf("the fleet has %d processes of kind %q: must be two at least", alike, f.KillOne.Kind)
	case f.KillOne.Until > load:
		return fmt.Errorf("a moment up to %v into a load of %v", f.KillOne.Until, load)
	}
	return nil
}

// site is what a fault is built into.
type site struct {
	members []*fleet.Member
	hitFile string          // where fault points are noted
	rng     *rand.Rand      // of this fault alone
	load    <-chan struct{} // closed when the load begins
}

// build makes the fault for a fleet's members.
func (f Fault) build(at site) (chaos.Fault, error) {
	if f.KillOne != (KillOne{}) {
		return f.KillOne.build(at)
	}
	for _, m := range at.members {
		if m.Name() == f.Kill.Member {
			return &chaos.KillAtPoint{Process: m, Point: f.Kill.Point, At: f.Kill.At, HitFile: at.hitFile}, nil
		}
	}
	return nil, fmt.Errorf("the fleet has no process %q", f.Kill.Member)
}

func (k KillOne) build(at site) (chaos.Fault, error) {
	var alike []*fleet.Member
	for _, m := range at.members {
		if m.Kind() == k.Kind {
			alike = append(alike, m)
		}
	}
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
