package verify

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/verify/rundir"
)

// The phases of a run, in their order.
const (
	phaseBurst       = "burst"       // its first moments, while everybody comes at once
	phaseHandOut     = "hand-out"    // until the last reservation
	phaseSoldOut     = "sold out"    // until the last request was due
	phaseConvergence = "convergence" // until the last order was committed
	burstLength      = 500 * time.Millisecond
)

// phases divides a run, and counts what happened in each part: requests by
// when they were due, and what the stores wrote by their own times.
type phases struct {
	start int64 // Unix nanoseconds
	all   []phase
}

type phase struct {
	name        string
	from, until int64 // nanoseconds since the start of the load
	due         int64
	answered    int64
	latency     *hdrhistogram.Histogram
	reserved    int64
	stored      int64
	ordered     int64
}

// newPhases takes the boundaries from the change logs and the ledger. A phase
// that took no time is left out.
func newPhases(e *evidence, startUnixNano int64) *phases {
	p := &phases{start: startUnixNano}
	load := e.plan.Load.DurationMS * int64(time.Millisecond)
	_, last := e.handOut()
	handedOut := min(max(last*1000-startUnixNano, 0), load)
	end := load
	for _, s := range e.sales {
		for _, r := range s.reservations {
			for _, l := range r.sales {
				if !l.CommittedAt.IsZero() {
					end = max(end, l.CommittedAt.UnixNano()-startUnixNano+1)
				}
			}
		}
	}
	from := int64(0)
	for _, next := range []struct {
		name  string
		until int64
	}{{phaseBurst, min(int64(burstLength), load)}, {phaseHandOut, handedOut}, {phaseSoldOut, load}, {phaseConvergence, end}} {
		if next.until > from {
			p.all = append(p.all, phase{name: next.name, from: from, until: next.until, latency: newHistogram()})
			from = next.until
		}
	}
	p.stores(e)
	return p
}

// at is the phase of a time since the start, nil outside of all.
func (p *phases) at(ns int64) *phase {
	for i := range p.all {
		if f := &p.all[i]; ns >= f.from && ns < f.until {
			return f
		}
	}
	return nil
}

func (p *phases) record(r *history.Record) {
	f := p.at(r.Intended)
	if f == nil {
		return
	}
	f.due++
	if r.Outcome == history.Completed {
		f.answered++
		observe(f.latency, r.Done-r.Intended)
	}
}

// stores counts what each store wrote in each phase.
func (p *phases) stores(e *evidence) {
	count := func(unixNano int64, add func(*phase)) {
		if f := p.at(unixNano - p.start); f != nil {
			add(f)
		}
	}
	for _, s := range e.sales {
		for i := range s.log {
			if entry := &s.log[i]; entry.Op == logReserve {
				count(entry.AtUS*1000, func(f *phase) { f.reserved += int64(len(entry.Reservations)) })
			}
		}
		for _, r := range s.reservations {
			for _, m := range r.messages {
				count(m.storedAtMS*1e6, func(f *phase) { f.stored++ })
			}
			for _, l := range r.sales {
				count(l.CommittedAt.UnixNano(), func(f *phase) { f.ordered++ })
			}
		}
	}
}

// result is what run.json says of them.
func (p *phases) result() []rundir.Phase {
	out := []rundir.Phase{}
	for i := range p.all {
		f := &p.all[i]
		seconds := time.Duration(f.until - f.from).Seconds()
		per := func(n int64) float64 { return math.Round(float64(n)/seconds*10) / 10 }
		out = append(out, rundir.Phase{Name: f.name, FromMS: float64(f.from) / 1e6, UntilMS: float64(f.until) / 1e6,
			DuePerS: per(f.due), AnsweredPerS: per(f.answered), LatencyMS: percentiles(f.latency),
			ReservedPerS: per(f.reserved), StoredPerS: per(f.stored), OrderedPerS: per(f.ordered)})
	}
	return out
}

// cores fills in which processes were busy by how much in each phase: CPU
// seconds a second, between samples as if evenly used.
func cores(of []rundir.Phase, usage []rundir.UsageAt) []rundir.Phase {
	if len(usage) < 2 {
		return of
	}
	filled := make([]rundir.Phase, 0, len(of))
	for _, f := range of {
		f.Cores = map[string]float64{}
		for name := range usage[len(usage)-1].CPUSeconds {
			busy := usedUntil(usage, name, f.UntilMS) - usedUntil(usage, name, f.FromMS)
			f.Cores[name] = math.Round(busy/(f.UntilMS-f.FromMS)*1e6) / 1e3
		}
		filled = append(filled, f)
	}
	return filled
}

// usedUntil is a process's CPU time at a moment.
func usedUntil(usage []rundir.UsageAt, name string, ms float64) float64 {
	before := usage[0]
	for _, u := range usage {
		if float64(u.AtMS) >= ms {
			if u.AtMS == before.AtMS {
				return u.CPUSeconds[name]
			}
			share := (ms - float64(before.AtMS)) / float64(u.AtMS-before.AtMS)
			return before.CPUSeconds[name] + max(0, share)*(u.CPUSeconds[name]-before.CPUSeconds[name])
		}
		before = u
	}
	return before.CPUSeconds[name]
}
