package scenarios

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hotsku/hotsku/chaos"
	"github.com/hotsku/hotsku/chaos/proxy"
	"github.com/hotsku/hotsku/scenarios/fleet"
	"github.com/hotsku/hotsku/stack"
	"github.com/hotsku/hotsku/verify/rundir"
)

// Fault is a fault of a scenario, before the fleet exists.
type Fault struct {
	Kind   Kind
	Limits chaos.Limits
	Must   []rundir.MustHit // Fault is filled in
	// Closes says what the fault takes from the sale, and from when on the sale
	// must have closed for it (I11); nil: nothing. Fault is filled in.
	Closes *rundir.Outage
}

// Kind is one way in which something goes wrong, with what a row of the table
// says about it. Each is a file of its own.
type Kind interface {
	// name is that of the chaos.Fault it builds, by which plan and timeline
	// know it; one of its own for each fault of a scenario.
	name() string
	// Validate says what is wrong with the value by itself.
	Validate() error
	// fits says what a scenario lacks of what the fault breaks.
	fits(s *Scenario) error
	// build makes the fault of what runs now.
	build(at site) (chaos.Fault, error)
}

// site is what a fault is built into: a fleet that works and was warmed up,
// before the load.
type site struct {
	fleet   *fleet.Fleet
	servers []stack.Server
	dials   stack.Addresses // what the product dials: a server, or who stands before it
	direct  stack.Addresses // where the servers themselves are
	ways    map[Way]*proxy.Proxy
	plan    *rundir.Plan
	hitFile string          // where fault points are noted
	rng     *rand.Rand      // of this fault alone
	load    <-chan struct{} // closed when the load begins
}

// member finds a process of the fleet by its name.
func (at site) member(name string) (*fleet.Member, error) {
	for _, m := range at.fleet.Members() {
		if m.Name() == name {
			return m, nil
		}
	}
	return nil, fmt.Errorf("the fleet has no process %q", name)
}

// members are those of a kind, by name.
func (at site) members(kind string) []*fleet.Member {
	var alike []*fleet.Member
	for _, m := range at.fleet.Members() {
		if m.Kind() == kind {
			alike = append(alike, m)
		}
	}
	return alike
}

// moment draws one of the load.
func (at site) moment(from, until time.Duration) chaos.Moment {
	return chaos.Moment{Load: at.load, After: from + time.Duration(at.rng.Int64N(int64(until-from)))}
}

// checkSpan says what is wrong with a span in which a moment is drawn.
func checkSpan(from, until time.Duration) error {
	if from < 0 || until <= from {
		return fmt.Errorf("a moment from %v to %v of the load: must be a span of it", from, until)
	}
	return nil
}

// lastsUntil says whether the load lasts that long.
func (s *Scenario) lastsUntil(until time.Duration) error {
	if until > s.Load.Duration {
		return fmt.Errorf("a moment up to %v into a load of %v", until, s.Load.Duration)
	}
	return nil
}

// counter adds up what processes count under a name from its first call on. A
// process that cannot be asked just now, another fault's victim, counts from
// when it can.
func counter(name string, members []*fleet.Member) chaos.Counter {
	type seen struct {
		starts int
		count  int64
	}
	last, total := map[*fleet.Member]seen{}, int64(0)
	return func(ctx context.Context) (int64, error) {
		for _, m := range members {
			starts := m.Starts()
			metrics, err := m.Scrape(ctx)
			if err != nil {
				continue
			}
			now := seen{starts, metrics.Count(name)}
			switch before, known := last[m]; {
			case known && before.starts == starts:
				total += now.count - before.count
			case known: // another process, which counts from 0
				total += now.count
			}
			last[m] = now
		}
		return total, ctx.Err()
	}
}

// server finds a server of the stack by its name.
func (at site) server(name string) (stack.Server, error) {
	for _, s := range at.servers {
		if s.Name() == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("the stack has no server %q", name)
}

// Validate says what is wrong with a fault's definition.
func (f Fault) Validate() error {
	if f.Kind == nil {
		return errors.New("a fault is of a kind")
	}
	if err := f.Kind.Validate(); err != nil {
		return err
	}
	if len(f.Must) == 0 {
		return errors.New("a fault must say what it must hit, or its run proves nothing")
	}
	for _, must := range f.Must {
		if must.Hit == "" || must.AtLeast < 1 {
			return fmt.Errorf("must hit %q at least %d times: needs a name and a positive number", must.Hit, must.AtLeast)
		}
	}
	return f.Limits.Validate()
}
