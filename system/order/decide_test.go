package order

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotsku/hotsku/system/seckill"
)

// TestDecideNeverSellsTwice holds decide to what must be true of any batch:
// each fresh message about an undecided reservation is decided once, a user
// gets one order, a unit goes to one order, and nobody is refused for want
// of stock while a unit is left.
func TestDecideNeverSellsTwice(t *testing.T) { // R1.6, R1.7, R13.1, R4.2, R15.4, R15.12
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		f := facts{
			offer: offer{status: seckill.ActivityRunning, version: 1, now: now},
			fresh: map[string]struct{}{}, decided: map[string]struct{}{}, buyers: map[int64]struct{}{},
		}
		if rapid.IntRange(0, 9).Draw(t, "closed") == 0 {
			f.offer.status = seckill.ActivityClosed
		}
		for unit := range rapid.IntRange(0, 8).Draw(t, "units") {
			f.units = append(f.units, int64(100+unit))
		}
		var messages []message
		for i := range rapid.IntRange(1, 12).Draw(t, "messages") {
			var m message
			m.MessageID = fmt.Sprintf("msg_%d", i)
			m.ReservationID = fmt.Sprintf("resv_%d", rapid.IntRange(0, 12).Draw(t, "reservation"))
			m.UserID = rapid.Int64Range(1, 8).Draw(t, "user")
			m.ActivityVersion = rapid.SampledFrom([]int64{1, 1, 1, 2}).Draw(t, "version")
			m.ReservationExpiresAt = now.Add(time.Duration(rapid.SampledFrom([]int{1, 1, 1, -1}).Draw(t, "life")) * time.Second)
			if rapid.IntRange(0, 4).Draw(t, "fresh") > 0 {
				f.fresh[m.MessageID] = struct{}{}
			}
			messages = append(messages, m)
		}
		if rapid.Bool().Draw(t, "someone bought before") {
			f.buyers[1] = struct{}{}
		}
		before := len(f.buyers)

		n := 0
		v := decide(messages, f, func() string { n++; return fmt.Sprintf("ord_%d", n) })

		if len(v.decisions)+v.duplicates+v.settled != len(messages) {
			t.Fatalf("%d messages became %d decisions, %d duplicates, %d settled", len(messages), len(v.decisions), v.duplicates, v.settled)
		}
		reservations, users, units, short := map[string]bool{}, map[int64]bool{}, map[int64]bool{}, 0
		for _, d := range v.decisions {
			if reservations[d.ReservationID] {
				t.Fatalf("%s decided twice", d.ReservationID)
			}
			reservations[d.ReservationID] = true
			switch {
			case d.status == seckill.StatusOrderCreated:
				if users[d.UserID] || units[d.unit] || d.unit == 0 || d.orderID == "" {
					t.Fatalf("order of user %d with unit %d: not the only one", d.UserID, d.unit)
				}
				users[d.UserID], units[d.unit] = true, true
				if d.ActivityVersion != 1 || now.After(d.ReservationExpiresAt) || f.offer.status != seckill.ActivityRunning {
					t.Fatalf("order for a message that should be rejected: %+v", d.message)
				}
			case d.orderID != "" || d.unit != 0:
				t.Fatalf("%s holds unit %d", d.status, d.unit)
			case d.status == seckill.StatusRejectedNoFinalStock:
				short++
			}
			if e := d.event(offer{}); (e.EventType == seckill.EventCompensate) != d.status.Compensated() {
				t.Fatalf("%s has event %s", d.status, e.EventType)
			}
		}
		if short != v.short || short > 0 && len(units) != len(f.units) {
			t.Fatalf("%d refused for want of stock (said %d) with %d of %d units used", short, v.short, len(units), len(f.units))
		}
		if len(f.buyers) != before+len(users) {
			t.Fatalf("%d buyers known, %d before, %d orders", len(f.buyers), before, len(users))
		}
	})
}
