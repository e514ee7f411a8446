package valve_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/valve"
)

// pending is a PendingStore by SKU id.
type pending struct {
	counts map[int64]int64
	ages   map[int64]time.Duration
	err    error
}

func (p pending) Activities(context.Context) (skus []reservation.SKU, err error) {
	for id := range p.counts {
		skus = append(skus, reservation.SKU{ActivityID: 1, SKUID: id})
	}
	return skus, p.err
}

func (p pending) PendingCounts(_ context.Context, skus []reservation.SKU) (counts []int64, err error) {
	for _, s := range skus {
		counts = append(counts, p.counts[s.SKUID])
	}
	return counts, p.err
}

func (p pending) OldestPending(_ context.Context, _, sku int64) (time.Duration, error) {
	return p.ages[sku], nil
}

// R12.2: the oldest and the number are over all SKUs.
func TestPendingSource(t *testing.T) {
	count := new(atomic.Int64)
	p := pending{counts: map[int64]int64{1: 2, 2: 0, 3: 5}, ages: map[int64]time.Duration{1: 3 * time.Second, 2: time.Hour, 3: 2 * time.Second}}
	got, err := valve.PendingSource(p, count).Measure(t.Context())
	if err != nil || got[valve.SignalOldestPending] != 3000 || count.Load() != 7 {
		t.Errorf("measured %v, %v, count %d", got, err, count.Load())
	}
	p.err = reservation.ErrUnreadable // of another SKU: one spoilt key closes no valve
	if got, err := valve.PendingSource(p, count).Measure(t.Context()); err != nil || got[valve.SignalOldestPending] != 3000 {
		t.Errorf("measured %v, %v beside a spoilt SKU", got, err)
	}
	p.err = errors.New("down")
	if _, err := valve.PendingSource(p, count).Measure(t.Context()); err == nil {
		t.Error("no error")
	}
}

// R7.11.5: the database is down since its last answer, and a check that hangs
// is given up in time to say so.
func TestDatabaseSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := "up"
		s := valve.DatabaseSource(func(ctx context.Context) error {
			switch state {
			case "refuses":
				return errors.New("refused")
			case "hangs":
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		measure := func() time.Duration {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			got, err := s.Measure(ctx)
			if err != nil || ctx.Err() != nil {
				t.Fatalf("%v; context %v: the figure could not be posted", err, ctx.Err())
			}
			return time.Duration(got[valve.SignalDatabaseDown]) * time.Millisecond
		}
		if d := measure(); d != 0 {
			t.Errorf("up: %v", d)
		}
		state = "refuses"
		time.Sleep(3 * time.Second)
		if d := measure(); d != 3*time.Second {
			t.Errorf("refusing for 3 s: %v", d)
		}
		state = "hangs"
		if d := measure(); d != 3500*time.Millisecond {
			t.Errorf("and hanging for half a second: %v", d)
		}
		state = "up"
		if d := measure(); d != 0 {
			t.Errorf("up again: %v", d)
		}
	})
}

func TestBacklogSource(t *testing.T) {
	var err error
	s := valve.BacklogSource(func(context.Context) (int64, time.Duration, error) { return 7, 3 * time.Second, err })
	got, merr := s.Measure(t.Context())
	if merr != nil || got[valve.SignalLag] != 7 || got[valve.SignalOldestMessage] != 3000 {
		t.Errorf("measured %v, %v", got, merr)
	}
	err = errors.New("down")
	if _, merr := s.Measure(t.Context()); merr == nil {
		t.Error("no error")
	}
}
