package verify

import "github.com/hotsku/hotsku/loadgen/history"

// noPhantomOrder is I5: each order traces to a request that was sent, by that
// user, for that SKU, under that request id.
var noPhantomOrder = check{id: "I5", name: "no phantom order", history: true,
	needs: []source{fromPlan, fromHistory, fromOrders}, run: judgeNoPhantomOrder}

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
}
