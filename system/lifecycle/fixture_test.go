package lifecycle_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/lua"
	"github.com/hotsku/hotsku/system/activity"
	"github.com/hotsku/hotsku/system/lifecycle"
	"github.com/hotsku/hotsku/system/order"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

// fixture is a database and a Redis, and the steps of an order's life.
type fixture struct {
	testing.TB
	pool    *pgxpool.Pool
	raw     *goredis.Client
	redis   *reservation.Store
	shop    *activity.Store
	ids     *seckill.IDGenerator
	orders  *order.Processor
	decider *lifecycle.Decider
}

func setup(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{TB: t}
	f.pool = systest.Pool(t, postgres.Config{URL: systest.Database(t), MaxConns: 12})
	addr := systest.Redis(t)
	f.raw = goredis.NewClient(&goredis.Options{Addr: addr})
	t.Cleanup(func() { f.raw.Close() })
	var err error
	// Returned units may be sold again at once: no gate is watching.
	f.redis, err = reservation.New(reservation.Config{Addr: addr, Reopen: time.Microsecond}, lua.FS)
	f.must(err)
	t.Cleanup(func() { f.redis.Close() })
	f.must(f.redis.Check(t.Context()))
	f.shop, err = activity.New(f.pool, rand.New(rand.NewPCG(1, 1)))
	f.must(err)
	f.ids = seckill.NewIDGenerator(time.Now, [32]byte{byte(rand.Uint32()), byte(rand.Uint32()), byte(rand.Uint32())})
	f.orders, err = order.New(order.Config{Pool: f.pool, IDs: f.ids, Rand: rand.New(rand.NewPCG(1, 1))})
	f.must(err)
	f.decider, err = lifecycle.New(lifecycle.Config{Pool: f.pool})
	f.must(err)
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// sale is one SKU on sale.
type sale struct {
	*fixture
	activityID, skuID int64
	resell            bool
}

func (f *fixture) sale(stock int, resell bool) *sale {
	f.Helper()
	s := &sale{fixture: f, activityID: systest.ActivityID(), skuID: 1, resell: resell}
	p := activity.Params{ActivityID: s.activityID, SKUID: s.skuID, Stock: stock, PriceCents: 990, Resell: resell,
		StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour)}
	f.must(f.shop.Create(f.Context(), p))
	f.must(f.redis.Warm(f.Context(), reservation.Activity{ActivityID: s.activityID, SKUID: s.skuID,
		Stock: int64(stock), Version: 1, StartsAt: p.StartsAt, EndsAt: p.EndsAt}))
	f.Cleanup(func() { // the keys would outlive the test by a week
		ctx := context.Background()
		if keys, err := f.raw.Keys(ctx, seckill.KeysOf(s.activityID, s.skuID).Prefix()+"*").Result(); err == nil && len(keys) > 0 {
			f.raw.Del(ctx, keys...)
		}
		f.raw.SRem(ctx, seckill.ActivityIndexKey, fmt.Sprintf("%d:%d", s.activityID, s.skuID))
	})
	return s
}

// reserve asks Redis for a unit for the user.
func (s *sale) reserve(user int64) (reservation.Outcome, reservation.Reservation) {
	s.Helper()
	id, request := s.ids.NewReservationID(), fmt.Sprintf("r-%d", user)
	cmd := seckill.SubmitCommand{ActivityID: s.activityID, SKUID: s.skuID, UserID: user, RequestID: request, Quantity: 1}
	b, err := s.redis.Reserve(s.Context(), s.activityID, s.skuID, []reservation.Candidate{{RequestID: request, UserID: user,
		PayloadHash: cmd.PayloadHash(), ReservationID: id, MessageID: seckill.MessageIDOf(id)}})
	s.must(err)
	if b.Outcomes[0].Verdict != reservation.VerdictCreated {
		return b.Outcomes[0], reservation.Reservation{}
	}
	r, found, err := s.redis.LookupReservation(s.Context(), s.activityID, s.skuID, id)
	if err != nil || !found {
		s.Fatalf("reserved, but found %v: %v", found, err)
	}
	return b.Outcomes[0], r
}

// deliver lets PostgreSQL decide about reservations.
func (s *sale) deliver(rs ...reservation.Reservation) {
	s.Helper()
	var deliveries []order.Delivery
	for i := range rs {
		m := rs[i].Message(time.Now())
		body, err := m.Encode()
		s.must(err)
		deliveries = append(deliveries, order.Delivery{Topic: seckill.TopicOrderCreate, Body: body})
	}
	s.must(s.orders.Process(s.Context(), deliveries))
}

// order takes a user all the way to an order.
func (s *sale) order(user int64) lifecycle.Claim {
	s.Helper()
	o, r := s.reserve(user)
	if o.Verdict != reservation.VerdictCreated {
		s.Fatalf("reserve for user %d: %s", user, o.Verdict)
	}
	s.deliver(r)
	c := lifecycle.Claim{UserID: user, ActivityID: s.activityID}
	s.scan(&c.OrderID, `SELECT order_id FROM orders WHERE reservation_id = $1`, r.ReservationID)
	return c
}

// overdue makes the payments due some time ago.
func (s *sale) overdue(orders ...lifecycle.Claim) {
	s.Helper()
	for _, o := range orders {
		_, err := s.pool.Exec(s.Context(), `UPDATE orders SET payment_due_at = now() - interval '1 minute' WHERE order_id = $1`, o.OrderID)
		s.must(err)
	}
}

