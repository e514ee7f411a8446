package scenarios

import (
	"errors"
	"fmt"
	"time"

	"github.com/hotsku/hotsku/chaos"
)

// WayBlocked troubles a way when the seed says, From to Until after the load
// began, until its limit Down.
type WayBlocked struct {
	Way         Way
	Trouble     chaos.Trouble
	From, Until time.Duration
	// Times is how often the trouble comes, all but the last for For and as
	// long apart. 0: once.
	Times int
	For   time.Duration
	// Felt is the metric by which processes of the kind By tell that they are
	// troubled.
	By, Felt string
}

func (b WayBlocked) name() string { return chaos.WayBlockedName(b.Trouble, b.Way.name()) }

func (b WayBlocked) way() Way { return b.Way }

// Validate wants trouble, and a way to see that it is felt.
func (b WayBlocked) Validate() error {
	switch {
	case b.Felt == "" || b.By == "":
		return errors.New("a way is blocked: say by which metric of whom that is felt")
	case b.Times < 0 || b.Times > 1 && b.For <= 0:
		return fmt.Errorf("trouble %d times for %v", b.Times, b.For)
	}
	return errors.Join(b.Trouble.Validate(), b.Way.Validate(), checkSpan(b.From, b.Until))
}

func (b WayBlocked) fits(s *Scenario) error {
	if s.processes(b.By) == 0 {
		return fmt.Errorf("the fleet has no process of kind %q to feel it", b.By)
	}
	return errors.Join(b.Way.fits(s), s.lastsUntil(b.Until))
}

func (b WayBlocked) build(at site) (chaos.Fault, error) {
	p, err := at.way(b.Way)
	if err != nil {
		return nil, err
	}
	return &chaos.WayBlocked{Way: p, Trouble: b.Trouble, Moment: at.moment(b.From, b.Until), Times: max(1, b.Times), For: b.For,
		Felt: counter(b.Felt, at.members(b.By))}, nil
}
