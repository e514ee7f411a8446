package orders_test

import (
	"testing"

	"github.com/hotsku/hotsku/system/lifecycle"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

func (f *fixture) cancel(user int64, orderID string) {
	f.Helper()
	d, err := lifecycle.New(lifecycle.Config{Pool: f.pool})
	f.must(err)
	if o, err := d.Cancel(f.Context(), lifecycle.Claim{OrderID: orderID, UserID: user, ActivityID: f.activityID}); err != nil || o.Status != seckill.OrderCancelled {
		f.Fatalf("cancel: %+v, %v", o, err)
	}
}

// R7.10.8 R11.15: a query that found in PostgreSQL what Redis lost puts it
// back; the next is answered by Redis, and the user cannot buy again.
func TestAQueryPutsBackWhatRedisLost(t *testing.T) {
	f := setup(t, 3)
	id := f.newOrder(1, "r1")
	f.project()
	keys := seckill.KeysOf(f.activityID, f.skuID)
	s := f.service()
	before := s.ByRequest(t.Context(), f.activityID, f.skuID, 1, "r1")
	for _, lost := range [][]any{
		{"DEL", keys.Reservation(before.ReservationID)},
		{"DEL", keys.Request("r1")},
		{"DEL", keys.Reservation(before.ReservationID), keys.Request("r1"), keys.User(1)},
	} {
		f.redisDo(lost...)
		s := f.service()
		// Another's question tells him nothing, and changes nothing.
		if a := s.ByRequest(t.Context(), f.activityID, f.skuID, 2, "r1"); a.Code != seckill.CodeForbidden || s.Stats().Rebuilt.Load() != 0 {
			t.Errorf("another user: %+v, %d keys rebuilt", a, s.Stats().Rebuilt.Load())
		}
		want(t, "from PostgreSQL", s.ByRequest(t.Context(), f.activityID, f.skuID, 1, "r1"), before)
		fallbacks := s.Stats().Fallbacks.Load()
		want(t, "from Redis again", s.ByRequest(t.Context(), f.activityID, f.skuID, 1, "r1"), before)
		want(t, "by reservation", s.ByReservation(t.Context(), f.activityID, f.skuID, 1, before.ReservationID), before)
		if n := s.Stats().Fallbacks.Load(); n != fallbacks || s.Stats().Rebuilt.Load() != int64(len(lost)-1) {
			t.Errorf("%d looks into PostgreSQL after the rebuild of %d keys (%v)", n-fallbacks, s.Stats().Rebuilt.Load(), lost)
		}
	}
	cmd := seckill.SubmitCommand{ActivityID: f.activityID, SKUID: f.skuID, UserID: 1, RequestID: "other", Quantity: 1}
	rid := f.ids.NewReservationID()
	b, err := f.redis.Reserve(t.Context(), f.activityID, f.skuID, []reservation.Candidate{{RequestID: "other", UserID: 1, PayloadHash: cmd.PayloadHash(),
		ReservationID: rid, MessageID: seckill.MessageIDOf(rid)}})
	if err != nil || b.Outcomes[0].Verdict != reservation.VerdictDuplicateUser || b.Outcomes[0].ReservationID != before.ReservationID {
		t.Errorf("the user of order %s buys again: %+v, %v", id, b.Outcomes, err)
	}
}

// R7.6.5: a decision whose write-back is late is written by the query that
// found it; the projector's event then finds nothing to do.
func TestAQueryWritesTheOrderTheProjectorIsLateWith(t *testing.T) {
	f := setup(t, 2)
	f.newOrder(1, "r1")
	s := f.service()
	a := s.ByRequest(t.Context(), f.activityID, f.skuID, 1, "r1")
	again := f.service()
	want(t, "from Redis", again.ByRequest(t.Context(), f.activityID, f.skuID, 1, "r1"), a)
	if a.Status != "ORDER_CREATED" || s.Stats().Rebuilt.Load() != 1 || again.Stats().Fallbacks.Load() != 0 {
		t.Errorf("%+v, rebuilt %d, then %d fallbacks", a, s.Stats().Rebuilt.Load(), again.Stats().Fallbacks.Load())
	}
	f.project()
	want(t, "after the event", f.service().ByRequest(t.Context(), f.activityID, f.skuID, 1, "r1"), a)
}

// A compensation moves stock, so no query writes it: its event does, once,
// whatever was asked before.
func TestAQueryNeverCompensates(t *testing.T) {
	f := setup(t, 2)
	f.exec(`UPDATE activity SET resale_policy = 'resell'`)
	id := f.newOrder(1, "r1")
	f.project()
	f.cancel(1, id)
	stock := func() int64 {
		n, err := f.redis.Stock(t.Context(), f.activityID, f.skuID)
		f.must(err)
		return n
	}
	s := f.service()
	rid := s.ByRequest(t.Context(), f.activityID, f.skuID, 1, "r1").ReservationID
	if n := stock(); n != 1 {
		t.Errorf("asking returned a unit: stock %d", n)
	}
	f.redisDo("DEL", seckill.KeysOf(f.activityID, f.skuID).Reservation(rid))
	if a := f.service().ByRequest(t.Context(), f.activityID, f.skuID, 1, "r1"); a.Status != "CANCELLED" || stock() != 1 {
		t.Errorf("%+v, stock %d", a, stock())
	}
}

// While Redis is down nothing is written to it; the answer is PostgreSQL's.
func TestNothingIsRebuiltInARedisThatIsDown(t *testing.T) { // R7.11.6
	f := setup(t, 2)
	f.newOrder(1, "r1")
	f.cache.down = true
	s := f.service()
	if a := s.ByRequest(t.Context(), f.activityID, f.skuID, 1, "r1"); a.Status != "ORDER_CREATED" || s.Stats().Rebuilt.Load() != 0 || s.Stats().RebuildFails.Load() != 0 {
		t.Errorf("%+v, rebuilt %d, failed %d", a, s.Stats().Rebuilt.Load(), s.Stats().RebuildFails.Load())
	}
}
