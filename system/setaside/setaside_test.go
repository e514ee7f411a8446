package setaside_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hotsku/hotsku/system/activity"
	"github.com/hotsku/hotsku/system/order"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/setaside"
	"github.com/hotsku/hotsku/system/systest"
)

type world struct {
	testing.TB
	pool      *pgxpool.Pool
	processor *order.Processor
	ids       *seckill.IDGenerator
	activity  int64
	offset    int64
}

func setup(t testing.TB, stock int) *world {
	w := &world{TB: t, activity: systest.ActivityID(), ids: seckill.NewIDGenerator(time.Now, [32]byte{1})}
	w.pool = systest.Pool(t, postgres.Config{URL: systest.Database(t), MaxConns: 6, Settings: postgres.ConsumerSettings()})
	store, err := activity.New(w.pool, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Create(t.Context(), activity.Params{ActivityID: w.activity, SKUID: 1, Stock: stock, PriceCents: 1,
		StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	w.processor, err = order.New(order.Config{Pool: w.pool, IDs: seckill.NewIDGenerator(time.Now, [32]byte{2}),
		Rand: rand.New(rand.NewPCG(3, 3)), BackoffMin: time.Millisecond, BackoffMax: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

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

func (w *world) delivery(m seckill.OrderCreateMessage) order.Delivery {
	body, err := m.Encode()
	if err != nil {
		w.Fatal(err)
	}
	w.offset++
	return order.Delivery{Topic: seckill.TopicOrderCreate, Offset: w.offset, Body: body}
}

func (w *world) consume(d ...order.Delivery) {
	w.Helper()
	if err := w.processor.Process(w.Context(), d); err != nil {
		w.Error(err)
	}
}

func (w *world) setAside(m ...seckill.OrderCreateMessage) []string {
	w.Helper()
	given := make([]setaside.Reservation, len(m))
	for i := range m {
		given[i] = setaside.OfMessage(&m[i])
	}
	ended, err := setaside.End(w.Context(), w.pool, given)
	if err != nil {
		w.Error(err)
	}
	return ended
}

func (w *world) count(sql string, args ...any) (n int) {
	w.Helper()
	if err := w.pool.QueryRow(w.Context(), sql, args...).Scan(&n); err != nil {
		w.Fatal(err)
	}
	return n
}

// R7.8.5, R7.4.8: what nobody can decide is handed to a person, once.
func TestAnUndecidedReservationIsSetAsideOnce(t *testing.T) {
	w := setup(t, 2)
	m := w.message(7)
	if got := w.setAside(m); !slices.Equal(got, []string{m.ReservationID}) {
		t.Errorf("ended %v", got)
	}
	if got := w.setAside(m); len(got) != 0 {
		t.Errorf("ended again: %v", got)
	}
	for what, query := range map[string]string{
		"reservation": `SELECT count(*) FROM inventory_reservation WHERE reservation_id = $1 AND status = 'SET_ASIDE' AND NOT return_stock`,
		"inbox":       `SELECT count(*) FROM consumer_inbox WHERE reservation_id = $1 AND consumer_group = 'seckill_order_consumer'`,
		"ledger":      `SELECT count(*) FROM inventory_ledger WHERE reservation_id = $1 AND entry_type = 'REJECT' AND redis_return = 0`,
		"event": `SELECT count(*) FROM event_outbox WHERE aggregate_id = $1 AND event_type = 'RESERVATION_SET_ASIDE'
			AND payload->>'status' = 'SET_ASIDE' AND NOT (payload->>'return_stock')::boolean`,
	} {
		if n := w.count(query, m.ReservationID); n != 1 {
			t.Errorf("%s: %d rows, want 1", what, n)
		}
	}
	var payload []byte
	if err := w.pool.QueryRow(t.Context(), `SELECT payload FROM event_outbox`).Scan(&payload); err != nil {
		t.Fatal(err)
	}
	if _, err := seckill.DecodeEvent(payload); err != nil {
		t.Errorf("the projector will not read it: %v", err)
	}
	// The late message finds the door shut.
	w.consume(w.delivery(m))
	if n := w.count(`SELECT count(*) FROM orders`); n != 0 {
		t.Errorf("%d orders of a reservation set aside", n)
	}
}

func TestADecidedReservationStaysAsItIs(t *testing.T) {
	w := setup(t, 2)
	m := w.message(7)
	w.consume(w.delivery(m))
	if got := w.setAside(m); len(got) != 0 {
		t.Errorf("ended %v", got)
	}
	copied := m
	copied.MessageID = "msg_copy" // decided under another message
	if got := w.setAside(copied); len(got) != 0 {
		t.Errorf("ended %v", got)
	}
	if n := w.count(`SELECT count(*) FROM inventory_reservation WHERE status = 'ORDER_CREATED'`); n != 1 {
		t.Error("the decision changed")
	}
}

// The door admits one: whoever comes first, message or person, the other
// changes nothing, and no unit is in two places.
func TestMessageAndPersonRaceForTheDoor(t *testing.T) {
	const n = 200
	w := setup(t, n)
	messages := make([]seckill.OrderCreateMessage, n)
	deliveries := make([]order.Delivery, n)
	for i := range messages {
		messages[i] = w.message(int64(i + 1))
		deliveries[i] = w.delivery(messages[i])
	}
	var race sync.WaitGroup
	race.Go(func() {
		for part := range slices.Chunk(deliveries, 20) {
			w.consume(part...)
		}
	})
	var ended []string
	race.Go(func() {
		backwards := slices.Clone(messages)
		slices.Reverse(backwards)
		for part := range slices.Chunk(backwards, 10) {
			ended = append(ended, w.setAside(part...)...)
		}
	})
	race.Wait()
	orders := w.count(`SELECT count(*) FROM orders`)
	if orders+len(ended) != n {
		t.Errorf("%d orders and %d set aside, want %d together", orders, len(ended), n)
	}
	t.Logf("%d orders, %d set aside", orders, len(ended))
	for what, query := range map[string]string{
		"decisions":   `SELECT count(*) FROM inventory_reservation`,
		"inbox":       `SELECT count(*) FROM consumer_inbox`,
		"ledger":      `SELECT count(*) FROM inventory_ledger WHERE reservation_id <> ''`,
		"free tokens": `SELECT count(*) + (SELECT count(*) FROM orders) FROM inventory_token WHERE status = 'AVAILABLE'`,
	} {
		if got := w.count(query); got != n {
			t.Errorf("%s: %d, want %d", what, got, n)
		}
	}
}

func TestWhatIsIncompleteIsRefusedWithItsField(t *testing.T) {
	w := setup(t, 1)
	for field, spoil := range map[string]func(*setaside.Reservation){
		"reservation_id": func(r *setaside.Reservation) { r.ReservationID = "resv_" },
		"message_id":     func(r *setaside.Reservation) { r.MessageID = "" },
		"activity_id":    func(r *setaside.Reservation) { r.ActivityID = 0 },
		"sku_id":         func(r *setaside.Reservation) { r.SKUID = -1 },
		"user_id":        func(r *setaside.Reservation) { r.UserID = 0 },
		"reserved_at":    func(r *setaside.Reservation) { r.ReservedAt = time.Time{} },
		"request_id":     func(r *setaside.Reservation) { r.RequestID = "" },
	} {
		m := w.message(1)
		r := setaside.OfMessage(&m)
		spoil(&r)
		_, err := setaside.End(t.Context(), w.pool, []setaside.Reservation{r})
		if f := new(seckill.FieldError); !errors.As(err, &f) || f.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	m := w.message(1)
	twice := setaside.OfMessage(&m)
	for _, given := range [][]setaside.Reservation{nil, {twice, twice}, make([]setaside.Reservation, setaside.BatchMax+1)} {
		if _, err := setaside.End(t.Context(), w.pool, given); err == nil {
			t.Errorf("%d reservations were taken", len(given))
		}
	}
	if n := w.count(`SELECT count(*) FROM consumer_inbox`); n != 0 {
		t.Error("something was changed")
	}
}
