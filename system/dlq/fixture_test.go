package dlq_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hotsku/hotsku/system/activity"
	"github.com/hotsku/hotsku/system/dlq"
	"github.com/hotsku/hotsku/system/order"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

// world is a private database with a sale, the order consumer, and a broker
// that keeps what it is sent.
type world struct {
	testing.TB
	pool      *pgxpool.Pool
	orders    *order.Processor
	collector *dlq.Collector
	ids       *seckill.IDGenerator
	activity  int64
	offset    int64

	mu      sync.Mutex
	creates []seckill.OrderCreateMessage
	events  []seckill.Event
	refuse  error
}

func setup(t testing.TB) *world {
	t.Helper()
	w := &world{TB: t, activity: systest.ActivityID(), ids: seckill.NewIDGenerator(time.Now, [32]byte{1})}
	w.pool = systest.Pool(t, postgres.Config{URL: systest.Database(t), MaxConns: 4, Settings: postgres.ConsumerSettings()})
	store, err := activity.New(w.pool, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Create(t.Context(), activity.Params{ActivityID: w.activity, SKUID: 1, Stock: 10, PriceCents: 1,
		StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if w.orders, err = order.New(order.Config{Pool: w.pool, IDs: seckill.NewIDGenerator(time.Now, [32]byte{2}),
		Rand: rand.New(rand.NewPCG(3, 3))}); err != nil {
		t.Fatal(err)
	}
	if w.collector, err = dlq.NewCollector(dlq.CollectorConfig{Pool: w.pool}); err != nil {
		t.Fatal(err)
	}
	return w
}

// SendOrderCreates implements dlq.Sender.
func (w *world) SendOrderCreates(m []seckill.OrderCreateMessage) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.creates = append(w.creates, m...)
	return w.refuse
}

// SendEvents implements dlq.Sender.
func (w *world) SendEvents(_ context.Context, e []seckill.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e...)
	return w.refuse
}

var errRefused = errors.New("the broker said nothing")

func (w *world) message(user int64) seckill.OrderCreateMessage {
	now := time.Now().UTC().Truncate(time.Microsecond)
	id := w.ids.NewReservationID()
	c := seckill.SubmitCommand{ActivityID: w.activity, SKUID: 1, UserID: user, Quantity: 1}
	return seckill.OrderCreateMessage{
		SchemaVersion: seckill.MessageSchemaVersion, EventType: seckill.EventTypeOrderCreateRequested,
		MessageID: seckill.MessageIDOf(id), MessageKey: id, ReservationID: id, RequestID: fmt.Sprintf("r%d", user),
		ActivityID: w.activity, SKUID: 1, UserID: user, ActivityVersion: 1, ReservedAt: now,
		ReservationExpiresAt: now.Add(time.Minute), CreatedAt: now, PayloadHash: seckill.PayloadHashPrefix + c.PayloadHash(),
	}
}

func (w *world) encode(m seckill.OrderCreateMessage) []byte {
	w.Helper()
	body, err := m.Encode()
	if err != nil {
		w.Fatal(err)
	}
	return body
}

// consume hands bodies to the order consumer.
func (w *world) consume(bodies ...[]byte) {
	w.Helper()
	d := make([]order.Delivery, len(bodies))
	for i := range bodies {
		w.offset++
		d[i] = order.Delivery{Topic: seckill.TopicOrderCreate, Offset: w.offset, Body: bodies[i]}
	}
	if err := w.orders.Process(w.Context(), d); err != nil {
		w.Fatal(err)
	}
}

// giveUp is what the broker does with what a group could not decide.
func (w *world) giveUp(group string, body []byte) dlq.Delivery {
	w.Helper()
	w.offset++
	d := dlq.Delivery{Topic: "%DLQ%any_" + group, Offset: w.offset, Body: body}
	if err := w.collector.Handle(w.Context(), []dlq.Delivery{d}); err != nil {
		w.Fatal(err)
	}
	return d
}

// open lists the open letters.
func (w *world) open() []dlq.Letter { return w.list(dlq.Filter{Limit: dlq.ListMax}) }

func (w *world) list(f dlq.Filter) []dlq.Letter {
	w.Helper()
	letters, err := dlq.List(w.Context(), w.pool, f)
	if err != nil {
		w.Fatal(err)
	}
	return letters
}

// only is the one letter there is.
func (w *world) only() dlq.Letter {
	w.Helper()
	all := w.list(dlq.Filter{All: true, Limit: dlq.ListMax})
	if len(all) != 1 {
		w.Fatalf("%d letters, want 1: %+v", len(all), all)
	}
	return all[0]
}

func (w *world) exec(sql string, args ...any) {
	w.Helper()
	if _, err := w.pool.Exec(w.Context(), sql, args...); err != nil {
		w.Fatal(err)
	}
}

func (w *world) status(reservationID string) (status seckill.ReservationStatus) {
	w.Helper()
	if err := w.pool.QueryRow(w.Context(), `SELECT coalesce(max(status), '') FROM inventory_reservation WHERE reservation_id = $1`,
		reservationID).Scan(&status); err != nil {
		w.Fatal(err)
	}
	return status
}
