package verify

import (
	"fmt"
	"math"

	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// failClosed is I11: while a dependency is down beyond its limit, no new
// reservation is made, and answers say UNAVAILABLE. Without Redis nobody knows
// anything: SOLD_OUT would be a guess, and so would be any answer about a
// reservation. Without the broker or PostgreSQL what is known may be said (I10
// judges SOLD_OUT), and as many reservations may be made as are needed to find
// out whether it works again.
//
// The plan says by which fault and from when on (rundir.Outage); the timeline
// says when it bit and when it began to be healed; the change log says what was
// reserved in between. A run in which nothing was down for that long, or nobody
// was answered UNAVAILABLE meanwhile, proves nothing.
var failClosed = check{id: "I11", name: "fail closed", history: true,
	needs: []source{fromPlan, fromHistory, fromTimeline, fromLog}, run: judgeFailClosed}

// Events of a fault in the timeline by which its time is told.
const (
	eventBit     = "bit"
	eventHealing = "healing"
)

// outage is one time in which the sale must be closed, nanoseconds since the
// start of the load, clock tolerance taken off both ends.
type outage struct {
	plan     rundir.Outage
	from, to int64

	answers     int64 // sent and answered within it
	unavailable int64
	wrong       int64
	first       []string // what was answered wrongly
}

func (o *outage) String() string {
	return fmt.Sprintf("%s was down by %s from %s to %s", o.plan.Dependency, o.plan.Fault, clock(o.from), clock(o.to))
}

// outages are the times of the plan's outages.
func (e *evidence) outages() []*outage {
	var all []*outage
	for _, p := range e.plan.Outages {
		bit := int64(-1)
		for i := range e.timeline {
			ev := &e.timeline[i]
			if ev.Actor != p.Fault {
				continue
			}
			switch {
			case ev.Event == eventBit && bit < 0:
				bit = ev.AtMS
			case ev.Event == eventHealing && bit >= 0:
				o := &outage{plan: p, from: (bit+1+p.LimitMS)*1e6 + clockToleranceUS*1000, to: ev.AtMS*1e6 - clockToleranceUS*1000}
				if o.from < o.to {
					all = append(all, o)
				}
				bit = -1
			}
		}
	}
	return all
}

// answer judges an answer as it streams by.
func (o *outage) answer(r *history.Record) {
	if r.Outcome != history.Completed || r.Sent < o.from || r.Done > o.to {
		return
	}
	o.answers++
	switch code := codeOf(r); {
	case code == seckill.CodeUnavailable:
		o.unavailable++
	case o.plan.Dependency == rundir.OnRedis && (code == seckill.CodeSoldOut || code.Accepted() || code == seckill.CodeDuplicateUser || code == seckill.CodeIdempotencyConflict):
		o.wrong++
		if len(o.first) < WitnessesMax {
			o.first = append(o.first, fmt.Sprintf("user %d was answered %s at %s for request %d sent at %s", r.Subject, code, clock(r.Done), r.N, clock(r.Sent)))
		}
	}
}

func judgeFailClosed(e *evidence, f *finding) {
	s := e.sales[0]
	if len(e.plan.Outages) == 0 {
		f.block(string(fromPlan) + ": no dependency is to be down beyond its limit, so nothing had to close")
		return
	}
	long := map[string]bool{}
	for _, o := range e.answers.outages {
		long[o.plan.Fault] = true
		f.check(int(o.answers))
		for _, w := range o.first {
			f.violate("%s: %s: who asks then must be told UNAVAILABLE, and %s", s.key(), o, w)
		}
		f.violations += o.wrong - int64(len(o.first))
		s.judgeClosed(e, o, f)
		if o.unavailable == 0 {
			f.block(fmt.Sprintf("history: %s, and of %d answers none was UNAVAILABLE: nobody saw the sale closed", o, o.answers))
		}
	}
	for _, p := range e.plan.Outages {
		if !long[p.Fault] {
			f.block(fmt.Sprintf("%s: %s was never down by %s for longer than %d ms: nothing had to close", fromTimeline, p.Dependency, p.Fault, p.LimitMS))
		}
	}
}

// judgeClosed counts the reservations made while the sale must be closed.
func (s *sale) judgeClosed(e *evidence, o *outage, f *finding) {
	made, first := int64(0), (*rundir.LogEntry)(nil)
	for i := range s.log {
		entry := &s.log[i]
		if at := e.sinceStart(entry.AtUS); entry.Op != logReserve || at < o.from || at > o.to {
			continue
		}
		f.check(1)
		made += int64(len(entry.Reservations))
		if first == nil {
			first = entry
		}
	}
	allowed := o.plan.ProbesPerS * int64(math.Ceil(float64(o.to-o.from)/1e9))
	if made > allowed {
		f.violate("%s: %s: at most %d reservations may be made then, and %d were, the first %s by change log entry %s at %s: %+d",
			s.key(), o, allowed, made, first.Reservations[0], first.ID, clock(e.sinceStart(first.AtUS)), made-allowed)
	}
}
