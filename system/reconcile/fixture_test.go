package reconcile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/lua"
	"github.com/hotsku/hotsku/system/activity"
	"github.com/hotsku/hotsku/system/order"
	"github.com/hotsku/hotsku/system/outbox/project"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/reconcile"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

// world is a sale on the real Redis and PostgreSQL. Its broker keeps what it
// is sent until the test delivers it, so that it can lose messages.
type world struct {
	testing.TB
	pool      *pgxpool.Pool
	store     *reservation.Store
	raw       *redis.Client
	orders    *order.Processor
	projector *project.Projector
	ids       *seckill.IDGenerator
	sku       reservation.SKU
	keys      seckill.Keys

	mu   sync.Mutex
	sent []seckill.OrderCreateMessage
	down bool
}

func setup(t testing.TB, stock int, mend ...func(*activity.Params)) *world {
	t.Helper()
	w := &world{TB: t, sku: reservation.SKU{ActivityID: systest.ActivityID(), SKUID: 7}}
	w.keys = seckill.KeysOf(w.sku.ActivityID, w.sku.SKUID)
	w.ids = seckill.NewIDGenerator(time.Now, seed(w.sku.ActivityID))
	w.pool = systest.Pool(t, postgres.Config{URL: systest.Database(t), MaxConns: 8})
	var err error
	if w.store, err = reservation.New(reservation.Config{Addr: systest.Redis(t), SignalsKey: fmt.Sprintf("test:signals:%d", w.sku.ActivityID)}, lua.FS); err != nil {
		t.Fatal(err)
	}
	w.raw = redis.NewClient(&redis.Options{Addr: systest.Redis(t)})
	t.Cleanup(func() {
		ctx := context.Background()
		if keys, err := w.raw.Keys(ctx, w.keys.Prefix()+"*").Result(); err == nil && len(keys) > 0 {
			w.raw.Del(ctx, keys...)
		}
		w.raw.SRem(ctx, seckill.ActivityIndexKey, fmt.Sprintf("%d:%d", w.sku.ActivityID, w.sku.SKUID))
		w.raw.Close()
		w.store.Close()
	})
	store, err := activity.New(w.pool, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	p := activity.Params{ActivityID: w.sku.ActivityID, SKUID: w.sku.SKUID, Stock: stock, PriceCents: 1,
		StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour)}
	for _, m := range mend {
		m(&p)
	}
	if err := store.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Warm(t.Context(), reservation.Activity{ActivityID: w.sku.ActivityID, SKUID: w.sku.SKUID, Stock: int64(stock), Version: 1,
		StartsAt: p.StartsAt, EndsAt: p.EndsAt}); err != nil {
		t.Fatal(err)
	}
	if w.orders, err = order.New(order.Config{Pool: w.pool, IDs: seckill.NewIDGenerator(time.Now, seed(w.sku.ActivityID+1)),
		Rand: rand.New(rand.NewPCG(3, 3)), BackoffMin: time.Millisecond, BackoffMax: 20 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if w.projector, err = project.New(project.ConfigDefault, w.store, slog.New(slog.DiscardHandler), nil); err != nil {
		t.Fatal(err)
	}
	return w
}

func seed(n int64) (s [32]byte) {
	copy(s[:], strconv.FormatInt(n, 16))
	return s
}

// eager finds everything that is older than nothing.
var eager = reconcile.Config{Every: time.Hour, StuckAfter: 1, LostAfter: 1, UnappliedAfter: 1, RepairLimit: 1000,
	KeepAfterEnd: time.Hour, SKUs: 10, Call: 10 * time.Second}

func (w *world) reconciler(cfg reconcile.Config) *reconcile.Reconciler {
	w.Helper()
	r, err := reconcile.New(reconcile.Params{Config: cfg, Pool: w.pool, Store: w.store, Sender: w, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// round runs one round and returns the report about the world's SKU.
func (w *world) round(r *reconcile.Reconciler, dryRun bool) reconcile.Report {
	w.Helper()
	reports, err := r.Round(w.Context(), dryRun)
	if err != nil || len(reports) != 1 {
		w.Fatalf("%d reports, %v", len(reports), err)
	}
	return reports[0]
}

// SendOrderCreates implements reconcile.Sender.
func (w *world) SendOrderCreates(m []seckill.OrderCreateMessage) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return errors.New("the broker is down")
	}
	w.sent = append(w.sent, m...)
	return nil
}

// take returns what the broker holds.
func (w *world) take() []seckill.OrderCreateMessage {
	w.mu.Lock()
	defer w.mu.Unlock()
	sent := w.sent
	w.sent = nil
	return sent
}

// reserve makes reservations for users, and returns their messages as access
// would send them.
func (w *world) reserve(users ...int64) []seckill.OrderCreateMessage {
	w.Helper()
	var out []seckill.OrderCreateMessage
	for part := range slices.Chunk(users, reservation.BatchMax) {
		candidates := make([]reservation.Candidate, len(part))
		for i, user := range part {
			id := w.ids.NewReservationID()
			c := seckill.SubmitCommand{ActivityID: w.sku.ActivityID, SKUID: w.sku.SKUID, UserID: user, Quantity: 1}
			candidates[i] = reservation.Candidate{RequestID: fmt.Sprintf("r%d", user), UserID: user, PayloadHash: c.PayloadHash(),
				ReservationID: id, MessageID: seckill.MessageIDOf(id)}
		}
		batch, err := w.store.Reserve(w.Context(), w.sku.ActivityID, w.sku.SKUID, candidates)
		if err != nil {
			w.Fatal(err)
		}
		for i, o := range batch.Outcomes {
			if o.Verdict == reservation.VerdictCreated {
				r := w.lookup(candidates[i].ReservationID)
				out = append(out, r.Message(time.Now()))
			}
		}
	}
	return out
}

func (w *world) lookup(id string) reservation.Reservation {
	w.Helper()
	r, found, err := w.store.LookupReservation(w.Context(), w.sku.ActivityID, w.sku.SKUID, id)
	if err != nil || !found {
		w.Fatalf("reservation %s: found %v, %v", id, found, err)
	}
	return r
}

func (w *world) markSent(m []seckill.OrderCreateMessage) {
	w.Helper()
	for part := range slices.Chunk(m, reservation.BatchMax) {
		ids := make([]string, len(part))
		for i := range part {
			ids[i] = part[i].ReservationID
		}
		if err := w.store.MarkSent(w.Context(), w.sku.ActivityID, w.sku.SKUID, ids); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *world) consume(m []seckill.OrderCreateMessage) {
	w.Helper()
	d := make([]order.Delivery, len(m))
	for i := range m {
		body, err := m[i].Encode()
		if err != nil {
			w.Fatal(err)
		}
		d[i] = order.Delivery{Topic: seckill.TopicOrderCreate, Offset: rand.Int64N(1 << 60), Body: body}
	}
	if err := w.orders.Process(w.Context(), d); err != nil {
		w.Error(err)
	}
}

// publish marks every event published, and hands it to the projector unless
// it is to be lost.
func (w *world) publish(lost bool) int {
	w.Helper()
	rows, _ := w.pool.Query(w.Context(), `UPDATE event_outbox SET published_at = clock_timestamp(), attempts = attempts + 1
		WHERE published_at IS NULL RETURNING payload`)
	var bodies [][]byte
	for rows.Next() {
		var payload json.RawMessage
		if err := rows.Scan(&payload); err != nil {
			w.Fatal(err)
		}
		bodies = append(bodies, payload)
	}
	if err := rows.Err(); err != nil {
		w.Fatal(err)
	}
	if lost {
		return len(bodies)
	}
	if err := w.projector.Handle(w.Context(), bodies); err != nil {
		w.Error(err)
	}
	return len(bodies)
}

func (w *world) exec(sql string, args ...any) {
	w.Helper()
	if _, err := w.pool.Exec(w.Context(), sql, args...); err != nil {
		w.Fatal(err)
	}
}

func (w *world) count(sql string, args ...any) (n int) {
	w.Helper()
	if err := w.pool.QueryRow(w.Context(), sql, args...).Scan(&n); err != nil {
		w.Fatal(err)
	}
	return n
}

func users(from, to int64) []int64 {
	var out []int64
	for u := from; u < to; u++ {
		out = append(out, u)
	}
	return out
}
