package scenarios

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hotsku/hotsku/chaos"
	"github.com/hotsku/hotsku/stack"
)

// ServerDown breaks a server when the seed says, From to Until after the load
// began, until its limit Down; with Down 0 it is a restart.
type ServerDown struct {
	Server      string // a name of package stack
	How         chaos.Halt
	From, Until time.Duration
	// Felt is the metric by which processes of the kind By tell that they miss
	// the server.
	By, Felt string
}

func (d ServerDown) name() string { return string(d.How) + "@" + d.Server }

// Validate wants a server there is, and a way to see that it is missed.
func (d ServerDown) Validate() error {
	switch {
	case !slices.Contains([]string{stack.RedisName, stack.PostgresName, stack.BrokerName, stack.NameServerName}, d.Server):
		return fmt.Errorf("there is no server %q", d.Server)
	case !slices.Contains([]chaos.Halt{chaos.HaltKill, chaos.HaltStop, chaos.HaltPause}, d.How):
		return fmt.Errorf("%q is no way to break a server", d.How)
	case d.Felt == "" || d.By == "":
		return errors.New("a server goes away: say by which metric of whom it is missed")
	}
	return checkSpan(d.From, d.Until)
}

func (d ServerDown) fits(s *Scenario) error {
	if s.processes(d.By) == 0 {
		return fmt.Errorf("the fleet has no process of kind %q to miss it", d.By)
	}
	return s.lastsUntil(d.Until)
}

func (d ServerDown) build(at site) (chaos.Fault, error) {
	server, err := at.server(d.Server)
	if err != nil {
		return nil, err
	}
	return &chaos.ServerDown{Server: server, How: d.How, Moment: at.moment(d.From, d.Until), Felt: counter(d.Felt, at.members(d.By))}, nil
}
