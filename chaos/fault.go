package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Fault is one thing that goes wrong. Its steps are called in order; each
// returns when its step is true, or with ctx.
type Fault interface {
	// Name is the actor of its events in the timeline.
	Name() string
	// Target is what it breaks.
	Target() string
	// Setup prepares it before the target works, and before any traffic.
	Setup(ctx context.Context) error
	// Inject breaks the target, or lets it break by itself.
	Inject(ctx context.Context) error
	// WaitUntilItBites returns what it hit.
	WaitUntilItBites(ctx context.Context) (hits map[string]int64, detail string, err error)
	// Heal takes the fault away.
	Heal(ctx context.Context) error
	// WaitUntilHealed returns when the target works again.
	WaitUntilHealed(ctx context.Context) error
}

// Limits bound a fault's steps.
type Limits struct {
	Bite time.Duration // from Inject until it bites
	Down time.Duration // from the bite to Heal: how long the target stays broken
	Heal time.Duration // from Heal until it works again
}

// ErrNoBite says that the fault did not bite in time.
var ErrNoBite = errors.New("the fault did not bite")

// Drive takes a fault that was set up through its life and notes each step.
// Whatever happens, it heals what it broke before it returns; a fault that
// did not bite is ErrNoBite.
func Drive(ctx context.Context, f Fault, limits Limits, t *Timeline) error {
	if err := f.Inject(ctx); err != nil {
		return fmt.Errorf("inject %s: %w", f.Name(), err)
	}
	t.Add(f.Name(), f.Target(), "injected", nil, "")
	bite, cancel := context.WithTimeout(ctx, limits.Bite)
	hits, detail, biteErr := f.WaitUntilItBites(bite)
	cancel()
	if biteErr == nil {
		t.Add(f.Name(), f.Target(), "bit", hits, detail)
		select {
		case <-ctx.Done():
		case <-time.After(limits.Down):
		}
	} else if ctx.Err() == nil && errors.Is(biteErr, context.DeadlineExceeded) {
		biteErr = fmt.Errorf("%s: %w within %v", f.Name(), ErrNoBite, limits.Bite)
		t.Add(f.Name(), f.Target(), "did not bite", nil, "")
	}
	heal, cancel := context.WithTimeout(context.WithoutCancel(ctx), limits.Heal)
	defer cancel()
	err := f.Heal(heal)
	if err == nil {
		t.Add(f.Name(), f.Target(), "healing", nil, "")
		err = f.WaitUntilHealed(heal)
	}
	if err != nil {
		return errors.Join(biteErr, fmt.Errorf("heal %s: %w", f.Name(), err))
	}
	t.Add(f.Name(), f.Target(), "healed", nil, "")
	return biteErr
}
