package reservation_test

import (
	"slices"
	"testing"

	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

// R12.5: the auditor reads stock and change log at one moment.
func TestTheBooksAgreeWithTheLog(t *testing.T) {
	b := setup(t, 5)
	one, two := b.candidate(1, "r-1"), b.candidate(2, "r-2")
	b.reserve(t, one, two)
	event := seckill.Event{EventType: seckill.EventCompensate, ReservationID: one.ReservationID, ActivityID: b.activity, SKUID: sku,
		UserID: 1, Status: seckill.StatusRejectedLate, OperationID: seckill.OperationIDOf(one.ReservationID), ReturnStock: true}
	if _, err := b.Apply(t.Context(), b.activity, sku, []seckill.Event{event}); err != nil {
		t.Fatal(err)
	}
	books, err := b.Books(t.Context(), b.activity, sku)
	if err != nil {
		t.Fatal(err)
	}
	if !books.Known || books.Status != seckill.ActivityRunning || books.Stock != 4 || books.LogStock != 4 || books.Pending != 1 || books.Now.IsZero() {
		t.Errorf("books %+v", books)
	}
	changes, atTail, err := b.ReadLog(t.Context(), b.activity, sku, reservation.LogStart)
	if err != nil || !atTail || len(changes) != 3 || changes[2].ID != books.LogTail ||
		!slices.Equal(changes[1].Reservations, []string{one.ReservationID, two.ReservationID}) ||
		!slices.Equal(changes[2].Reservations, []string{one.ReservationID}) {
		t.Errorf("log %+v, at tail %v, %v", changes, atTail, err)
	}
	found, err := b.LookupReservations(t.Context(), b.activity, sku, []string{one.ReservationID, "resv_none", two.ReservationID})
	if err != nil || len(found) != 2 || !found[one.ReservationID].Returned || found[two.ReservationID].Returned {
		t.Errorf("found %+v, %v", found, err)
	}
	if books, err = b.Books(t.Context(), systest.ActivityID(), sku); err != nil || books.Known || books.Now.IsZero() {
		t.Errorf("books of an activity nobody warmed: %+v, %v", books, err)
	}
}

func TestReplicationOfALoneServer(t *testing.T) {
	b := setup(t, 1)
	r, err := b.Replication(t.Context())
	if err != nil || len(r.RunID) != 40 || !r.Master || r.Replicas != 0 || r.LagBytes != 0 || r.Lag != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
