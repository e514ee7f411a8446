package verify

import (
	"time"

	"github.com/hotsku/hotsku/loadgen/history"
)

// noPhantomOrder is I5: each order traces to a request that was sent, by that
// user, for that SKU, under that request id; and its reservation still held
// when the transaction that made it began: a late message becomes no order
// (specification 8.3).
//
// Both moments are the servers' own, on one machine (contracts.md section 5).
var noPhantomOrder = check{id: "I5", name: "no phantom order", history: true,
	needs: []source{fromPlan, fromHistory, fromOrders, fromInbox, fromMessages}, run: judgeNoPhantomOrder}

func judgeNoPhantomOrder(e *evidence, f *finding) {
	s := e.sales[0]
	for _, o := range s.orders {
		f.check(1)
		f.moment(e.ofOrder(o))
		ordinal, ok := e.plan.Workload.Ordinal(o.RequestID)
		if !ok {
			f.violate("%s: %s must trace to a request, and its request id is none of this run's: +1 phantom order", s.key(), orderWords(o))
			continue
		}
		sent := false
		for _, r := range e.answers.requests(ordinal) {
			if int64(r.Subject) == o.UserID && r.Outcome != history.Dropped {
				sent = true
			}
		}
		if !sent {
			f.violate("%s: %s must trace to a request, and user %d never sent request id %s: +1 phantom order",
				s.key(), orderWords(o), o.UserID, o.RequestID)
		}
	}
	for _, r := range s.reservations {
		if late := r.late(); len(r.orders) > 0 && late > clockToleranceUS*time.Microsecond {
			f.violate("%s: reservation %s no longer held when its message was taken in, %s late, and became %s: +1 late order",
				s.key(), r, clock(late.Nanoseconds()), orderWords(r.orders[0]))
		}
	}
}

// late is how long after the end of the reservation's hold its message was
// taken in, 0 or less where it held or that is not known.
func (r *reservation) late() time.Duration {
	if len(r.messages) == 0 || r.begun.IsZero() || r.messages[0].expires.IsZero() {
		return 0
	}
	return r.begun.Sub(r.messages[0].expires)
}
