package verify

import (
	"slices"
	"time"

	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// noPrematureSuccess is I8: no answer and no query says that an order exists,
// or was paid or has ended, before the transaction that makes it so has
// committed. Whoever hears it from the product hears it after; a moment at
// which an answer had arrived is later still. So each answer that had arrived
// before the commit time of the ledger entry it speaks of is a lie. The ledger
// is insert-only: its entries keep their commit times, where an order's row
// has that of its last change.
//
// PostgreSQL's clock and the asker's are one machine's (contracts.md section
// 5), within clockToleranceUS.
var noPrematureSuccess = check{id: "I8", name: "no premature success", history: true,
	needs: []source{fromPlan, fromSnapshot, fromHistory, fromQueries, fromOrders, fromLedger}, run: judgeNoPrematureSuccess}

func judgeNoPrematureSuccess(e *evidence, f *finding) {
	s := e.sales[0]
	for i := range e.answers.kept {
		if a := &e.answers.kept[i]; codeOf(a).Accepted() {
			f.check(1)
			f.moment(ofAnswer(a))
			s.judgeCreatedAnswer(e, a, f)
		}
	}
	byOrder := map[string]*reservation{}
	for _, r := range s.reservations {
		for _, o := range r.orders {
			byOrder[o.OrderID] = r
		}
		for _, l := range r.sales {
			byOrder[deref(l.OrderID)] = r
		}
	}
	for i := range e.queries {
		if q := &e.queries[i]; q.Failed == "" {
			f.check(1)
			f.moment(e.ofQuery(q))
			s.judgeTold(e, q, byOrder, f)
		}
	}
}

// judgeCreatedAnswer holds an ORDER_CREATED of the edge against the order's
// commit.
func (s *sale) judgeCreatedAnswer(e *evidence, a *history.Record, f *finding) {
	if codeOf(a) != seckill.CodeOrderCreated {
		return
	}
	r := s.byID[named(a)]
	if r == nil || len(r.sales)+len(r.orders) == 0 {
		f.violate("%s: user %d was answered ORDER_CREATED with reservation %s at %s for request %d, and no order of it was ever committed: +1 success without an order",
			s.key(), a.Subject, named(a), clock(a.Done), a.N)
		return
	}
	if late, ok := committedAfter(r.sales, entrySale, e.wallUS(a.Done), f); ok {
		f.violate("%s: user %d was answered ORDER_CREATED at %s for request %d, and order %s was committed only %s later: it may be told after its commit",
			s.key(), a.Subject, clock(a.Done), a.N, deref(r.sales[0].OrderID), clock(late))
	}
}

// judgeTold holds what a query said of an order against the ledger. What was
// asked for after the snapshot may have ended since.
func (s *sale) judgeTold(e *evidence, q *rundir.Query, byOrder map[string]*reservation, f *finding) {
	end, speaks := orderToldOf(q)
	if !speaks {
		return
	}
	r := byOrder[q.OrderID]
	if q.OrderID == "" {
		r = s.byID[q.ReservationID]
	}
	since := q.DoneUS > e.snapshot.TakenAt.UnixMicro()
	if r == nil || len(r.sales)+len(r.orders) == 0 {
		if !since || e.quiescent() {
			f.violate("%s: %s, was told %s, and no such order was ever committed: +1 success without an order", s.key(), e.asked(q), queryWords(q))
		}
		return
	}
	if late, ok := committedAfter(r.sales, entrySale, q.DoneUS, f); ok {
		f.violate("%s: %s, was told %s at %s, and the order was committed only %s later: it may be told after its commit",
			s.key(), e.asked(q), queryWords(q), clock(e.sinceStart(q.DoneUS)), clock(late))
		return
	}
	if end == "" || since {
		return
	}
	ended := func(l *rundir.LedgerRow) bool { return l.EntryType == end }
	if late, ok := committedAfter(r.closings, end, q.DoneUS, f); ok {
		f.violate("%s: %s, was told %s at %s, and the %s was committed only %s later: it may be told after its commit",
			s.key(), e.asked(q), queryWords(q), clock(e.sinceStart(q.DoneUS)), end, clock(late))
	} else if !slices.ContainsFunc(r.closings, ended) && !slices.ContainsFunc(r.orders, func(o *rundir.OrderRow) bool { return closingEntry(o) == end }) {
		f.violate("%s: %s, was told %s, and no %s of that order was ever committed: +1 end that never was", s.key(), e.asked(q), queryWords(q), end)
	}
}

// orderToldOf says whether an answer speaks of an order, and of which end of
// it, by the ledger's name, "" for none.
func orderToldOf(q *rundir.Query) (end string, speaks bool) {
	if code := told(q); code != seckill.CodeFound && code != seckill.CodeOrderEnded {
		return "", false
	}
	status := q.Status
	if status == seckill.StatusCompensated {
		status = q.Reason
	}
	switch status {
	case string(seckill.StatusOrderCreated), string(seckill.OrderCreated):
		return "", true
	case string(seckill.OrderPaid):
		return entryPay, true
	case string(seckill.OrderCancelled):
		return entryCancel, true
	case string(seckill.OrderExpired):
		return entryExpire, true
	}
	return "", q.OrderID != ""
}

// committedAfter says by how much the entry of a type was committed after a
// moment, in nanoseconds, where that is more than clocks may differ by. An
// entry that is missing beside its order is I15's.
func committedAfter(entries []*rundir.LedgerRow, entry string, us int64, f *finding) (late int64, after bool) {
	for _, l := range entries {
		if l.EntryType != entry {
			continue
		}
		if l.CommittedAt.IsZero() {
			f.block(string(fromLedger) + ": the " + entry + " of order " + deref(l.OrderID) + " has no commit time")
			return 0, false
		}
		gap := l.CommittedAt.Sub(time.UnixMicro(us))
		return gap.Nanoseconds(), gap > clockToleranceUS*time.Microsecond
	}
	return 0, false
}
