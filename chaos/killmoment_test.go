package chaos

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// killable is a process that can be killed, and notes when.
type killable struct {
	*process
	killed time.Time
	dies   syscall.Signal
}

func (k *killable) Kill() error {
	k.killed = time.Now()
	k.calls = append(k.calls, "kill")
	k.end(k.dies)
	return nil
}

func newMoment(after time.Duration) (*KillAtMoment, *killable, chan struct{}) {
	p, load := &killable{process: newProcess(), dies: syscall.SIGKILL}, make(chan struct{})
	return &KillAtMoment{Process: p, Moment: Moment{load, after}}, p, load
}

// R7.10 R16.11: the moment counts from the load's first request, however long the
// generator takes to connect.
func TestKillAtMomentKillsSoLongAfterTheLoadBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, p, load := newMoment(700 * time.Millisecond)
		var work atomic.Int64
		work.Store(10)
		k.Others = func(context.Context) (int64, error) { return work.Load(), nil }
		began := time.Now()
		go func() { time.Sleep(3 * time.Second); close(load); time.Sleep(time.Second); work.Store(14) }()
		if err := k.Inject(t.Context()); err != nil {
			t.Fatal(err)
		}
		if at := p.killed.Sub(began); at != 3700*time.Millisecond {
			t.Errorf("killed after %v", at)
		}
		hits, detail, err := k.WaitUntilItBites(t.Context())
		if err != nil || !maps.Equal(hits, map[string]int64{"killed": 1, "others_worked": 4}) || !strings.Contains(detail, "700ms") {
			t.Errorf("hits %v, %q, %v", hits, detail, err)
		}
		if err := k.Heal(t.Context()); err != nil || !slices.Equal(p.calls, []string{"kill", "restart"}) {
			t.Errorf("heal: %v after %v", err, p.calls)
		}
	})
}

func TestKillAtMomentDoesNotBite(t *testing.T) {
	for rule, c := range map[string]struct {
		change func(*KillAtMoment, *killable)
		is     error
		says   string
	}{
		"while the others do nothing": {func(k *KillAtMoment, _ *killable) {
			k.Others = func(context.Context) (int64, error) { return 7, nil }
		}, context.DeadlineExceeded, ""},
		"if the others cannot be asked": {func(k *KillAtMoment, _ *killable) {
			k.Others = func(context.Context) (int64, error) { return 0, errBroken }
		}, errBroken, ""},
		"on a process that ended otherwise": {func(_ *KillAtMoment, p *killable) { p.dies = syscall.SIGSEGV }, nil, "ended by segmentation fault"},
		"on one that had ended before":      {func(_ *KillAtMoment, p *killable) { p.end(0) }, nil, "ended before it was killed"},
	} {
		t.Run(rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, p, load := newMoment(time.Second)
				c.change(k, p)
				close(load)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := k.Inject(ctx)
				if err == nil {
					_, _, err = k.WaitUntilItBites(ctx)
				}
				if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("error is %v, want %v and %q", err, c.is, c.says)
				}
			})
		})
	}
}

func TestAMomentThatNeverCameIsNothingToHeal(t *testing.T) {
	for _, begun := range []bool{false, true} {
		k, p, load := newMoment(time.Hour)
		if begun {
			close(load)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := k.Inject(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("inject: %v", err)
		}
		if err := k.Heal(t.Context()); err != nil || len(p.calls) > 0 {
			t.Errorf("heal: %v after %v", err, p.calls)
		}
	}
}