// events are all events of the sale, oldest first.
func (s *sale) events() []seckill.Event {
	s.Helper()
	rows, _ := s.pool.Query(s.Context(), `SELECT payload::text FROM event_outbox WHERE (payload->>'activity_id')::bigint = $1 ORDER BY event_id`, s.activityID)
	payloads, err := pgx.CollectRows(rows, pgx.RowTo[string])
	s.must(err)
	var events []seckill.Event
	for _, p := range payloads {
		e, err := seckill.DecodeEvent([]byte(p))
		s.must(err)
		events = append(events, e)
	}
	return events
}

// project applies the events to Redis.
func (s *sale) project(events ...seckill.Event) {
	s.Helper()
	for len(events) > 0 {
		n := min(len(events), reservation.BatchMax)
		_, err := s.redis.Apply(s.Context(), s.activityID, s.skuID, events[:n])
		s.must(err)
		events = events[n:]
	}
}

func (s *sale) scan(dst any, sql string, args ...any) {
	s.Helper()
	if err := s.pool.QueryRow(s.Context(), sql, args...).Scan(dst); err != nil {
		s.Fatalf("%v\n%s", err, sql)
	}
}

func (s *sale) text(sql string, args ...any) string {
	s.Helper()
	var v string
	s.scan(&v, sql, args...)
	return v
}

func (s *sale) stock() int64 {
	s.Helper()
	n, err := s.redis.Stock(s.Context(), s.activityID, s.skuID)
	s.must(err)
	return n
}

// conserved are queries that find what must not exist. $1 is the activity.
var conserved = map[string]string{
	"a token is taken without exactly its valid order": `
		SELECT count(*) FROM inventory_token t WHERE activity_id = $1 AND status IN ('CLAIMED', 'SOLD')
		AND (SELECT count(*) FROM orders o WHERE o.inventory_token_id = t.token_id AND o.order_id = t.order_id
		     AND o.reservation_id = t.reservation_id AND o.status = CASE t.status WHEN 'SOLD' THEN 'PAID' ELSE 'CREATED' END) <> 1`,
	"a valid order has no token of its own": `
		SELECT count(*) FROM orders o WHERE activity_id = $1 AND status IN ('CREATED', 'PAID') AND NOT EXISTS
		(SELECT FROM inventory_token t WHERE t.token_id = o.inventory_token_id AND t.order_id = o.order_id)`,
	"a token is released under resell, or free again under retire": `
		SELECT count(*) FROM inventory_token t JOIN activity a USING (activity_id) WHERE activity_id = $1
		AND (a.resale_policy = 'resell' AND t.status = 'RELEASED' OR a.resale_policy = 'retire' AND t.status = 'AVAILABLE'
		     AND EXISTS (SELECT FROM orders o WHERE o.inventory_token_id = t.token_id))`,
	"the ledger's replay differs from the free tokens": `
		SELECT abs((SELECT coalesce(sum(delta), 0) FROM inventory_ledger WHERE activity_id = $1)
		         - (SELECT count(*) FROM inventory_token WHERE activity_id = $1 AND status = 'AVAILABLE'))`,
	"an order's end and its ledger entry differ": `
		SELECT count(*) FROM orders o WHERE activity_id = $1
		AND coalesce((SELECT string_agg(l.entry_type, ',') FROM inventory_ledger l WHERE l.order_id = o.order_id AND l.entry_type <> 'SALE'
		              AND l.token_id = o.inventory_token_id AND l.reservation_id = o.reservation_id), '')
		 <> CASE o.status WHEN 'CREATED' THEN '' WHEN 'PAID' THEN 'PAY' WHEN 'CANCELLED' THEN 'CANCEL' ELSE 'EXPIRE' END`,
	"an order's end and its reservation differ": `
		SELECT count(*) FROM orders o JOIN inventory_reservation r USING (reservation_id) JOIN activity a ON a.activity_id = o.activity_id
		WHERE o.activity_id = $1 AND (r.order_id <> o.order_id
		 OR r.status <> CASE WHEN o.status IN ('CREATED', 'PAID') THEN 'ORDER_CREATED' ELSE o.status END
		 OR r.return_stock <> (o.status IN ('CANCELLED', 'EXPIRED') AND a.resale_policy = 'resell'))`,
	"an order's end and its events differ": `
		SELECT count(*) FROM inventory_reservation r WHERE activity_id = $1
		AND (SELECT string_agg(e.event_type || ' ' || (e.payload->>'status') || ' ' || (e.payload->>'return_stock'), ',' ORDER BY e.event_type)
		     FROM event_outbox e WHERE e.aggregate_id = r.reservation_id)
		 <> CASE WHEN r.status = 'ORDER_CREATED' THEN 'ORDER_CREATED ORDER_CREATED false'
		         WHEN r.order_id IS NULL THEN 'RESERVATION_COMPENSATE ' || r.status || ' ' || r.return_stock::text
		         ELSE 'ORDER_CREATED ORDER_CREATED false,RESERVATION_COMPENSATE ' || r.status || ' ' || r.return_stock::text END`,
	"an ended order has no inbox entry, or a living one has": `
		SELECT count(*) FROM orders o WHERE activity_id = $1 AND (o.status <> 'CREATED') <>
		EXISTS (SELECT FROM consumer_inbox i WHERE i.consumer_group = 'order_end' AND i.reservation_id = o.reservation_id
		        AND i.message_id = 'end_' || substr(o.reservation_id, 6)
		        AND i.topic = CASE o.status WHEN 'PAID' THEN 'pay' WHEN 'CANCELLED' THEN 'cancel' ELSE 'expire' END)`,
}

func (s *sale) assertConserved() {
	s.Helper()
	for what, query := range conserved {
		var n int
		s.scan(&n, query, s.activityID)
		if n != 0 {
			s.Errorf("conservation: %s: %d", what, n)
		}
	}
}
