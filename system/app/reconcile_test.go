package app_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"

	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/dlq"
	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

// reserve makes a reservation that no message follows.
func (w *world) reserve(user int64, marked bool) reservation.Reservation {
	w.t.Helper()
	id := seckill.NewIDGenerator(time.Now, [32]byte{byte(user), 99}).NewReservationID()
	c := seckill.SubmitCommand{ActivityID: w.sku.ActivityID, SKUID: w.sku.SKUID, UserID: user, Quantity: 1}
	_, err := w.redis.Reserve(w.t.Context(), w.sku.ActivityID, w.sku.SKUID, []reservation.Candidate{{RequestID: "r-" + id, UserID: user,
		PayloadHash: c.PayloadHash(), ReservationID: id, MessageID: seckill.MessageIDOf(id)}})
	if err != nil {
		w.t.Fatal(err)
	}
	if marked {
		if err := w.redis.MarkSent(w.t.Context(), w.sku.ActivityID, w.sku.SKUID, []string{id}); err != nil {
			w.t.Fatal(err)
		}
	}
	r, found, err := w.redis.LookupReservation(w.t.Context(), w.sku.ActivityID, w.sku.SKUID, id)
	if err != nil || !found {
		w.t.Fatal(found, err)
	}
	return r
}

// R7.4.8 R11.13 R12.5 R16.12: over real servers, what the broker lost and what
// it gave up on becomes orders by itself, under the message ids of always.
func TestReconcileBringsHomeWhatWasLost(t *testing.T) {
	w := setup(t, 10, 10)
	w.cfg.Reconcile.Every, w.cfg.Reconcile.LostAfter, w.cfg.Reconcile.StuckAfter = 200*time.Millisecond, time.Second, time.Second
	w.cfg.DeadLetters = dlq.Automatic{Tries: 3, After: 100 * time.Millisecond}
	lost, pending, dead := w.reserve(1, true), w.reserve(2, false), w.reserve(3, true)

	// The broker's way to give up: the message stands in the group's
	// dead-letter topic.
	push, err := rocketmq.NewProducer(producer.WithNameServer(primitive.NamesrvAddr{w.cfg.MQ.NameServer}), producer.WithInstanceName("dead-letter-test"),
		producer.WithGroupName("dead_letter_test"))
	if err == nil {
		err = push.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = push.Shutdown() }()
	m := dead.Message(time.Now())
	body, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	topic := mq.DeadLetterPrefix + w.cfg.MQ.TopicPrefix + seckill.GroupOrder
	for _, b := range [][]byte{body, []byte("no message")} {
		if _, err := push.SendSync(context.Background(), primitive.NewMessage(topic, b)); err != nil {
			t.Fatal(err)
		}
	}

	w.start(app.RoleConsumer)
	w.start(app.RoleOutbox)
	reconcile := w.start(app.RoleReconcile)
	pool := systest.Pool(t, postgres.Config{URL: w.cfg.Postgres})
	for _, r := range []reservation.Reservation{lost, pending, dead} {
		eventually(t, "an order of user "+string(rune('0'+r.UserID)), 40*time.Second, func() bool {
			now, found, err := w.redis.LookupReservation(t.Context(), w.sku.ActivityID, w.sku.SKUID, r.ReservationID)
			return err == nil && found && now.Status == seckill.StatusOrderCreated && now.OrderID != ""
		})
	}
	// The one nobody can read is left to a person, in sight.
	eventually(t, "the letter nobody can read in the metrics", 20*time.Second, func() bool {
		return reconcile.metric("dead_letter_open_count", `class="poison"`) == 1 && reconcile.metric("dead_letter_open_count", `class="handed_back"`) == 0
	})
	sku := `sku_id="20001"`
	eventually(t, "the accounts in the metrics", 20*time.Second, func() bool {
		return reconcile.metric("postgres_order_created_count", sku) == 3 && reconcile.metric("redis_reserved_count", sku) == 3 &&
			reconcile.metric("redis_stock_value", sku) == 7 && reconcile.metric("postgres_token_claimed_count", sku) == 3
	})
	for name, want := range map[string]float64{"inventory_conservation_delta": 0, "postgres_token_sold_count": 0, "redis_token_drift": 0,
		"reservation_lost_count": 0, "compensation_pending_count": 0} {
		if got := reconcile.metric(name, sku); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if up, wal := reconcile.metric("database_up", ""), reconcile.metric("wal_bytes", ""); up != 1 || wal == 0 {
		t.Errorf("database_up %v, wal_bytes %v", up, wal)
	}
	if reconcile.metric("redis_up", "") != 1 || reconcile.metric("database_pool_limit", "") != 4 {
		t.Error("redis is not up, or the pool has no limit")
	}
	var messages, orders int
	if err := pool.QueryRow(t.Context(), `SELECT count(DISTINCT message_id), (SELECT count(*) FROM orders) FROM consumer_inbox`).Scan(&messages, &orders); err != nil {
		t.Fatal(err)
	}
	if messages != 3 || orders != 3 {
		t.Errorf("%d message ids, %d orders, want 3 of each", messages, orders)
	}

	// A single round from the command line finds the same.
	once := app.New(w.cfg, app.DefaultWiring(func(seckill.FaultPoint) {}), slog.New(slog.DiscardHandler), [32]byte{5}, nil)
	reports, err := once.ReconcileOnce(t.Context(), true)
	if err != nil || len(reports) != 1 || !reports[0].Conserved() || reports[0].Reservations.Ordered != 3 {
		t.Errorf("%+v, %v", reports, err)
	}
	bad := w.cfg
	bad.Redis.Addr = ""
	if _, err := app.New(bad, app.DefaultWiring(func(seckill.FaultPoint) {}), slog.New(slog.DiscardHandler), [32]byte{5}, nil).
		ReconcileOnce(t.Context(), true); !errors.Is(err, app.ErrConfig) {
		t.Errorf("without Redis: %v", err)
	}
	reconcile.drain()
}
