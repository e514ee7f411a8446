package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hotsku/hotsku/chaos"
	"github.com/hotsku/hotsku/scenarios/fleet"
)

// ProcessDown breaks a process of the fleet when the seed says, From to Until
// after the load began, until its limit Down.
type ProcessDown struct {
	Member      string
	How         chaos.Halt
	From, Until time.Duration
	// Felt is the metric of what processes of the kind By do meanwhile.
	By, Felt string
}

func (d ProcessDown) name() string { return string(d.How) + "@" + d.Member }

// Validate wants a way to break it, and a way to see what comes of it.
func (d ProcessDown) Validate() error {
	switch {
	case !slices.Contains([]chaos.Halt{chaos.HaltKill, chaos.HaltStop, chaos.HaltPause}, d.How):
		return fmt.Errorf("%q is no way to break a process", d.How)
	case d.Felt == "" || d.By == "":
		return errors.New("a process goes away: say by which metric of whom that is seen")
	}
	return checkSpan(d.From, d.Until)
}

func (d ProcessDown) fits(s *Scenario) error {
	if s.processes(d.By) == 0 {
		return fmt.Errorf("the fleet has no process of kind %q to see it by", d.By)
	}
	return errors.Join(s.hasProcess(d.Member), s.lastsUntil(d.Until))
}

func (d ProcessDown) build(at site) (chaos.Fault, error) {
	m, err := at.member(d.Member)
	if err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(at.members(d.By), func(other *fleet.Member) bool { return other == m })
	return &chaos.ServerDown{Server: process{m}, How: d.How, Moment: at.moment(d.From, d.Until), Felt: counter(d.Felt, others)}, nil
}

// process is a member as something that can be broken.
type process struct{ *fleet.Member }

// Answers is nil if it says that it is ready.
func (p process) Answers(ctx context.Context) error { return p.Works(ctx) }

// Start starts it again.
func (p process) Start(ctx context.Context) error { return p.Restart(ctx) }
