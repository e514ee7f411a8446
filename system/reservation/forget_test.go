package reservation_test

import (
	"slices"
	"testing"
	"time"

	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

func (b *bundle) listed(t *testing.T) bool {
	t.Helper()
	skus, err := b.Activities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(skus, reservation.SKU{ActivityID: b.activity, SKUID: sku})
}

// forget asks to forget the bundle's SKU; it must be listed no more if it
// was, and as before if not.
func (b *bundle) forget(t *testing.T, after time.Duration) bool {
	t.Helper()
	forgotten, err := b.Forget(t.Context(), []reservation.SKU{{ActivityID: b.activity, SKUID: sku}}, after)
	if err != nil {
		t.Fatal(err)
	}
	if listed := b.listed(t); listed != (len(forgotten) == 0) {
		t.Errorf("forgotten %v, listed %t", forgotten, listed)
	}
	return len(forgotten) > 0
}

// R7.7.1: the index shrinks by the sales that ended long enough ago with
// nothing pending, and by no other.
func TestASaleThatIsOverIsForgotten(t *testing.T) {
	ended := func(ago time.Duration) func(*reservation.Config, *reservation.Activity) {
		return func(_ *reservation.Config, a *reservation.Activity) { a.EndsAt = time.Now().Add(-ago) }
	}
	if setup(t, 1).forget(t, 0) {
		t.Error("forgotten while it runs")
	}
	b := setup(t, 1, ended(time.Minute))
	if b.forget(t, time.Hour) {
		t.Error("forgotten an hour after its end, a minute after it")
	}
	if !b.forget(t, 30*time.Second) {
		t.Error("not forgotten")
	}

	closed := setup(t, 1)
	c := closed.candidate(1, "r-1")
	closed.reserve(t, c)
	for range 2 { // closing again does not begin the time anew
		if err := closed.SetStatus(t.Context(), closed.activity, sku, seckill.ActivityClosed); err != nil {
			t.Fatal(err)
		}
	}
	if closed.forget(t, 0) {
		t.Error("forgotten with a reservation pending")
	}
	if err := closed.MarkSent(t.Context(), closed.activity, sku, []string{c.ReservationID}); err != nil {
		t.Fatal(err)
	}
	if closed.forget(t, time.Hour) {
		t.Error("forgotten an hour after it was closed, at once")
	}
	if err := closed.SetStatus(t.Context(), closed.activity, sku, seckill.ActivityRunning); err != nil {
		t.Fatal(err)
	}
	if closed.forget(t, 0) {
		t.Error("forgotten though it runs again")
	}
	if err := closed.SetStatus(t.Context(), closed.activity, sku, seckill.ActivityClosed); err != nil {
		t.Fatal(err)
	}
	if !closed.forget(t, 0) {
		t.Error("not forgotten")
	}
}

// What Redis does not know may be about to be warmed, and what cannot be read
// is a person's: both stay.
func TestWhatIsNotKnownToBeOverIsNotForgotten(t *testing.T) {
	for rule, spoil := range map[string]func(*bundle) error{
		"unknown":         func(b *bundle) error { return b.raw.Del(t.Context(), b.keys.Meta()).Err() },
		"no end":          func(b *bundle) error { return b.raw.HSet(t.Context(), b.keys.Meta(), "ends_at", "soon").Err() },
		"another type":    func(b *bundle) error { return b.raw.Set(t.Context(), b.keys.Meta(), "x", 0).Err() },
		"no index at all": func(b *bundle) error { return b.raw.Set(t.Context(), b.keys.Pending(), "x", 0).Err() },
	} {
		b := setup(t, 1, func(_ *reservation.Config, a *reservation.Activity) { a.EndsAt = time.Now().Add(-time.Minute) })
		if err := spoil(b); err != nil {
			t.Fatal(err)
		}
		if b.forget(t, 0) {
			t.Errorf("%s: forgotten", rule)
		}
	}
}

// A sale that is warmed anew while it is forgotten is not: its entry goes back.
func TestASaleThatMovedWhileItWasForgottenGoesBack(t *testing.T) {
	b := setup(t, 1, func(_ *reservation.Config, a *reservation.Activity) { a.EndsAt = time.Now().Add(-time.Minute) })
	b.AfterCommand("srem", func() {
		if b.listed(t) {
			t.Error("listed right after its removal")
		}
		if err := b.raw.HSet(t.Context(), b.keys.Meta(), "ends_at", time.Now().Add(time.Hour).UnixMicro()).Err(); err != nil {
			t.Error(err)
		}
	})
	if b.forget(t, 0) {
		t.Error("forgotten")
	}
}
