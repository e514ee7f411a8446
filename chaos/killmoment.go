package chaos

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// Killable is a process that can be ended from outside.
type Killable interface {
	Name() string
	// Works is nil if it is ready.
	Works(ctx context.Context) error
	// Kill ends it by SIGKILL.
	Kill() error
	// Ended is closed when the process, as last started, has ended.
	Ended() <-chan struct{}
	// EndSignal is the signal that ended it, 0 if none did.
	EndSignal() syscall.Signal
	// Restart starts it again and returns when it is ready.
	Restart(ctx context.Context) error
}

// KillAtMoment ends a process by SIGKILL some time after the load began,
// wherever it is in its work, and starts it again.
type KillAtMoment struct {
	Called  string
	Process Killable
	Moment  Moment
	// Others counts what the other processes of its kind have done. Nobody
	// proves anything by surviving idly: the fault bites when they have done
	// more than at the kill. nil asks for nothing.
	Others Counter

	before int64 // what the others had done at the kill
}

// Name is Called.
func (k *KillAtMoment) Name() string { return k.Called }

// Target is the process.
func (k *KillAtMoment) Target() string { return k.Process.Name() }

// When is its moment.
func (k *KillAtMoment) When() time.Duration { return k.Moment.After }

// Setup has nothing to prepare.
func (k *KillAtMoment) Setup(context.Context) error { return nil }

// Works is nil if the process is ready.
func (k *KillAtMoment) Works(ctx context.Context) error { return k.Process.Works(ctx) }

// Inject waits for the moment and kills.
func (k *KillAtMoment) Inject(ctx context.Context) error {
	if err := k.Moment.Wait(ctx); err != nil {
		return err
	}
	select {
	case <-k.Process.Ended():
		return fmt.Errorf("%s ended before it was killed: see its log", k.Process.Name())
	default:
	}
	if err := k.Process.Kill(); err != nil {
		return err
	}
	if k.Others == nil {
		return nil
	}
	var err error
	k.before, err = k.Others(ctx)
	return err
}

// WaitUntilItBites waits for the process's end and for work of the others
// after it.
func (k *KillAtMoment) WaitUntilItBites(ctx context.Context) (map[string]int64, string, error) {
	select {
	case <-ctx.Done():
		return nil, "", ctx.Err()
	case <-k.Process.Ended():
	}
	if signal := k.Process.EndSignal(); signal != syscall.SIGKILL {
		return nil, "", fmt.Errorf("%s was killed, and ended by %v: see its log", k.Process.Name(), signal)
	}
	hits := map[string]int64{"killed": 1}
	if k.Others != nil {
		worked, err := k.Others.rise(ctx, k.before)
		if err != nil {
			return nil, "", err
		}
		hits["others_worked"] = worked
	}
	return hits, fmt.Sprintf("%v into the load", k.Moment.After), nil
}

// Heal starts the process again if it was killed.
func (k *KillAtMoment) Heal(ctx context.Context) error {
	select {
	case <-k.Process.Ended():
		return k.Process.Restart(ctx)
	default:
		return nil // the moment never came
	}
}

// WaitUntilHealed has nothing to wait for: Restart returns when it is ready.
func (k *KillAtMoment) WaitUntilHealed(context.Context) error { return nil }
