package verify

import (
	"time"

	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// ambiguous says that nobody knows from the answer whether the request made a
// reservation: it timed out, its connection broke, the run ended before it
// was answered, or the edge itself did not know.
func ambiguous(r *history.Record) bool {
	switch r.Outcome {
	case history.Failed, history.TimedOut, history.Unfinished:
		return true
	}
	return codeOf(r) == seckill.CodeUnavailable
}

// judgeAmbiguous resolves each unknown outcome from the stores: the request
// made no reservation, or it made one that came to its one end within the
// budget. The budget counts from when its client gave it up, or from when the
// last fault was healed or the reservation was made, if that was later.
func (e *evidence) judgeAmbiguous(f *finding) {
	s, budget := e.sales[0], e.plan.Limits.AmbiguityMS
	if budget == 0 {
		budget = e.plan.Limits.ConvergeMS
	}
	healed := e.lastHealed()
	made := map[asker]*reservation{}
	for _, r := range s.reservations {
		if r.hash != nil || r.row != nil {
			made[asker{r.user(), r.requestID()}] = r
		}
	}
	f.check(int(e.answers.ambiguous))
	seen := map[*reservation]bool{}
	for i := range e.answers.kept {
		a := &e.answers.kept[i]
		if !ambiguous(a) {
			continue
		}
		r := made[asker{int64(a.Subject), e.plan.Workload.RequestID(a.Ordinal)}]
		if r == nil || seen[r] {
			continue
		}
		seen[r] = true
		f.moment(ofAnswer(a))
		since := max(a.Done, healed)
		if at, ok := r.reservedAt(); ok { // by the same request sent again, if later
			since = max(since, e.sinceStart(at.UnixMicro()))
		}
		if ended, ok := r.endedAt(); !ok {
			f.violate("%s: the outcome of request %d of user %d was unknown at %s and must be settled within %d ms, and its reservation %s is undecided in the snapshot",
				s.key(), a.N, a.Subject, clock(a.Done), budget, r)
		} else if late := e.sinceStart(ended.UnixMicro()) - since - budget*1e6; late > clockToleranceUS*1000 {
			f.violate("%s: the outcome of request %d of user %d was unknown at %s and must be settled within %d ms, and its reservation %s ended (%s) %s later than that",
				s.key(), a.N, a.Subject, clock(a.Done), budget, r, r.status(), clock(late))
		}
	}
}

// endedAt is when PostgreSQL first ended the reservation, by the insert-only
// ledger.
func (r *reservation) endedAt() (time.Time, bool) {
	for _, l := range [][]*rundir.LedgerRow{r.sales, r.rejects} {
		if len(l) > 0 && !l[0].CommittedAt.IsZero() {
			return l[0].CommittedAt, true
		}
	}
	if r.row == nil {
		return time.Time{}, false
	}
	return r.row.CommittedAt, true
}

// lastHealed is when the last fault was healed, nanoseconds since the start of
// the load; 0 if there was none.
func (e *evidence) lastHealed() int64 {
	last := int64(0)
	for i := range e.timeline {
		if ev := &e.timeline[i]; ev.Actor != benchActor {
			last = max(last, ev.AtMS*1e6)
		}
	}
	return last
}
