package project_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/lua"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

// R7.4.6 R13.4.7 I9: over the real script a batch delivered three times, in
// other orders, changes Redis once; what Redis does not hold is counted.
func TestRepeatsChangeNothingInRedis(t *testing.T) {
	addr := systest.Redis(t)
	store, err := reservation.New(reservation.Config{Addr: addr}, lua.FS)
	if err != nil {
		t.Fatal(err)
	}
	activity, sku := systest.ActivityID(), int64(20001)
	t.Cleanup(func() { // the keys would outlive the test by a week
		ctx := context.Background()
		raw := goredis.NewClient(&goredis.Options{Addr: addr})
		if keys, err := raw.Keys(ctx, seckill.KeysOf(activity, sku).Prefix()+"*").Result(); err == nil && len(keys) > 0 {
			raw.Del(ctx, keys...)
		}
		raw.SRem(ctx, seckill.ActivityIndexKey, fmt.Sprintf("%d:%d", activity, sku))
		raw.Close()
		store.Close()
	})
	const units = 40
	if err := store.Warm(t.Context(), reservation.Activity{ActivityID: activity, SKUID: sku, Stock: units, Version: 1,
		StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	var events []seckill.Event
	for user := range int64(units) {
		e := created(activity, sku)
		e.UserID = user + 1
		if _, err := store.Reserve(t.Context(), activity, sku, []reservation.Candidate{{RequestID: fmt.Sprint("r", user), UserID: e.UserID,
			PayloadHash: "p", ReservationID: e.ReservationID, MessageID: seckill.MessageIDOf(e.ReservationID)}}); err != nil {
			t.Fatal(err)
		}
		if user%2 == 0 { // every second one is compensated, every fourth with its unit
			e.EventType, e.OperationID, e.OrderID = seckill.EventCompensate, seckill.OperationIDOf(e.ReservationID), ""
			e.Status, e.ReturnStock = seckill.StatusRejectedNoFinalStock, false
			if user%4 == 0 {
				e.Status, e.ReturnStock = seckill.StatusRejectedLate, true
			}
		}
		events = append(events, e)
	}
	unknown := created(activity, sku)
	p := newProjector(t, store, nil)
	for range 3 {
		if err := p.Handle(t.Context(), encode(append(slices.Clone(events), unknown)...)); err != nil {
			t.Fatal(err)
		}
		slices.Reverse(events)
	}
	if n, err := store.Stock(t.Context(), activity, sku); err != nil || n != units/4 {
		t.Errorf("stock is %d, %v, want %d", n, err, units/4)
	}
	if p.Stats.Applied.Load() != units || p.Stats.Repeated.Load() != 2*units || p.Stats.Missing.Load() != 3 {
		t.Errorf("applied %d, repeated %d, missing %d, want %d, %d, 3", p.Stats.Applied.Load(), p.Stats.Repeated.Load(), p.Stats.Missing.Load(), units, 2*units)
	}
	for _, e := range events {
		r, found, err := store.LookupReservation(t.Context(), activity, sku, e.ReservationID)
		if err != nil || !found || r.Status != e.Status || r.OrderID != e.OrderID || r.CompensatedAt.IsZero() != (e.EventType == seckill.EventOrderCreated) {
			t.Fatalf("reservation is %+v, %v, %v\nafter %+v", r, found, err, e)
		}
	}
}
