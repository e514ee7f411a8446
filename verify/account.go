package verify

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// contradictionsMax bounds how many are described.
const contradictionsMax = 5

// firstPass accounts for every record, and holds the history against the
// plan: every scheduled request once, each with the user and request id the
// workload gives it.
type firstPass struct {
	plan    *rundir.Plan
	a       *answers
	about   *concerned
	seen    []uint64 // a bit a request
	strange int64    // records the plan does not explain
}

func newFirstPass(plan *rundir.Plan, a *answers, about *concerned) *firstPass {
	return &firstPass{plan: plan, a: a, about: about, seen: make([]uint64, (plan.Load.Scheduled+63)/64)}
}

func (p *firstPass) record(r *history.Record) {
	p.a.figures.record(r)
	if codeOf(r).Accepted() {
		p.about.ordinals[r.Ordinal] = struct{}{}
		p.about.users[int64(r.Subject)] = struct{}{}
	}
	if r.N >= uint64(p.plan.Load.Scheduled) {
		p.contradict("request %d is recorded, the plan schedules %d", r.N, p.plan.Load.Scheduled)
		return
	}
	word, bit := r.N/64, uint64(1)<<(r.N%64)
	if p.seen[word]&bit != 0 {
		p.contradict("request %d is recorded twice", r.N)
	}
	p.seen[word] |= bit
	pick := p.plan.Workload.Pick(r.N)
	if uint64(pick.User) != r.Subject || pick.Ordinal != r.Ordinal {
		p.contradict("request %d is recorded as user %d with request id %s, the plan's workload says user %d with %s", r.N,
			r.Subject, p.plan.Workload.RequestID(r.Ordinal), pick.User, p.plan.Workload.RequestID(pick.Ordinal))
	}
}

func (p *firstPass) contradict(format string, args ...any) {
	p.strange++
	if p.strange <= contradictionsMax {
		p.a.contradictions = append(p.a.contradictions, "history: "+fmt.Sprintf(format, args...))
	}
}

func (p *firstPass) close() {
	if p.strange > contradictionsMax {
		p.a.contradictions = append(p.a.contradictions, fmt.Sprintf("history: %d records in all are not the plan's", p.strange))
	}
	if f := p.a.figures; f.records+f.unrecorded != p.plan.Load.Scheduled {
		p.a.contradictions = append(p.a.contradictions, fmt.Sprintf(
			"history: %d requests are recorded and %d were dropped unrecorded, the plan schedules %d: %+d",
			f.records, f.unrecorded, p.plan.Load.Scheduled, f.records+f.unrecorded-p.plan.Load.Scheduled))
	}
}

// loadFigures adds up the history. Histograms are as the generator's, so
// that both give the same percentiles: nanoseconds, three digits.
type loadFigures struct {
	records, unrecorded  int64
	outcomes             [6]int64
	codes                [256]int64
	decided, acceptances int64
	lastAnswer           int64 // nanoseconds since the start
	all, accepted        *hdrhistogram.Histogram
	service, lag         *hdrhistogram.Histogram
	byCode               [256]*hdrhistogram.Histogram
}

const (
	latencyUnitNS = 1_000
	latencyMaxNS  = int64(24 * 3600 * 1e9)
)

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(latencyUnitNS, latencyMaxNS, 3) }

func newLoadFigures() *loadFigures {
	return &loadFigures{all: newHistogram(), accepted: newHistogram(), service: newHistogram(), lag: newHistogram()}
}

func observe(h *hdrhistogram.Histogram, ns int64) {
	_ = h.RecordValue(min(max(ns, 0), latencyMaxNS)) // always in its range
}

func (f *loadFigures) record(r *history.Record) {
	f.records++
	if int(r.Outcome) < len(f.outcomes) {
		f.outcomes[r.Outcome]++
	}
	if r.Outcome == history.Dropped || r.Sent == history.Never {
		return
	}
	observe(f.lag, r.Sent-r.Intended)
	switch r.Outcome {
	case history.Completed:
		code := codeOf(r)
		f.codes[code]++
		f.lastAnswer = max(f.lastAnswer, r.Done)
		if code.Decision() {
			f.decided++
		}
		if f.byCode[code] == nil {
			f.byCode[code] = newHistogram()
		}
		observe(f.byCode[code], r.Done-r.Intended)
		if code.Accepted() {
			f.acceptances++
			observe(f.accepted, r.Done-r.Intended)
		}
		fallthrough
	case history.TimedOut, history.Unfinished:
		observe(f.all, r.Done-r.Intended)
		observe(f.service, r.Done-r.Sent)
	}
}

// load fills in the account and the latencies.
func (f *loadFigures) load(plan *rundir.Plan, run *rundir.Run) {
	l := &run.Load
	l.IntendedQPS = plan.Load.RatePerS
	l.DurationS = float64(plan.Load.DurationMS) / 1000
	l.AnsweredInS = max(l.DurationS, float64(f.lastAnswer)/1e9)
	l.Scheduled = f.records + f.unrecorded
	l.Completed = f.outcomes[history.Completed]
	l.Failed = f.outcomes[history.Failed]
	l.TimedOut = f.outcomes[history.TimedOut]
	l.Dropped = f.outcomes[history.Dropped] + f.unrecorded
	l.Unfinished = f.outcomes[history.Unfinished]
	l.Sent = l.Scheduled - l.Dropped
	if l.Scheduled > 0 {
		l.DecidedRatio = float64(f.decided) / float64(l.Scheduled)
	}
	l.SendLagMS = percentiles(f.lag)
	run.LatencyMS = rundir.Latencies{
		All: percentiles(f.all), Accepted: percentiles(f.accepted), Service: percentiles(f.service),
		ByCode: map[string]rundir.Percentiles{},
	}
	run.Codes = map[string]int64{}
	for code, n := range f.codes {
		if n > 0 {
			name := codeName(seckill.Code(code))
			run.Codes[name] = n
			run.LatencyMS.ByCode[name] = percentiles(f.byCode[code])
		}
	}
}

// funnel says what became of the requests, as far as answers tell.
func (f *loadFigures) funnel(l *rundir.LoadResult) []rundir.FunnelStage {
	return []rundir.FunnelStage{
		{Source: rundir.ByHistory, Stage: "sent", In: l.Scheduled, Out: l.Sent},
		{Source: rundir.ByHistory, Stage: "answered", In: l.Sent, Out: l.Completed},
		{Source: rundir.ByHistory, Stage: "judged", In: l.Completed, Out: f.decided},
		{Source: rundir.ByHistory, Stage: "accepted", In: f.decided, Out: f.acceptances},
	}
}

// noCode is the name under which answers without a readable code are counted.
const noCode = "NO_CODE"

func codeName(c seckill.Code) string {
	if c == seckill.CodeNone {
		return noCode
	}
	return c.String()
}

// percentiles reads a histogram of nanoseconds in milliseconds.
func percentiles(h *hdrhistogram.Histogram) rundir.Percentiles {
	q := func(p float64) float64 { return float64(h.ValueAtQuantile(p)) / 1e6 }
	return rundir.Percentiles{Count: h.TotalCount(), P50: q(50), P90: q(90), P99: q(99), P999: q(99.9), Max: q(100)}
}
