package admission_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/lua"
	"github.com/hotsku/hotsku/system/admission"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

// link is the way from one access process to Redis. While it is cut, reads
// get no answer in time; else their answers are late by what late says.
type link struct {
	own
	cut  atomic.Bool
	late func() time.Duration
}

func (l *link) ReadLog(ctx context.Context, activityID, skuID int64, after string) ([]reservation.Change, bool, error) {
	changes, atTail, err := l.own.ReadLog(ctx, activityID, skuID, after)
	wait := time.Hour
	if !l.cut.Load() {
		wait = l.late()
	}
	select {
	case <-ctx.Done():
		return nil, false, ctx.Err()
	case <-time.After(wait):
		return changes, atTail, err
	}
}

// refusal is a moment at which a gate refused a stranger: after from, before
// until, both in microseconds of the clock that Redis has, too.
type refusal struct{ from, until int64 }

// sale is a time during which a unit could be reserved: since open until
// someone had it.
type sale struct{ open, taken int64 }

// I10, contracts 3: a unit comes back and is sold again, over and over, while
// the gates of three access processes are asked all the time: one near, one
// behind a slow link, one whose link is cut at the worst moments. None ever
// refuses while the unit may be had. Broken if GateTrust is not below the
// reservation's Reopen.
func TestNoGateRefusesAUnitThatAnotherSells(t *testing.T) {
	addr := systest.Redis(t)
	store, err := reservation.New(reservation.Config{Addr: addr}, lua.FS)
	if err != nil {
		t.Fatal(err)
	}
	raw := goredis.NewClient(&goredis.Options{Addr: addr})
	sku := reservation.SKU{ActivityID: systest.ActivityID(), SKUID: 20001}
	keys := seckill.KeysOf(sku.ActivityID, sku.SKUID)
	t.Cleanup(func() {
		ctx := context.Background()
		if found, err := raw.Keys(ctx, keys.Prefix()+"*").Result(); err == nil && len(found) > 0 {
			raw.Del(ctx, found...)
		}
		raw.SRem(ctx, seckill.ActivityIndexKey, fmt.Sprintf("%d:%d", sku.ActivityID, sku.SKUID))
		raw.Close()
		store.Close()
	})
	if err := store.Warm(t.Context(), reservation.Activity{ActivityID: sku.ActivityID, SKUID: sku.SKUID, Stock: 1, Version: 1,
		StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}

	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 1))
	jitter := rand.New(rand.NewPCG(seed, 2)) // of the slow link's only reader
	at := func() time.Duration { return 0 }
	links := map[string]*link{
		"near": {own: own{store, sku}, late: at},
		"slow": {own: own{store, sku}, late: func() time.Duration { return time.Duration(jitter.IntN(140)) * time.Millisecond }},
		"cut":  {own: own{store, sku}, late: at},
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	refusals := map[string]*[]refusal{}
	asked := map[string]*atomic.Int64{}
	for name, l := range links {
		gate := admission.NewGate(admission.GateConfigDefault, l, slog.New(slog.DiscardHandler))
		running.Go(func() { gate.Run(ctx) })
		refused, n := &[]refusal{}, &atomic.Int64{}
		refusals[name], asked[name] = refused, n
		running.Go(func() {
			for stranger := int64(1 << 40); ctx.Err() == nil; stranger++ {
				from := time.Now().UnixMicro()
				if gate.Refuses(sku.ActivityID, sku.SKUID, stranger) {
					*refused = append(*refused, refusal{from, time.Now().UnixMicro()})
				}
				n.Add(1)
				time.Sleep(200 * time.Microsecond)
			}
		})
	}

	ids := seckill.NewIDGenerator(time.Now, [32]byte{byte(sku.ActivityID), byte(sku.ActivityID >> 8), 9})
	var sales []sale
	buy := func(user int64) (reservationID string) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; {
			id := ids.NewReservationID()
			b, err := store.Reserve(t.Context(), sku.ActivityID, sku.SKUID, []reservation.Candidate{{RequestID: fmt.Sprintf("r%d", user), UserID: user,
				PayloadHash: "p", ReservationID: id, MessageID: seckill.MessageIDOf(id)}})
			if err != nil {
				t.Fatal(err)
			}
			if b.Outcomes[0].Verdict == reservation.VerdictCreated {
				if n := len(sales); n > 0 {
					sales[n-1].taken = b.ReservedAt.UnixMicro()
				}
				return b.Outcomes[0].ReservationID
			}
			if time.Now().After(deadline) {
				t.Fatalf("user %d: %+v", user, b.Outcomes[0])
			}
			time.Sleep(time.Millisecond)
		}
	}
	const rounds = 12
	for user := range int64(rounds) {
		bought := buy(user + 1)
		// The gates close; then, at any moment of their polling, one loses
		// Redis and the unit comes back.
		time.Sleep(time.Duration(50+rng.IntN(40)) * time.Millisecond)
		links["cut"].cut.Store(user%3 > 0)
		if _, err := store.Apply(t.Context(), sku.ActivityID, sku.SKUID, []seckill.Event{{SchemaVersion: 1, EventType: seckill.EventCompensate,
			OperationID: seckill.OperationIDOf(bought), ReservationID: bought, ActivityID: sku.ActivityID, SKUID: sku.SKUID,
			UserID: user + 1, Status: seckill.StatusCancelled, ReturnStock: true}}); err != nil {
			t.Fatal(err)
		}
		open, err := raw.HGet(t.Context(), keys.Meta(), "open_at").Int64()
		if err != nil {
			t.Fatal(err)
		}
		sales = append(sales, sale{open: open})
		time.Sleep(time.Until(time.UnixMicro(open).Add(time.Duration(20+rng.IntN(200)) * time.Millisecond)))
		links["cut"].cut.Store(false)
	}
	buy(rounds + 1)
	stop()
	running.Wait()

	for name, refused := range refusals {
		if len(*refused) == 0 {
			t.Errorf("the %s gate never refused, in %d questions", name, asked[name].Load())
		}
		for _, r := range *refused {
			if i := slices.IndexFunc(sales, func(s sale) bool { return r.from >= s.open && r.until <= s.taken }); i >= 0 {
				t.Errorf("the %s gate refused %v after the unit could be had, %v before it was taken", name,
					time.Duration(r.from-sales[i].open)*time.Microsecond, time.Duration(sales[i].taken-r.until)*time.Microsecond)
				break
			}
		}
	}
	for i, s := range sales {
		if s.taken-s.open < (10 * time.Millisecond).Microseconds() {
			t.Errorf("sale %d: the unit could be had for %v only: nothing was tried", i, time.Duration(s.taken-s.open)*time.Microsecond)
		}
	}
}

// Contracts 3: the gate's trust ends before a returned unit is on sale, with
// room for a read's own time.
func TestTheGatesTrustEndsBeforeAReturnedUnitIsOnSale(t *testing.T) {
	if admission.GateTrust >= reservation.ReopenDefault {
		t.Errorf("the gate trusts for %v, a unit is on sale after %v", admission.GateTrust, reservation.ReopenDefault)
	}
}
