package chaos

import (
	"context"
	"fmt"
	"time"
)

// Breakable is a server that can be broken from outside and mended.
type Breakable interface {
	Name() string
	// Answers is nil if it answers its protocol now.
	Answers(ctx context.Context) error
	// Kill ends it by SIGKILL, Stop in order, Pause freezes it: each has taken
	// effect when it returns.
	Kill() error
	Stop(ctx context.Context) error
	Pause() error
	Resume() error
	// Start starts it again after its end, with its data, and returns when it
	// answers.
	Start(ctx context.Context) error
}

// Halt is how a server is broken.
type Halt string

// The ways.
const (
	HaltKill  Halt = "kill"  // SIGKILL
	HaltStop  Halt = "stop"  // a clean shutdown
	HaltPause Halt = "pause" // SIGSTOP: connections stay open, nothing is answered
)

// ServerDown breaks a server some time into the load, until it is healed. A
// restart is one that is healed at once.
type ServerDown struct {
	Server Breakable
	How    Halt
	Moment Moment
	// Felt counts what the product does only because the server is away. The
	// fault bites when it has risen: a server that nobody missed proves nothing.
	// nil asks for nothing.
	Felt Counter

	before int64 // Felt's, when it was broken
	struck bool
}

// Name is "HOW@SERVER", "stop@postgres".
func (d *ServerDown) Name() string { return string(d.How) + "@" + d.Server.Name() }

// Target is the server.
func (d *ServerDown) Target() string { return d.Server.Name() }

// When is its moment.
func (d *ServerDown) When() time.Duration { return d.Moment.After }

// Setup has nothing to prepare.
func (d *ServerDown) Setup(context.Context) error { return nil }

// Works is nil if the server answers.
func (d *ServerDown) Works(ctx context.Context) error { return d.Server.Answers(ctx) }

// Inject waits for the moment and breaks the server.
func (d *ServerDown) Inject(ctx context.Context) (err error) {
	if err := d.Moment.Wait(ctx); err != nil {
		return err
	}
	if d.Felt != nil {
		if d.before, err = d.Felt(ctx); err != nil {
			return err
		}
	}
	d.struck = true
	switch d.How {
	case HaltKill:
		return d.Server.Kill()
	case HaltStop:
		return d.Server.Stop(ctx)
	case HaltPause:
		return d.Server.Pause()
	}
	return fmt.Errorf("%q is no way to break a server", d.How)
}

// WaitUntilItBites makes sure that the server is away, and that the product
// felt it.
func (d *ServerDown) WaitUntilItBites(ctx context.Context) (map[string]int64, string, error) {
	if err := d.Server.Answers(ctx); err == nil {
		return nil, "", fmt.Errorf("%s still answers", d.Server.Name())
	} else if ctx.Err() != nil {
		return nil, "", ctx.Err()
	}
	hits := map[string]int64{"down": 1}
	if d.Felt != nil {
		felt, err := d.Felt.rise(ctx, d.before)
		if err != nil {
			return nil, "", err
		}
		hits["felt"] = felt
	}
	return hits, fmt.Sprintf("%v into the load", d.Moment.After), nil
}

// Heal starts the server again, or lets it go on.
func (d *ServerDown) Heal(ctx context.Context) error {
	switch {
	case !d.struck:
		return nil // the moment never came
	case d.How == HaltPause:
		return d.Server.Resume()
	}
	return d.Server.Start(ctx)
}

// WaitUntilHealed waits until the server answers.
func (d *ServerDown) WaitUntilHealed(ctx context.Context) error { return untilItWorks(ctx, d.Works) }
