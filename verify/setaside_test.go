package verify

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// A reservation set aside is an acceptance that became nothing, and I4 says
// so until a person has looked; but its unit is accounted for: no other
// invariant takes it for a loss.
func TestASetAsideReservationIsLeftToAPersonAndAccountedFor(t *testing.T) {
	w := simulate(options{seed: 5, stock: 30, tokens: 29, requests: 900, step: 300_000})
	i := slices.IndexFunc(w.reservations, func(r rundir.ReservationRow) bool { return r.Status == string(seckill.StatusRejectedNoFinalStock) })
	if i < 0 {
		t.Fatal("nobody was rejected for want of a token")
	}
	r := &w.reservations[i]
	r.Status, r.ReturnStock = string(seckill.StatusSetAside), false
	for j := range w.outbox {
		if w.outbox[j].AggregateID == r.ReservationID {
			payload, err := json.Marshal(seckill.Event{SchemaVersion: 1, EventType: seckill.EventSetAside, ReservationID: r.ReservationID,
				ActivityID: r.ActivityID, SKUID: r.SKUID, UserID: r.UserID, Status: seckill.StatusSetAside})
			if err != nil {
				t.Fatal(err)
			}
			w.outbox[j].EventType, w.outbox[j].Payload = seckill.EventSetAside, payload
		}
	}
	key := seckill.KeysOf(activityID, skuID).Reservation(r.ReservationID)
	for j := range w.keys {
		if h := w.keys[j].Hash; w.keys[j].Key == key {
			h["status"] = string(seckill.StatusSetAside)
			for _, field := range []string{"compensated_at", "compensation_id", "returned"} {
				delete(h, field)
			}
		}
	}
	for j := range w.queries {
		if q := &w.queries[j]; q.ReservationID == r.ReservationID && q.Reason != "" {
			q.Status, q.Reason = string(seckill.StatusSetAside), ""
		}
	}
	run := w.judged(t)
	for _, inv := range run.Invariants {
		if (inv.ID == "I4") != (inv.Status == rundir.StatusViolated) {
			t.Errorf("%s is %s: %s", inv.ID, inv.Status, strings.Join(inv.Witness, "\n"))
		}
	}
	if got := witnesses(run, "I4"); !strings.Contains(got, r.ReservationID) || !strings.Contains(got, "for a person to look at") {
		t.Errorf("I4 says %s", got)
	}
}
