package orders_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/lua"
	"github.com/hotsku/hotsku/system/activity"
	"github.com/hotsku/hotsku/system/lifecycle"
	"github.com/hotsku/hotsku/system/order"
	"github.com/hotsku/hotsku/system/orders"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

// fixture is an activity on sale in a real Redis and a real PostgreSQL, and
// the steps a reservation takes, one at a time.
type fixture struct {
	testing.TB
	activityID, skuID int64

	pool  *pgxpool.Pool
	redis *reservation.Store
	sale  *activity.Store
	order *order.Processor
	ids   *seckill.IDGenerator
	cache *cache
}

// cache is the real Redis, which can be made to fail.
type cache struct {
	*reservation.Store
	down bool
}

var errDown = errors.New("redis is down")

func (c *cache) LookupRequest(ctx context.Context, activityID, skuID int64, id string) (reservation.Reservation, bool, error) {
	if c.down {
		return reservation.Reservation{}, false, errDown
	}
	return c.Store.LookupRequest(ctx, activityID, skuID, id)
}

func (c *cache) LookupReservation(ctx context.Context, activityID, skuID int64, id string) (reservation.Reservation, bool, error) {
	if c.down {
		return reservation.Reservation{}, false, errDown
	}
	return c.Store.LookupReservation(ctx, activityID, skuID, id)
}

func setup(t testing.TB, stock int) *fixture {
	t.Helper()
	f := &fixture{TB: t, activityID: systest.ActivityID(), skuID: 1}
	f.pool = systest.Pool(t, postgres.Config{URL: systest.Database(t)})
	var err error
	if f.redis, err = reservation.New(reservation.Config{Addr: systest.Redis(t)}, lua.FS); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.redis.Close() })
	if f.sale, err = activity.New(f.pool, rand.New(rand.NewPCG(1, 1))); err != nil {
		t.Fatal(err)
	}
	f.ids = seckill.NewIDGenerator(time.Now, [32]byte{byte(f.activityID), byte(f.activityID >> 8), 1})
	f.order, err = order.New(order.Config{Pool: f.pool, IDs: f.ids, Rand: rand.New(rand.NewPCG(1, 1))})
	if err != nil {
		t.Fatal(err)
	}
	f.cache = &cache{Store: f.redis}

	p := activity.Params{ActivityID: f.activityID, SKUID: f.skuID, Stock: stock,
		StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour)}
	f.must(f.redis.Check(t.Context()))
	f.must(f.sale.Create(t.Context(), p))
	f.must(f.redis.Warm(t.Context(), reservation.Activity{ActivityID: f.activityID, SKUID: f.skuID,
		Stock: int64(stock), Version: 1, StartsAt: p.StartsAt, EndsAt: p.EndsAt}))
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) service(tweak ...func(*orders.Config)) *orders.Service {
	f.Helper()
	// Generous limits: a busy machine must not turn into an outage.
	ender, err := lifecycle.New(lifecycle.Config{Pool: f.pool})
	f.must(err)
	c := orders.Config{Cache: f.cache, Pool: f.pool, Ender: ender, SettleAfter: time.Nanosecond, AskAfter: time.Nanosecond,
		CacheTimeout: 10 * time.Second, StoreTimeout: 10 * time.Second, FallbackWait: 10 * time.Second}
	for _, t := range tweak {
		t(&c)
	}
	s, err := orders.New(c)
	f.must(err)
	return s
}

// reserve reserves a unit; its message is not sent yet.
func (f *fixture) reserve(user int64, requestID string) reservation.Reservation {
	f.Helper()
	id := f.ids.NewReservationID()
	command := seckill.SubmitCommand{ActivityID: f.activityID, SKUID: f.skuID, UserID: user, RequestID: requestID, Quantity: 1}
	b, err := f.redis.Reserve(f.Context(), f.activityID, f.skuID, []reservation.Candidate{{RequestID: requestID, UserID: user,
		PayloadHash: command.PayloadHash(), ReservationID: id, MessageID: seckill.MessageIDOf(id)}})
	f.must(err)
	if b.Outcomes[0].Verdict != reservation.VerdictCreated {
		f.Fatalf("reserve for user %d: %s", user, b.Outcomes[0].Verdict)
	}
	r, found, err := f.redis.LookupReservation(f.Context(), f.activityID, f.skuID, id)
	if err != nil || !found {
		f.Fatalf("reserved, but found %v: %v", found, err)
	}
	return r
}

// consume lets PostgreSQL decide; the events stay in the outbox.
func (f *fixture) consume(rs ...reservation.Reservation) {
	f.Helper()
	var deliveries []order.Delivery
	for i := range rs {
		m := rs[i].Message(time.Now())
		body, err := m.Encode()
		f.must(err)
		deliveries = append(deliveries, order.Delivery{Topic: seckill.TopicOrderCreate, Body: body})
	}
	f.must(f.order.Process(f.Context(), deliveries))
}

// project applies every event to Redis.
func (f *fixture) project() {
	f.Helper()
	rows, _ := f.pool.Query(f.Context(), `SELECT payload::text FROM event_outbox ORDER BY event_id`)
	payloads, err := pgx.CollectRows(rows, pgx.RowTo[string])
	f.must(err)
	for _, payload := range payloads {
		e, err := seckill.DecodeEvent([]byte(payload))
		f.must(err)
		_, err = f.redis.Apply(f.Context(), f.activityID, f.skuID, []seckill.Event{e})
		f.must(err)
	}
}

// close closes the sale as the command does: Redis, then PostgreSQL.
func (f *fixture) close() {
	f.Helper()
	f.must(f.redis.SetStatus(f.Context(), f.activityID, f.skuID, seckill.ActivityClosed))
	f.must(f.sale.Close(f.Context(), f.activityID))
}

func (f *fixture) exec(sql string) {
	f.Helper()
	_, err := f.pool.Exec(f.Context(), sql)
	f.must(err)
}

// redisDo damages Redis, which no part of the system would do.
func (f *fixture) redisDo(args ...any) {
	f.Helper()
	c := redis.NewClient(&redis.Options{Addr: systest.Redis(f)})
	defer c.Close()
	f.must(c.Do(f.Context(), args...).Err())
}
