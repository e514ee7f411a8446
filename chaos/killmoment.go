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
	Process Killable
	Load    <-chan struct{} // closed when the load begins
	After   time.Duration   // from then
	// Others counts what the other processes of its kind have done. Nobody
	// proves anything by surviving idly: the fault bites when they have done
	// more than at the kill. nil asks for nothing.
	Others func(ctx context.Context) (int64, error)

	before int64 // what the others had done at the kill
}

// KillAtMomentName is the name of every KillAtMoment.
const KillAtMomentName = "kill@moment"

// Name is KillAtMomentName.
func (k *KillAtMoment) Name() string { return KillAtMomentName }

// Target is the process.
func (k *KillAtMoment) Target() string { return k.Process.Name() }

// Setup has nothing to prepare.
func (k *KillAtMoment) Setup(context.Context) error { return nil }

// Works is nil if the process is ready.
func (k *KillAtMoment) Works(ctx context.Context) error { return k.Process.Works(ctx) }

// Inject waits for the moment and kills.
func (k *KillAtMoment) Inject(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-k.Load:
	}
	moment := time.NewTimer(k.After)
	defer moment.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-k.Process.Ended():
		return fmt.Errorf("%s ended before it was killed: see its log", k.Process.Name())
	case <-moment.C:
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

// lookEvery is the time between two looks at what the others do.
const lookEvery = 50 * time.Millisecond

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
	detail := fmt.Sprintf("%v into the load", k.After)
	if k.Others == nil {
		return hits, detail, nil
	}
	for tick := time.Tick(lookEvery); ; {
		done, err := k.Others(ctx)
		if err != nil {
			return nil, "", err
		}
		if done > k.before {
			hits["others_worked"] = done - k.before
			return hits, detail, nil
		}
		select {
		case <-ctx.Done():
			return nil, "", ctx.Err()
		case <-tick:
		}
	}
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
