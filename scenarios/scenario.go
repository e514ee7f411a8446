package scenarios

import (
	"errors"
	"fmt"
	"time"

	"github.com/hotsku/hotsku/loadgen/pace"
	"github.com/hotsku/hotsku/scenarios/fleet"
	"github.com/hotsku/hotsku/verify"
	"github.com/hotsku/hotsku/verify/rundir"
)

// Scenario is one experiment.
type Scenario struct {
	Name string
	Doc  string // one line: what goes wrong, and what must hold all the same
	Tags []string

	Load   Load
	Fleet  []fleet.Role
	Faults []Fault

	Invariants []string
	SLOs       []rundir.SLO
	Converge   time.Duration // from the last answer to quiescence, at most
}

// Load is what is offered, open loop, on how much stock.
type Load struct {
	RatePerS    int64
	Duration    time.Duration
	Stock       int64
	Connections int
	Depth       int // requests in flight a connection, at most
	Timeout     time.Duration
}

// Load bounds.
const (
	RateMax     = 10_000_000
	DurationMax = time.Hour
	StockMax    = 1_000_000
	// scheduledMax keeps a request's ordinal within the history's 32 bits.
	scheduledMax = 1 << 32
)

// Validate says in one line what is wrong, or nil.
func (l Load) Validate() error {
	switch {
	case l.RatePerS < 1 || l.RatePerS > RateMax:
		return fmt.Errorf("rate %d: must be 1 to %d requests per second", l.RatePerS, RateMax)
	case l.Duration < 100*time.Millisecond || l.Duration > DurationMax:
		return fmt.Errorf("duration %v: must be 100ms to %v", l.Duration, DurationMax)
	case l.Stock < 1 || l.Stock > StockMax:
		return fmt.Errorf("stock %d: must be 1 to %d units", l.Stock, StockMax)
	case l.Connections < 1 || l.Connections > 4096:
		return fmt.Errorf("connections %d: must be 1 to 4096", l.Connections)
	case l.Depth < 1 || l.Depth > 4096:
		return fmt.Errorf("depth %d: must be 1 to 4096 requests in flight a connection", l.Depth)
	case l.Timeout < 10*time.Millisecond || l.Timeout > time.Minute:
		return fmt.Errorf("timeout %v: must be 10ms to 1m", l.Timeout)
	}
	schedule, err := l.schedule()
	if err == nil && schedule.Total() >= scheduledMax {
		return fmt.Errorf("rate %d for %v schedules %d requests: must be below %d", l.RatePerS, l.Duration, schedule.Total(), int64(scheduledMax))
	}
	return err
}

func (l Load) schedule() (pace.Constant, error) {
	return pace.NewConstant(float64(l.RatePerS), l.Duration)
}

// Validate says what is wrong with a scenario's definition, so that nothing
// of it comes to light when servers run.
func (s *Scenario) Validate() error {
	if s.Name == "" || len(s.Fleet) == 0 || len(s.Invariants) == 0 || s.Converge <= 0 {
		return errors.New("a scenario needs a name, a fleet, invariants and a time to converge in")
	}
	err := s.Load.Validate()
	if err == nil {
		err = verify.CheckSLOs(s.SLOs)
	}
	if err == nil {
		err = s.checkFleet()
	}
	if err != nil {
		return fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	return nil
}

func (s *Scenario) checkFleet() error {
	kinds, armed := map[string]string{}, map[string]bool{}
	for _, role := range s.Fleet {
		if kinds[role.Name] != "" {
			return fmt.Errorf("two roles are named %q", role.Name)
		}
		kinds[role.Name] = role.Kind
	}
	for _, f := range s.Faults {
		if err := f.Validate(); err != nil {
			return fmt.Errorf("%s: %w", f.name(), err)
		}
		if err := f.fits(kinds, s.Load.Duration); err != nil {
			return fmt.Errorf("%s: %w", f.name(), err)
		}
		armed[f.Kill.Member] = true
	}
	serving, warm := 0, 0
	for name, kind := range kinds {
		if kind != "access" {
			continue
		}
		serving++
		if !armed[name] {
			warm++
		}
	}
	if warm == 0 {
		return errors.New("the fleet needs an access process that no fault waits in, to warm up")
	}
	if s.Load.Connections < serving {
		return fmt.Errorf("%d connections for %d access processes: must be one each at least", s.Load.Connections, serving)
	}
	return nil
}

// invariantsAll are what this build checks in every run.
func invariantsAll() []string {
	return []string{"I1", "I2", "I3", "I4", "I5", "I6", "I7", "I9", "I14", "I15"}
}

// defaultFleet is the product as one small machine runs them.
func defaultFleet(accesses int, chaosBuild bool) []fleet.Role {
	roles := []fleet.Role{
		{Name: "consumer", Kind: "consumer", Chaos: chaosBuild},
		{Name: "scanner", Kind: "scanner", Chaos: chaosBuild, Nice: 10},
		{Name: "outbox", Kind: "outbox", Chaos: chaosBuild, Nice: 15},
	}
	for i := range accesses {
		roles = append(roles, fleet.Role{Name: fmt.Sprintf("access-%d", i+1), Kind: "access", Chaos: chaosBuild})
	}
	return roles
}

// twoOfEach is the product with two processes a role, as it runs where no
// process may be missed. What is idle otherwise looks often enough to be in
// the midst of something whenever it dies.
func twoOfEach() []fleet.Role {
	var roles []fleet.Role
	for i := range 2 {
		name := func(kind string) string { return fmt.Sprintf("%s-%d", kind, i+1) }
		roles = append(roles,
			fleet.Role{Name: name("access"), Kind: "access", Chaos: true},
			fleet.Role{Name: name("consumer"), Kind: "consumer", Chaos: true, Nice: 5},
			fleet.Role{Name: name("scanner"), Kind: "scanner", Chaos: true, Nice: 10},
			fleet.Role{Name: name("outbox"), Kind: "outbox", Chaos: true, Nice: 10},
			fleet.Role{Name: name("orders"), Kind: "orders", Chaos: true, Nice: 5},
			fleet.Role{Name: name("reconcile"), Kind: "reconcile", Args: []string{"--reconcile-every", "250ms"}, Chaos: true, Nice: 15})
	}
	return roles
}
