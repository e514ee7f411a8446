package orders_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hotsku/hotsku/system/orders"
	"github.com/hotsku/hotsku/system/seckill"
)

func want(t *testing.T, what string, got, want seckill.Answer) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestAQueryFollowsTheReservation(t *testing.T) { // R7.4.7, R7.10.8, I8
	f := setup(t, 2)
	s := f.service()
	r := f.reserve(1, "r1")
	pending := seckill.Answer{Code: seckill.CodeProcessing, RequestID: "r1", ReservationID: r.ReservationID, Status: "PENDING_MESSAGE"}
	want(t, "before the order", s.ByRequest(t.Context(), f.activityID, f.skuID, 1, "r1"), pending)

	f.consume(r)
	decided := s.ByRequest(t.Context(), f.activityID, f.skuID, 1, "r1")
	if decided.OrderID == "" {
		t.Fatalf("after the commit, before the projection: %+v", decided)
	}
	created := seckill.Answer{Code: seckill.CodeFound, RequestID: "r1", ReservationID: r.ReservationID, Status: "ORDER_CREATED", OrderID: decided.OrderID}
	want(t, "after the commit, before the projection", decided, created)

	f.project()
	s = f.service()
	want(t, "by request", s.ByRequest(t.Context(), f.activityID, f.skuID, 1, "r1"), created)
	want(t, "by reservation", s.ByReservation(t.Context(), f.activityID, f.skuID, 1, r.ReservationID), created)
	if s.Stats().Fallbacks.Load() != 0 {
		t.Error("PostgreSQL was asked for what Redis knows")
	}
	order := created
	order.Status = "CREATED"
	want(t, "by order", s.ByOrder(t.Context(), f.activityID, 1, decided.OrderID), order)
}

func TestARejectionIsShownWithItsReasonThenAsCompensated(t *testing.T) {
	f := setup(t, 2)
	r := f.reserve(1, "r1")
	f.close()
	f.consume(r)
	s := f.service()
	answer := seckill.Answer{Code: seckill.CodeFound, RequestID: "r1", ReservationID: r.ReservationID, Status: "REJECTED_CLOSED"}
	want(t, "decided", s.ByRequest(t.Context(), f.activityID, f.skuID, 1, "r1"), answer)
	f.project()
	answer.Status, answer.Reason = seckill.StatusCompensated, answer.Status
	want(t, "compensated", s.ByRequest(t.Context(), f.activityID, f.skuID, 1, "r1"), answer)
}

func TestOnlyTheOwnerIsTold(t *testing.T) { // R7.4.7
	f := setup(t, 2)
	s := f.service()
	r := f.reserve(1, "r1")
	check := func(when string) {
		t.Helper()
		if a := s.ByRequest(t.Context(), f.activityID, f.skuID, 2, "r1"); a.Code != seckill.CodeForbidden || a.ReservationID != "" {
			t.Errorf("%s, by request: %+v", when, a)
		}
		if a := s.ByReservation(t.Context(), f.activityID, f.skuID, 2, r.ReservationID); a.Code != seckill.CodeForbidden || a.Status != "" {
			t.Errorf("%s, by reservation: %+v", when, a)
		}
	}
	check("in Redis")
	f.consume(r)
	f.cache.down = true
	check("in PostgreSQL")
	orderID := s.ByRequest(t.Context(), f.activityID, f.skuID, 1, "r1").OrderID
	if a := s.ByOrder(t.Context(), f.activityID, 2, orderID); a.Code != seckill.CodeForbidden {
		t.Errorf("by order: %+v", a)
	}
	if a := s.ByOrder(t.Context(), f.activityID+1, 1, orderID); a.Code != seckill.CodeForbidden {
		t.Errorf("by order with a token of another activity: %+v", a)
	}
}

