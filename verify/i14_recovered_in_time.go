package verify

import "github.com/hotsku/hotsku/verify/rundir"

// recoveredInTime is I14: after the load, and after a fault has ended,
// nothing is pending anywhere within the plan's time: no reservation without
// a confirmed message, no message that was not consumed, no event that was
// not published, no order that should have expired. What the snapshot says of
// itself is held against the stores. And each request whose outcome its client
// does not know has come to one end within the budget.
var recoveredInTime = check{id: "I14", name: "recovered in time",
	needs: []source{fromPlan, fromSnapshot, fromTimeline, fromHistory, fromKeys, fromOffsets, fromReservations, fromLedger, fromOutbox}, run: judgeRecoveredInTime}

func judgeRecoveredInTime(e *evidence, f *finding) {
	f.check(1)
	pending, lag := int64(0), int64(0)
	for _, s := range e.sales {
		pending += int64(s.pending)
	}
	for i := range e.offsets {
		lag += e.lagOf(&e.offsets[i])
	}
	s, limit := e.snapshot, e.plan.Limits.ConvergeMS
	switch {
	case !s.Quiescent:
		f.violate("nothing may be pending %d ms after the last answer, and after %d ms there were %d reservations pending, %d messages not consumed, %d events not published, %d orders overdue",
			limit, s.WaitedMS, max(s.Pending, pending), max(s.Lag, lag), max(s.Outbox, e.outbox), s.Overdue)
	case s.WaitedMS > limit:
		f.violate("nothing may be pending %d ms after the last answer, and it took %d ms: %+d ms", limit, s.WaitedMS, s.WaitedMS-limit)
	case pending+lag+e.outbox > 0:
		f.violate("the snapshot was taken as quiescent, and in it are %d reservations pending, %d messages not consumed, %d events not published: %+d",
			pending, lag, e.outbox, pending+lag+e.outbox)
	}
	if len(e.sales) == 1 { // a history does not say which sale a request was for
		e.judgeAmbiguous(f)
	}
}

func (e *evidence) lagOf(o *rundir.Offset) int64 { return max(0, o.Max-max(o.Consumed, o.Min)) }
