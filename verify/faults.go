package verify

import (
	"fmt"
	"strings"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// benchActor is the actor of timeline events that are no fault.
const benchActor = "bench"

// Hits that no timeline knows: verify counts them in the stores.
const (
	// HitResentByScannerOnly counts orders all of whose create messages were
	// the scanner's.
	HitResentByScannerOnly = "resent_by_scanner_only"
	// HitResentBesideOriginal counts orders of which the broker stored the
	// original create message and one of the scanner's.
	HitResentBesideOriginal = "resent_beside_original"
	// HitResold counts reservations beyond the stock: of units that had come
	// back.
	HitResold = "resold"
	// Before a status, "ended:REJECTED_LATE": the reservations that PostgreSQL
	// ended so. Before a code, "answered:DUPLICATE_USER": the answers with it.
	hitEnded    = "ended:"
	hitAnswered = "answered:"
)

// HitEnded names the reservations that ended as s.
func HitEnded(s seckill.ReservationStatus) string { return hitEnded + string(s) }

// HitAnswered names the answers with code c.
func HitAnswered(c seckill.Code) string { return hitAnswered + c.String() }

// faultResults adds up what each fault of the timeline hit, with what the
// stores tell, and whether that is what the plan asks for.
func (e *evidence) faultResults() []rundir.FaultResult {
	results := []rundir.FaultResult{}
	index := map[string]int{}
	add := func(name string) *rundir.FaultResult {
		i, ok := index[name]
		if !ok {
			i = len(results)
			index[name] = i
			results = append(results, rundir.FaultResult{Name: name, Hits: map[string]int64{}})
		}
		return &results[i]
	}
	for i := range e.timeline {
		ev := &e.timeline[i]
		if ev.Actor == benchActor {
			continue
		}
		_, known := index[ev.Actor]
		r := add(ev.Actor)
		if !known {
			r.Target, r.AtMS = ev.Target, ev.AtMS
		}
		r.UntilMS = max(r.UntilMS, ev.AtMS)
		for hit, n := range ev.Hits {
			r.Hits[hit] += n
		}
	}
	for _, must := range e.plan.MustHits {
		r := add(must.Fault)
		if n, ok := e.countHit(must.Hit); ok {
			r.Hits[must.Hit] = n
		}
	}
	for i := range results {
		results[i].Bit = e.bit(&results[i])
	}
	return results
}

// countHit counts a hit that the stores or the history know; false: it is the
// timeline's.
func (e *evidence) countHit(hit string) (int64, bool) {
	switch status, ended := strings.CutPrefix(hit, hitEnded); {
	case hit == HitResentByScannerOnly:
		return e.resent(false), true
	case hit == HitResentBesideOriginal:
		return e.resent(true), true
	case hit == HitResold:
		return e.resold(), true
	case ended:
		return e.ended(seckill.ReservationStatus(status)), true
	}
	if name, ok := strings.CutPrefix(hit, hitAnswered); ok {
		code, known := seckill.ParseCode(name)
		if !known || e.answers == nil {
			return 0, true
		}
		return e.answers.figures.codes[code], true
	}
	return 0, false
}

// bit says that the fault hit what it must, or, asked for nothing, anything.
func (e *evidence) bit(r *rundir.FaultResult) bool {
	asked := false
	for _, must := range e.plan.MustHits {
		if must.Fault == r.Name {
			asked = true
			if r.Hits[must.Hit] < must.AtLeast {
				return false
			}
		}
	}
	if asked {
		return true
	}
	for _, n := range r.Hits {
		if n > 0 {
			return true
		}
	}
	return false
}

// missedHits says which faults did not do what the plan asks of them.
func missedHits(plan *rundir.Plan, faults []rundir.FaultResult) []string {
	var missed []string
	for _, must := range plan.MustHits {
		hits := int64(0)
		for i := range faults {
			if faults[i].Name == must.Fault {
				hits = faults[i].Hits[must.Hit]
			}
		}
		if hits < must.AtLeast {
			missed = append(missed, fmt.Sprintf("fault %s did not bite: %s must be at least %d and is %d", must.Fault, must.Hit, must.AtLeast, hits))
		}
	}
	return missed
}

// resent counts orders that the scanner sent, alone or beside an original.
func (e *evidence) resent(original bool) int64 {
	orders := int64(0)
	for _, s := range e.sales {
		for _, r := range s.reservations {
			resends := 0
			for _, m := range r.messages {
				if m.resend {
					resends++
				}
			}
			if len(r.orders) > 0 && resends > 0 && (resends < len(r.messages)) == original {
				orders++
			}
		}
	}
	return orders
}

func (e *evidence) ended(as seckill.ReservationStatus) int64 {
	n := int64(0)
	for _, s := range e.sales {
		for _, r := range s.reservations {
			if r.status() == as {
				n++
			}
		}
	}
	return n
}

func (e *evidence) resold() int64 {
	n := int64(0)
	for _, s := range e.sales {
		reserved := int64(0)
		for i := range s.log {
			if s.log[i].Op == "reserve" {
				reserved += int64(len(s.log[i].Reservations))
			}
		}
		n += max(0, reserved-s.plan.Stock)
	}
	return n
}
