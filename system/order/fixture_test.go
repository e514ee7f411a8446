package order

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hotsku/hotsku/system/activity"
	"github.com/hotsku/hotsku/system/order/allocate"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

// fixture is a private database and what is needed to sell in it.
type fixture struct {
	testing.TB
	url    string
	pool   *pgxpool.Pool
	store  *activity.Store
	ids    *seckill.IDGenerator
	offset *int64 // of the last delivery
}

func setup(t testing.TB) *fixture {
	t.Helper()
	url := systest.Database(t)
	f := &fixture{TB: t, url: url, offset: new(int64)}
	f.pool = systest.Pool(t, postgres.Config{
		URL: url, ApplicationName: "consumer", MaxConns: 6, Settings: postgres.ConsumerSettings(),
	})
	var err error
	if f.store, err = activity.New(f.pool, rand.New(rand.NewPCG(1, 1))); err != nil {
		t.Fatal(err)
	}
	f.ids = seckill.NewIDGenerator(time.Now, [32]byte{1})
	return f
}

// in returns the fixture for a subtest.
func (f *fixture) in(t testing.TB) *fixture {
	g := *f
	g.TB = t
	return &g
}

// processor returns a Processor with short back-offs; tweak may change more.
func (f *fixture) processor(tweak ...func(*Config)) *Processor {
	f.Helper()
	c := Config{
		Pool: f.pool, IDs: seckill.NewIDGenerator(time.Now, [32]byte{2}), Rand: rand.New(rand.NewPCG(3, 3)),
		BackoffMin: time.Millisecond, BackoffMax: 20 * time.Millisecond,
	}
	for _, t := range tweak {
		t(&c)
	}
	p, err := New(c)
	if err != nil {
		f.Fatal(err)
	}
	return p
}

// sku issues a fresh activity with so many tokens.
func (f *fixture) sku(tokens int) allocate.SKU {
	f.Helper()
	sku := allocate.SKU{ActivityID: systest.ActivityID(), SKUID: 1}
	err := f.store.Create(f.Context(), activity.Params{
		ActivityID: sku.ActivityID, SKUID: sku.SKUID, Stock: tokens, PriceCents: 990,
		StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour),
	})
	if err != nil {
		f.Fatal(err)
	}
	return sku
}

// reserve returns the message of a new reservation.
func (f *fixture) reserve(sku allocate.SKU, user int64) seckill.OrderCreateMessage {
	now := time.Now().UTC().Truncate(time.Microsecond)
	id := f.ids.NewReservationID()
	command := seckill.SubmitCommand{ActivityID: sku.ActivityID, SKUID: sku.SKUID, UserID: user, Quantity: 1}
	return seckill.OrderCreateMessage{
		SchemaVersion: seckill.MessageSchemaVersion, EventType: seckill.EventTypeOrderCreateRequested,
		MessageID: seckill.MessageIDOf(id), MessageKey: id, ReservationID: id,
		RequestID:  fmt.Sprintf("req-%d-%s", user, id[len(id)-6:]),
		ActivityID: sku.ActivityID, SKUID: sku.SKUID, UserID: user, ActivityVersion: 1,
		ReservedAt: now, ReservationExpiresAt: now.Add(10 * time.Minute), CreatedAt: now,
		PayloadHash: seckill.PayloadHashPrefix + command.PayloadHash(),
	}
}

func (f *fixture) deliver(messages ...seckill.OrderCreateMessage) []Delivery {
	f.Helper()
	out := make([]Delivery, 0, len(messages))
	for i := range messages {
		body, err := messages[i].Encode()
		if err != nil {
			f.Fatal(err)
		}
		out = append(out, f.raw(body))
	}
	return out
}

func (f *fixture) raw(body []byte) Delivery {
	*f.offset++
	return Delivery{Topic: seckill.TopicOrderCreate, Queue: 0, Offset: *f.offset, Body: body}
}

func (f *fixture) process(p *Processor, deliveries []Delivery) {
	f.Helper()
	if err := p.Process(f.Context(), deliveries); err != nil {
		f.Fatal(err)
	}
}

// race hands the deliveries to workers in random batches of up to most.
func (f *fixture) race(p *Processor, rng *rand.Rand, workers, most int, deliveries []Delivery) {
	f.Helper()
	batches := make(chan []Delivery, len(deliveries))
	for rest := deliveries; len(rest) > 0; {
		n := min(1+rng.IntN(most), len(rest))
		batches <- rest[:n]
		rest = rest[n:]
	}
	close(batches)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for batch := range batches {
				if err := p.Process(f.Context(), batch); err != nil {
					f.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if f.Failed() {
		f.FailNow()
	}
}

func (f *fixture) exec(sql string, args ...any) {
	f.Helper()
	if _, err := f.pool.Exec(f.Context(), sql, args...); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) count(sql string, args ...any) int {
	f.Helper()
	var n int
	if err := f.pool.QueryRow(f.Context(), sql, args...).Scan(&n); err != nil {
		f.Fatalf("%v\n%s", err, sql)
	}
	return n
}

// statuses counts the reservations of a SKU by how they ended.
func (f *fixture) statuses(sku allocate.SKU) map[seckill.ReservationStatus]int {
	f.Helper()
	out := map[seckill.ReservationStatus]int{}
	rows, _ := f.pool.Query(f.Context(),
		`SELECT status, count(*) FROM inventory_reservation WHERE activity_id = $1 AND sku_id = $2 GROUP BY status`,
		sku.ActivityID, sku.SKUID)
	var status string
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&status, &n}, func() error {
		out[seckill.ReservationStatus(status)] = n
		return nil
	}); err != nil {
		f.Fatal(err)
	}
	return out
}

