package verify

import (
	"strings"

	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// nothingAcceptedLost is I4: each QUEUED or QUEUED_PENDING_MESSAGE answer
// ends, by quiescence, as one order of that user or one compensated
// rejection, in PostgreSQL and in what the query shows of Redis. In a
// snapshot taken before quiescence a reservation whose message is pending or
// stored is late, not lost.
var nothingAcceptedLost = check{id: "I4", name: "no acceptance lost", history: true,
	needs: []source{fromPlan, fromSnapshot, fromHistory, fromKeys, fromOrders, fromReservations, fromOutbox, fromMessages},
	run:   judgeNothingAcceptedLost}

func judgeNothingAcceptedLost(e *evidence, f *finding) {
	s := e.sales[0]
	seen := map[[16]byte]bool{}
	for i := range e.answers.kept {
		a := &e.answers.kept[i]
		if !codeOf(a).Accepted() {
			continue
		}
		f.moment(ofAnswer(a))
		if a.Tag == ([16]byte{}) {
			f.check(1)
			f.violate("%s: request %d was answered %s without a reservation: nothing stands behind it: -1", s.key(), a.N, codeOf(a))
			continue
		}
		if seen[a.Tag] {
			continue
		}
		seen[a.Tag] = true
		s.judgeAccepted(e, a, f)
	}
}

func (s *sale) judgeAccepted(e *evidence, a *history.Record, f *finding) {
	id, user := named(a), int64(a.Subject)
	r := s.byID[id]
	if r == nil {
		f.check(1)
		if e.redisMayLose() {
			s.judgeLost(e, a, f)
			return
		}
		f.violate("%s: request %d of user %d was answered %s with reservation %s, and no store knows it: -1", s.key(), a.N, user, codeOf(a), id)
		return
	}
	if r.row == nil && !e.quiescent() && r.onItsWay() {
		return
	}
	f.check(1)
	lost := func(found string) {
		f.violate("%s: user %d was answered %s with reservation %s, which must end as one order or one compensated rejection: %s: -1",
			s.key(), user, codeOf(a), r.id, found)
	}
	status := r.status()
	switch {
	case r.row == nil && len(r.orders) > 0:
		lost("PostgreSQL has " + orderWords(r.orders[0]) + " but never decided the reservation")
	case r.row == nil:
		lost("PostgreSQL never decided it, and Redis says " + r.hashWords())
	case status == seckill.StatusSetAside:
		lost("it is set aside for a person to look at")
	case status.Rejected():
		if len(r.compensations()) == 0 {
			lost("PostgreSQL says " + string(status) + ", and no compensation was made")
		}
	case len(r.orders) == 0:
		lost("PostgreSQL says " + string(status) + " with order " + deref(r.row.OrderID) + ", and there is no such order")
	case r.orders[0].UserID != user:
		lost("its " + orderWords(r.orders[0]) + " is another user's")
	case r.orders[0].OrderID != deref(r.row.OrderID):
		lost("PostgreSQL says order " + deref(r.row.OrderID) + ", and the order of the reservation is " + orderWords(r.orders[0]))
	}
	if r.row != nil && e.quiescent() && !e.redisMayLose() {
		s.judgeShown(r, user, f)
	}
}

// judgeLost is what the loss contract of Redis leaves of an acceptance that no
// store knows: nothing of it was sent, and it ends in a rejection that the query
// shows, or in what became of the same request sent again.
func (s *sale) judgeLost(e *evidence, a *history.Record, f *finding) {
	if fault := e.faults[fromQueries]; fault != nil {
		f.block(fault.Error())
		return
	}
	id, requestID := named(a), e.plan.Workload.RequestID(a.Ordinal)
	if !e.lossAllowed(a.Done) {
		f.violate("%s: request %d of user %d was answered %s with reservation %s at %s, and no store knows it, though Redis may lose only the %d ms before it was killed: -1",
			s.key(), a.N, a.Subject, codeOf(a), id, clock(a.Done), rundir.LossEverysecMS)
		return
	}
	found := "and was not asked for at the end"
	for i := range e.queries {
		q := &e.queries[i]
		if !q.Census || q.Failed != "" || q.User != int64(a.Subject) || q.RequestID != requestID {
			continue
		}
		if code := told(q); code == seckill.CodeNotAccepted || code == seckill.CodeFound {
			return
		}
		found = "and the query says " + queryWords(q)
	}
	f.violate("%s: reservation %s, with which request %d of user %d was answered %s, was lost with Redis before it was sent and must end in a rejection the query shows, %s: -1",
		s.key(), id, a.N, a.Subject, codeOf(a), found)
}

// lossAllowed says that Redis may have lost what was accepted at that time,
// nanoseconds since the start: with everysec alone only what it had not synced
// when a fault took it.
func (e *evidence) lossAllowed(done int64) bool {
	if e.lossDeclared(rundir.LossRedisFailover) || e.lossDeclared(rundir.LossRedisRestoredOlder) {
		return true
	}
	for i := range e.timeline {
		ev := &e.timeline[i]
		if at := ev.AtMS * 1e6; ev.Actor != benchActor && strings.Contains(ev.Target, rundir.OnRedis) && done <= at && done >= at-rundir.LossEverysecMS*1e6 {
			return true
		}
	}
	return false
}

// judgeShown holds the query's source, Redis, against PostgreSQL's decision.
func (s *sale) judgeShown(r *reservation, user int64, f *finding) {
	status := r.status()
	switch {
	case r.hash == nil:
		f.violate("%s: user %d's reservation %s ended as %s, and the query cannot show it: Redis has no such reservation", s.key(), user, r.id, status)
	case r.hash.status != string(status),
		!status.Rejected() && r.hash.orderID != deref(r.row.OrderID),
		status.Compensated() && r.hash.compensatedAt == 0:
		f.violate("%s: user %d's reservation %s ended as %s %s, and the query shows %s",
			s.key(), user, r.id, status, deref(r.row.OrderID), r.hashWords())
	}
}

// hashWords says what Redis holds of the reservation.
func (r *reservation) hashWords() string {
	if r.hash == nil {
		return "nothing"
	}
	words := r.hash.status
	if r.hash.orderID != "" {
		words += " order " + r.hash.orderID
	}
	if r.hash.compensatedAt != 0 {
		words += ", compensated"
	}
	return words
}
