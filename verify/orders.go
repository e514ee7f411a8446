package verify

import (
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/hotsku/hotsku/verify/rundir"
)

// inTime is the target for an order after its reservation (R1.5).
const inTime = 3 * time.Second

// orderFigures recomputes what became of the accepted, over all SKUs. An
// order was created when the transaction of its SALE committed; the SALE is
// never updated, so its commit time stays.
type orderFigures struct {
	result    rundir.OrdersResult
	reserved  int64 // reserve entries of the change log
	stages    [4]int64
	latency   *hdrhistogram.Histogram
	perSecond map[int]int64
}

func (e *evidence) orderFigures() *orderFigures {
	f := &orderFigures{latency: newHistogram(), perSecond: map[int]int64{}}
	accepted := map[[16]byte]struct{}{}
	if e.answers != nil {
		for i := range e.answers.kept {
			if a := &e.answers.kept[i]; codeOf(a).Accepted() && a.Tag != ([16]byte{}) {
				accepted[a.Tag] = struct{}{}
			}
		}
	}
	f.result.Accepted = int64(len(accepted))
	first, last := e.handOut()
	if last > first {
		f.result.HandOutMS = float64(last-first) / 1000
	}
	within := int64(0)
	for _, s := range e.sales {
		for _, r := range s.reservations {
			within += f.add(r, time.UnixMicro(first))
		}
	}
	if f.result.Valid > 0 {
		f.result.Within3sRatio = float64(within) / float64(f.result.Valid)
	}
	f.result.ConservationDelta, f.result.Oversold = e.conservationDelta, e.oversold
	f.result.LatencyMS = percentiles(f.latency)
	f.result.PerSecond = []rundir.OrdersAt{}
	for _, second := range sortedKeys(f.perSecond) {
		f.result.PerSecond = append(f.result.PerSecond, rundir.OrdersAt{Second: second, Orders: f.perSecond[second]})
		f.result.PerSPeak = max(f.result.PerSPeak, f.perSecond[second])
	}
	return f
}

// add counts one reservation and returns how many of its valid orders were
// in time.
func (f *orderFigures) add(r *reservation, first time.Time) (within int64) {
	f.reserved += int64(len(r.reserves))
	f.pass(r)
	if r.status().Rejected() {
		f.result.Rejected++
	}
	reserved, known := r.reservedAt()
	for _, o := range r.orders {
		f.result.Created++
		if !valid(o) {
			continue
		}
		f.result.Valid++
		i := slices.IndexFunc(r.sales, func(l *rundir.LedgerRow) bool { return deref(l.OrderID) == o.OrderID })
		if i < 0 || !known || r.sales[i].CommittedAt.IsZero() {
			continue // without its times it counts as late
		}
		created := r.sales[i].CommittedAt
		took := created.Sub(reserved)
		observe(f.latency, took.Nanoseconds())
		if took <= inTime {
			within++
		}
		f.perSecond[int(max(0, created.Sub(first))/time.Second)]++
	}
	return within
}

// pass counts a reservation in every stage it came through without a gap:
// reserved, message stored, decided, ordered.
func (f *orderFigures) pass(r *reservation) {
	for i, passed := range []bool{len(r.reserves) > 0, len(r.messages) > 0, r.row != nil, slices.ContainsFunc(r.orders, valid)} {
		if !passed {
			return
		}
		f.stages[i]++
	}
}

// handOut is the time of the first and the last reservation, microseconds.
func (e *evidence) handOut() (first, last int64) {
	for _, s := range e.sales {
		for i := range s.log {
			if entry := &s.log[i]; entry.Op == logReserve {
				if first == 0 || entry.AtUS < first {
					first = entry.AtUS
				}
				last = max(last, entry.AtUS)
			}
		}
	}
	return first, last
}

// funnel says what became of the reservations.
func (f *orderFigures) funnel() []rundir.FunnelStage {
	return []rundir.FunnelStage{
		{Source: rundir.ByStores, Stage: "message stored", In: f.stages[0], Out: f.stages[1]},
		{Source: rundir.ByStores, Stage: "decided by PostgreSQL", In: f.stages[1], Out: f.stages[2]},
		{Source: rundir.ByStores, Stage: "ordered", In: f.stages[2], Out: f.stages[3]},
	}
}