// conserved are queries that find what must not exist. $1 is the activity.
var conserved = map[string]string{
	"a token is claimed without exactly its valid order": `
		SELECT count(*) FROM inventory_token t WHERE activity_id = $1 AND status IN ('CLAIMED', 'SOLD')
		AND (SELECT count(*) FROM orders o WHERE o.inventory_token_id = t.token_id AND o.order_id = t.order_id
		     AND o.reservation_id = t.reservation_id AND o.status IN ('CREATED', 'PAID')) <> 1`,
	"a valid order has no token of its own": `
		SELECT count(*) FROM orders o WHERE activity_id = $1 AND NOT EXISTS
		(SELECT FROM inventory_token t WHERE t.token_id = o.inventory_token_id AND t.order_id = o.order_id AND t.status = 'CLAIMED')`,
	"two orders share a token": `
		SELECT count(*) - count(DISTINCT inventory_token_id) FROM orders WHERE activity_id = $1`,
	"the ledger's replay differs from the free tokens": `
		SELECT abs((SELECT coalesce(sum(delta), 0) FROM inventory_ledger WHERE activity_id = $1)
		         - (SELECT count(*) FROM inventory_token WHERE activity_id = $1 AND status = 'AVAILABLE'))`,
	"orders and SALE entries differ": `
		SELECT count(*) FROM (SELECT * FROM inventory_ledger WHERE activity_id = $1 AND entry_type = 'SALE') l
		FULL JOIN (SELECT * FROM orders WHERE activity_id = $1) o
		ON l.order_id = o.order_id AND l.token_id = o.inventory_token_id AND l.reservation_id = o.reservation_id
		WHERE l.order_id IS NULL OR o.order_id IS NULL`,
	"rejections and REJECT entries differ": `
		SELECT count(*) FROM (SELECT * FROM inventory_ledger WHERE activity_id = $1 AND entry_type = 'REJECT') l
		FULL JOIN (SELECT * FROM inventory_reservation WHERE activity_id = $1 AND status LIKE 'REJECTED%') r
		ON l.reservation_id = r.reservation_id AND l.redis_return = r.return_stock::integer
		WHERE l.reservation_id IS NULL OR r.reservation_id IS NULL`,
	"orders and ORDER_CREATED reservations differ": `
		SELECT count(*) FROM (SELECT * FROM inventory_reservation WHERE activity_id = $1 AND status = 'ORDER_CREATED') r
		FULL JOIN (SELECT * FROM orders WHERE activity_id = $1) o
		ON r.reservation_id = o.reservation_id AND r.order_id = o.order_id AND r.user_id = o.user_id AND r.request_id = o.request_id
		WHERE r.order_id IS NULL OR o.order_id IS NULL`,
	"a reservation has no event, or another's": `
		SELECT count(*) FROM (SELECT * FROM inventory_reservation WHERE activity_id = $1) r
		LEFT JOIN event_outbox e ON e.aggregate_id = r.reservation_id
		AND e.event_type = CASE WHEN r.status = 'ORDER_CREATED' THEN 'ORDER_CREATED' ELSE 'RESERVATION_COMPENSATE' END
		AND e.payload->>'status' = r.status AND (e.payload->>'return_stock')::boolean = r.return_stock
		AND (e.payload->>'user_id')::bigint = r.user_id AND coalesce(e.payload->>'order_id', '') = coalesce(r.order_id, '')
		WHERE e.event_id IS NULL`,
	"a reservation has two events": `
		SELECT count(*) - count(DISTINCT aggregate_id) FROM event_outbox WHERE (payload->>'activity_id')::bigint = $1`,
	"a decision has no inbox entry": `
		SELECT count(*) FROM inventory_reservation r WHERE activity_id = $1
		AND NOT EXISTS (SELECT FROM consumer_inbox i WHERE i.message_id = r.message_id AND i.reservation_id = r.reservation_id)`,
	"an inbox entry has no decision": `
		SELECT count(*) FROM consumer_inbox i
		WHERE NOT EXISTS (SELECT FROM inventory_reservation r WHERE r.reservation_id = i.reservation_id) AND $1::bigint > 0`,
	"an order has not exactly one item": `
		SELECT count(*) FROM orders o WHERE activity_id = $1 AND (SELECT count(*) FROM order_items i
		WHERE i.order_id = o.order_id AND i.line_no = 1 AND i.sku_id = o.sku_id AND i.quantity = 1 AND i.price_cents = o.amount_cents) <> 1`,
}

func (f *fixture) assertConserved(sku allocate.SKU) {
	f.Helper()
	for what, query := range conserved {
		if n := f.count(query, sku.ActivityID); n != 0 {
			f.Errorf("conservation: %s: %d", what, n)
		}
	}
}
