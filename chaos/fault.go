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
	// Setup prepares it when the target works, before the load.
	Setup(ctx context.Context) error
	// Works is nil if the target works, as far as one can ask it. A fault of
	// what is broken already would prove nothing.
	Works(ctx context.Context) error
	// Inject breaks the target, or lets it break by itself.
	Inject(ctx context.Context) error
	// WaitUntilItBites returns what it hit.
	WaitUntilItBites(ctx context.Context) (hits map[string]int64, detail string, err error)
	// Heal takes the fault away, so that it cannot bite any more. It is called
	// after an Inject that failed, too.
	Heal(ctx context.Context) error
	// WaitUntilHealed returns when the target works again; then Works says so,
	// too.
	WaitUntilHealed(ctx context.Context) error
}

// Limits bound a fault's steps.
type Limits struct {
	Bite time.Duration // from Inject until it bites
	Down time.Duration // from the bite to Heal: how long the target stays broken
	Heal time.Duration // from Heal until it works again
}

// Validate says in one line what is wrong, or nil.
func (l Limits) Validate() error {
	if l.Bite <= 0 || l.Down < 0 || l.Heal <= 0 {
		return fmt.Errorf("limits of a fault: bite in %v, down for %v, heal in %v: must be positive, down at least 0s", l.Bite, l.Down, l.Heal)
	}
	return nil
}

// Errors of Drive, for errors.Is; it may return both at once.
var (
	// ErrNoBite says that the fault did not bite in time.
	ErrNoBite = errors.New("the fault did not bite")
	// ErrUnfit says that the target did not work before the fault.
	ErrUnfit = errors.New("the target did not work before the fault")
	// ErrNotHealed says that the target does not work again.
	ErrNotHealed = errors.New("the fault was not healed")
)

// Drive takes a fault that was set up through its life and notes each step.
// A target that does not work is left alone. Whatever happens, also when ctx
// ends, it heals what it broke before it returns. One that was cut short by ctx
// is ctx's error.
func Drive(ctx context.Context, f Fault, limits Limits, t *Timeline) error {
	if err := works(ctx, f); err != nil {
		t.Add(f.Name(), f.Target(), "did not work before", nil, err.Error())
		return fmt.Errorf("%s: %w: %w", f.Name(), ErrUnfit, err)
	}
	err := strike(ctx, f, limits, t)
	if err != nil && !errors.Is(err, ErrNoBite) {
		t.Add(f.Name(), f.Target(), "failed", nil, err.Error())
	}
	healing, cancel := context.WithTimeout(context.WithoutCancel(ctx), limits.Heal)
	defer cancel()
	if herr := heal(healing, f, t); herr != nil {
		t.Add(f.Name(), f.Target(), "not healed", nil, herr.Error())
		err = errors.Join(err, fmt.Errorf("%s: %w: %w", f.Name(), ErrNotHealed, herr))
	}
	return err
}

// strike breaks the target and keeps it broken for limits.Down.
func strike(ctx context.Context, f Fault, limits Limits, t *Timeline) error {
	if err := f.Inject(ctx); err != nil {
		return fmt.Errorf("inject %s: %w", f.Name(), err)
	}
	t.Add(f.Name(), f.Target(), "injected", nil, "")
	bite, cancel := context.WithTimeout(ctx, limits.Bite)
	defer cancel()
	hits, detail, err := f.WaitUntilItBites(bite)
	if err != nil {
		if ctx.Err() == nil && bite.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
			t.Add(f.Name(), f.Target(), "did not bite", nil, "")
			return fmt.Errorf("%s: %w within %v", f.Name(), ErrNoBite, limits.Bite)
		}
		return fmt.Errorf("wait for %s: %w", f.Name(), err)
	}
	t.Add(f.Name(), f.Target(), "bit", hits, detail)
	if err := pause(ctx, limits.Down); err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	return nil
}

func heal(ctx context.Context, f Fault, t *Timeline) error {
	t.Add(f.Name(), f.Target(), "healing", nil, "") // before it: until here the fault was whole
	if err := f.Heal(ctx); err != nil {
		return err
	}
	if err := f.WaitUntilHealed(ctx); err != nil {
		return err
	}
	if err := works(ctx, f); err != nil {
		return err
	}
	t.Add(f.Name(), f.Target(), "healed", nil, "")
	return nil
}

// worksTimeout bounds one question to a target: one that is frozen answers
// nothing.
const worksTimeout = 5 * time.Second

func works(ctx context.Context, f Fault) error {
	ctx, cancel := context.WithTimeout(ctx, worksTimeout)
	defer cancel()
	return f.Works(ctx)
}
