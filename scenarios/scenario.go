package scenarios

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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
	Sale   Sale
	Fleet  []fleet.Role
	Faults []Fault
	// Draw, if set, makes the faults from the run's seed, whatever Faults says.
	Draw func(rng *rand.Rand) []Fault
	// Must is what the load itself must hit, where no fault does: hits that
	// package verify counts.
	Must []rundir.MustHit

	Invariants    []string
	LossContracts []string // declared losses its run may use (verify)
	SLOs          []rundir.SLO
	Converge      time.Duration // from the last answer to quiescence, at most
}

// Sale is what differs from a plain sale; its zero value is one.
type Sale struct {
	Tokens int64         // inventory tokens, where they are fewer than the stock; 0: as many
	Resell bool          // a cancelled or expired order's unit is sold again
	Length time.Duration // from its start, shortly before the warm-up; 0: longer than any load
}

// Validate says in one line what is wrong with a sale of a load's stock, or
// nil.
func (s Sale) Validate(stock int64) error {
	switch {
	case s.Tokens < 0 || s.Tokens > stock:
		return fmt.Errorf("%d tokens for a stock of %d: must be at most as many", s.Tokens, stock)
	case s.Length < 0:
		return fmt.Errorf("a sale of %v", s.Length)
	}
	return nil
}

// tokens are how many inventory tokens are made for a stock.
func (s Sale) tokens(stock int64) int64 {
	if s.Tokens > 0 {
		return s.Tokens
	}
	return stock
}

func (s Sale) length() time.Duration {
	if s.Length > 0 {
		return s.Length
	}
	return saleLength
}

// Load is what is offered, open loop, on how much stock.
type Load struct {
	RatePerS        int64
	Duration        time.Duration
	Stock           int64
	Connections     int
	Depth           int // requests in flight a connection, at most
	Timeout         time.Duration
	RequestsPerUser uint32 // in a row, each under an id of its own; 0: as in a plain sale
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

// drawSeed keeps the drawing of faults apart from what each draws itself.
const drawSeed = 1 << 32

// Drawn is the scenario with the faults that a seed draws.
func (s Scenario) Drawn(seed uint64) Scenario {
	if s.Draw != nil {
		s.Faults = s.Draw(rand.New(rand.NewPCG(seed, drawSeed)))
	}
	return s
}

// Validate says what is wrong with a scenario's definition, so that nothing
// of it comes to light when servers run.
func (s *Scenario) Validate() error {
	if s.Name == "" || len(s.Fleet) == 0 || len(s.Invariants) == 0 || s.Converge <= 0 {
		return errors.New("a scenario needs a name, a fleet, invariants and a time to converge in")
	}
	err := s.Load.Validate()
	if err == nil {
		err = s.Sale.Validate(s.Load.Stock)
	}
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
	names := map[string]bool{}
	for _, role := range s.Fleet {
		if names[role.Name] {
			return fmt.Errorf("two roles are named %q", role.Name)
		}
		names[role.Name] = true
	}
	faults := map[string]bool{}
	for _, f := range s.Faults {
		if err := f.Validate(); err != nil {
			return fmt.Errorf("a fault: %w", err)
		}
		name := f.Kind.name()
		if faults[name] {
			return fmt.Errorf("two faults are named %s: the timeline could not tell them apart", name)
		}
		faults[name] = true
		if err := f.Kind.fits(s); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	serving := s.processes("access")
	if serving == 0 {
		return errors.New("the fleet needs an access process")
	}
	if s.Load.Connections < serving {
		return fmt.Errorf("%d connections for %d access processes: must be one each at least", s.Load.Connections, serving)
	}
	return nil
}

// processes is how many of the fleet are of a kind.
func (s *Scenario) processes(kind string) int {
	n := 0
	for _, role := range s.Fleet {
		if role.Kind == kind {
			n++
		}
	}
	return n
}

// hasProcess is an error if no process of the fleet has the name.
func (s *Scenario) hasProcess(name string) error {
	if !slices.ContainsFunc(s.Fleet, func(r fleet.Role) bool { return r.Name == name }) {
		return fmt.Errorf("the fleet has no process %q", name)
	}
	return nil
}

// invariantsAll are what this build checks in every run.
func invariantsAll() []string {
	return []string{"I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I12", "I13", "I14", "I15"}
}
