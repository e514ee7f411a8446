package admission_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/lua"
	"github.com/hotsku/hotsku/system/admission"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

// own shows the gate one activity of a Redis that other tests use too.
type own struct {
	*reservation.Store
	sku reservation.SKU
}

func (o own) Activities(ctx context.Context) ([]reservation.SKU, error) {
	all, err := o.Store.Activities(ctx)
	for _, s := range all {
		if s == o.sku {
			return []reservation.SKU{s}, err
		}
	}
	return nil, err
}

// The gate over the real change log: it closes when the last unit goes,
// never to a member, opens for a returned unit before anyone can buy it, and
// closes again; and a Redis that lost its data opens it.
func TestTheGateFollowsTheRealChangeLog(t *testing.T) {
	addr := systest.Redis(t)
	store, err := reservation.New(reservation.Config{Addr: addr}, lua.FS)
	if err != nil {
		t.Fatal(err)
	}
	raw := goredis.NewClient(&goredis.Options{Addr: addr})
	sku := reservation.SKU{ActivityID: systest.ActivityID(), SKUID: 20001}
	keys := seckill.KeysOf(sku.ActivityID, sku.SKUID)
	lose := func() {
		ctx := context.Background()
		found, err := raw.Keys(ctx, keys.Prefix()+"*").Result()
		if err == nil && len(found) > 0 {
			err = raw.Del(ctx, found...).Err()
		}
		if err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() {
		lose()
		raw.SRem(context.Background(), seckill.ActivityIndexKey, fmt.Sprintf("%d:%d", sku.ActivityID, sku.SKUID))
		raw.Close()
		store.Close()
	})
	warm := func(stock int64) {
		if err := store.Warm(t.Context(), reservation.Activity{ActivityID: sku.ActivityID, SKUID: sku.SKUID, Stock: stock, Version: 1,
			StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	ids := seckill.NewIDGenerator(time.Now, [32]byte{byte(sku.ActivityID), byte(sku.ActivityID >> 8), 3})
	reserve := func(user int64) reservation.Outcome {
		id := ids.NewReservationID()
		b, err := store.Reserve(t.Context(), sku.ActivityID, sku.SKUID, []reservation.Candidate{{RequestID: fmt.Sprintf("r%d", user), UserID: user,
			PayloadHash: "p", ReservationID: id, MessageID: seckill.MessageIDOf(id)}})
		if err != nil {
			t.Fatal(err)
		}
		return b.Outcomes[0]
	}
	const winner, stranger, second = 1, 2, 3
	warm(1)
	gate := admission.NewGate(admission.GateConfigDefault, own{store, sku}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { gate.Run(ctx) })
	defer running.Wait()
	defer cancel()
	refuses := func(user int64) bool { return gate.Refuses(sku.ActivityID, sku.SKUID, user) }
	eventually := func(what string, want bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); refuses(stranger) != want; time.Sleep(time.Millisecond) {
			if refuses(winner) {
				t.Fatalf("%s: a member is refused", what)
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: refusing is still %v", what, !want)
			}
		}
	}

	if refuses(stranger) {
		t.Error("refused with a unit on sale")
	}
	won := reserve(winner)
	if won.Verdict != reservation.VerdictCreated {
		t.Fatalf("reserve: %+v", won)
	}
	eventually("sold out", true)

	if _, err := store.Apply(t.Context(), sku.ActivityID, sku.SKUID, []seckill.Event{{SchemaVersion: 1, EventType: seckill.EventCompensate,
		OperationID: seckill.OperationIDOf(won.ReservationID), ReservationID: won.ReservationID, ActivityID: sku.ActivityID, SKUID: sku.SKUID,
		UserID: winner, Status: seckill.StatusRejectedLate, ReturnStock: true}}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		o := reserve(second)
		if o.Verdict == reservation.VerdictCreated {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the returned unit is not sold: %+v", o)
		}
	}
	eventually("sold again", true)
	if refuses(second) {
		t.Error("the second buyer is refused")
	}

	lose()
	eventually("Redis lost its data", false)
	warm(1)
	if o := reserve(4); o.Verdict != reservation.VerdictCreated {
		t.Fatalf("reserve after warming again: %+v", o)
	}
	eventually("sold out again", true)
}
