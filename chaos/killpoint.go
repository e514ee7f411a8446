package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/hotsku/hotsku/system/seckill"
)

// Armable is a process of a chaos build, whose fault points are armed as it
// starts.
type Armable interface {
	Name() string
	// Arm has the next start armed with spec; hits are noted in file.
	Arm(spec, file string)
	// Ended is closed when the process, as last started, has ended.
	Ended() <-chan struct{}
	// EndSignal is the signal that ended it, 0 if none did.
	EndSignal() syscall.Signal
	// Works is nil if it is ready.
	Works(ctx context.Context) error
	// Stop ends it in order; an error says that it had to be killed. It is no
	// error if it has ended.
	Stop(ctx context.Context) error
	// Restart starts it again, armed if Arm was called since, and returns when
	// it is ready.
	Restart(ctx context.Context) error
}

// KillAtPoint has a process end itself by SIGKILL when it reaches a fault
// point for the n-th time, and starts it again.
type KillAtPoint struct {
	Process Armable
	Point   seckill.FaultPoint
	At      int64 // counted from 1
	HitFile string
	// Aside are frozen from Inject until it bites: nobody else may do the work
	// at which the process is to die.
	Aside []Freezable
}

// Freezable is a process that can be frozen from outside.
type Freezable interface {
	Name() string
	Pause() error
	// Resume lets it go on; it is no error if it was not frozen.
	Resume() error
}

// Name is "kill@POINT".
func (k *KillAtPoint) Name() string { return "kill@" + string(k.Point) }

// Target is the process.
func (k *KillAtPoint) Target() string { return k.Process.Name() }

// Setup starts the process again, armed: what it did before does not count.
func (k *KillAtPoint) Setup(ctx context.Context) error {
	if err := k.Process.Stop(ctx); err != nil {
		return err
	}
	k.Process.Arm(fmt.Sprintf("%s=kill@%d", k.Point, k.At), k.HitFile)
	return k.Process.Restart(ctx)
}

// Works is nil if the process is ready.
func (k *KillAtPoint) Works(ctx context.Context) error { return k.Process.Works(ctx) }

// Inject freezes those that stand aside. The armed process meets its point by
// itself.
func (k *KillAtPoint) Inject(context.Context) error {
	for _, p := range k.Aside {
		if err := p.Pause(); err != nil {
			return fmt.Errorf("set %s aside: %w", p.Name(), err)
		}
	}
	return nil
}

func (k *KillAtPoint) resume() error {
	var errs []error
	for _, p := range k.Aside {
		errs = append(errs, p.Resume())
	}
	return errors.Join(errs...)
}

// WaitUntilItBites waits for the process's end and reads what it noted just
// before. An end by other means than its point is an error: something else
// is wrong.
func (k *KillAtPoint) WaitUntilItBites(ctx context.Context) (map[string]int64, string, error) {
	select {
	case <-ctx.Done():
		return nil, "", ctx.Err()
	case <-k.Process.Ended():
	}
	if err := k.resume(); err != nil {
		return nil, "", err
	}
	hits, err := readHits(k.HitFile)
	if err != nil {
		return nil, "", err
	}
	killed := int64(0)
	var last seckill.FaultHit
	for _, h := range hits {
		if h.Point == k.Point && h.Action == "kill" {
			killed, last = killed+1, h
		}
	}
	if signal := k.Process.EndSignal(); killed == 0 || signal != syscall.SIGKILL {
		how := "by itself"
		if signal != 0 {
			how = "by signal " + signal.String()
		}
		return nil, "", fmt.Errorf("%s ended %s, not at %s: see its log", k.Process.Name(), how, k.Point)
	}
	return map[string]int64{"killed": killed}, fmt.Sprintf("pid %d at hit %d of the point, %s", last.PID, last.Count, last.At), nil
}

// Heal starts the process again, unarmed. One that never reached its point is
// ended for that: armed, it could still die when nobody waits for it.
func (k *KillAtPoint) Heal(ctx context.Context) error {
	return errors.Join(k.resume(), k.Process.Stop(ctx), k.Process.Restart(ctx))
}

// WaitUntilHealed has nothing to wait for: Restart returns when it is ready.
func (k *KillAtPoint) WaitUntilHealed(context.Context) error { return nil }

// readHits reads a hit file. A line that the kill cut short counts for
// nothing; no file means no hit.
func readHits(path string) ([]seckill.FaultHit, error) {
	body, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read hits: %w", err)
	}
	var hits []seckill.FaultHit
	for line := range bytes.Lines(body) {
		var h seckill.FaultHit
		if !bytes.HasSuffix(line, []byte("\n")) || json.Unmarshal(line, &h) != nil {
			continue
		}
		hits = append(hits, h)
	}
	return hits, nil
}