func TestOutagesNeverInviteAnotherPurchase(t *testing.T) { // R7.11.6, R7.11.7, R15.11
	f := setup(t, 3)
	s := f.service()
	ordered, reserved := f.reserve(1, "r1"), f.reserve(2, "r2")
	f.consume(ordered)

	f.cache.down = true
	if a := s.ByRequest(t.Context(), f.activityID, f.skuID, 1, "r1"); a.Code != seckill.CodeFound || a.Status != "ORDER_CREATED" {
		t.Errorf("Redis down, decided: %+v", a)
	}
	want(t, "Redis down, undecided", s.ByRequest(t.Context(), f.activityID, f.skuID, 2, "r2"),
		seckill.Answer{Code: seckill.CodeProcessing, RequestID: "r2"})
	f.close()
	want(t, "Redis down, closed, undecided", s.ByRequest(t.Context(), f.activityID, f.skuID, 2, "r2"),
		seckill.Answer{Code: seckill.CodeProcessing, RequestID: "r2"})

	f.exec(`ALTER TABLE inventory_reservation RENAME TO elsewhere`)
	want(t, "both down", s.ByRequest(t.Context(), f.activityID, f.skuID, 1, "r1"),
		seckill.Answer{Code: seckill.CodeProcessing, RequestID: "r1"})
	f.cache.down = false
	want(t, "PostgreSQL down, known to Redis", s.ByReservation(t.Context(), f.activityID, f.skuID, 2, reserved.ReservationID),
		seckill.Answer{Code: seckill.CodeProcessing, RequestID: "r2", ReservationID: reserved.ReservationID, Status: "PENDING_MESSAGE"})
	want(t, "PostgreSQL down, unknown to Redis", s.ByRequest(t.Context(), f.activityID, f.skuID, 3, "r3"),
		seckill.Answer{Code: seckill.CodeProcessing, RequestID: "r3"})
	if s.Stats().StoreFails.Load() == 0 || s.Stats().CacheFails.Load() == 0 {
		t.Error("the outages were not counted")
	}
}

func TestNotAcceptedOnlyOnceEveryReservationIsDecided(t *testing.T) { // R15.11, I13
	f := setup(t, 4)
	s := f.service()
	unknown := func(when string, code seckill.Code) {
		t.Helper()
		want(t, when, s.ByRequest(t.Context(), f.activityID, f.skuID, 9, "r9"), seckill.Answer{Code: code, RequestID: "r9"})
	}
	unknown("on sale", seckill.CodeProcessing)
	ordered, rejected := f.reserve(1, "r1"), f.reserve(2, "r2")
	f.consume(ordered)
	f.close()
	unknown("closed with a reservation undecided", seckill.CodeProcessing)
	f.consume(rejected)
	unknown("all decided, a return not yet applied", seckill.CodeProcessing)
	f.project()
	unknown("all decided", seckill.CodeNotAccepted)
	unknown("proved before", seckill.CodeNotAccepted)
	if a := s.ByRequest(t.Context(), f.activityID, f.skuID, 1, "r1"); a.Code != seckill.CodeFound {
		t.Errorf("the accepted one: %+v", a)
	}

	s = f.service(func(c *orders.Config) { c.SettleAfter = time.Hour })
	unknown("closed too short a time ago", seckill.CodeProcessing)
}

func TestRedisThatForgotProvesNothing(t *testing.T) { // R15.11, I13, R11.11
	f := setup(t, 4)
	f.reserve(1, "r1") // its message is still in the broker
	f.close()
	// A Redis restored to before the sale: full stock, no reservation.
	k := seckill.KeysOf(f.activityID, f.skuID)
	f.redisDo("SET", k.Stock(), "4")
	f.redisDo("DEL", k.Request("r1"))
	s := f.service(func(c *orders.Config) { c.SettleAfter = time.Hour })
	want(t, "within the settling time", s.ByRequest(t.Context(), f.activityID, f.skuID, 1, "r1"),
		seckill.Answer{Code: seckill.CodeProcessing, RequestID: "r1"})
	f.redisDo("DEL", k.Stock())
	want(t, "no stock key", f.service().ByRequest(t.Context(), f.activityID, f.skuID, 1, "r1"),
		seckill.Answer{Code: seckill.CodeProcessing, RequestID: "r1"})
}

func TestTheFallbackIsLimited(t *testing.T) { // R7.4.7, R7.11.6
	f := setup(t, 2)
	f.cache.down = true
	s := f.service(func(c *orders.Config) { c.FallbackLimit, c.FallbackWait = 1, time.Nanosecond })
	tx, err := f.pool.Begin(t.Context())
	f.must(err)
	if _, err := tx.Exec(t.Context(), `LOCK TABLE inventory_reservation`); err != nil {
		t.Fatal(err)
	}
	first := make(chan seckill.Answer, 1)
	go func() { first <- s.ByRequest(t.Context(), f.activityID, f.skuID, 1, "r1") }()
	for waiting := false; !waiting; { // until the first waits at PostgreSQL
		f.must(f.pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted
			AND relation = 'inventory_reservation'::regclass AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`).Scan(&waiting))
	}
	if a := s.ByRequest(t.Context(), f.activityID, f.skuID, 2, "r2"); a.Code != seckill.CodeRateLimited || a.RetryAfterMS == 0 {
		t.Errorf("beyond the limit: %+v", a)
	}
	f.must(tx.Rollback(t.Context()))
	if a := <-first; a.Code != seckill.CodeProcessing {
		t.Errorf("within the limit: %+v", a)
	}
}
