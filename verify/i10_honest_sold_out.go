package verify

import (
	"fmt"
	"math"
	"sort"

	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// honestSoldOut is I10: SOLD_OUT is answered only if, replaying the change
// log, no unit was reservable at some moment between the request's send and
// its answer, a gate's knowledge being as old as the plan allows; and at
// quiescence no unit is stranded where users were refused. The log that
// proves it must add up by itself.
//
// The generator's clock and Redis' are one machine's (contracts.md section
// 5); clockToleranceUS is for their being disciplined while a run goes on.
var honestSoldOut = check{id: "I10", name: "honest sold-out", history: true,
	needs: []source{fromPlan, fromSnapshot, fromHistory, fromKeys, fromLog, fromTokens}, run: judgeHonestSoldOut}

const clockToleranceUS = 10_000

// soldOutWitnessesMax bounds the refusals remembered.
const soldOutWitnessesMax = WitnessesMax

// closedSpan is a time in which no unit was reservable, microseconds of the
// wall clock, both ends included.
type closedSpan struct{ from, to int64 }

// soldOutJudge judges refusals as they stream by.
type soldOutJudge struct {
	closed  []closedSpan
	startNS int64
	lagUS   int64
	answers int64
	wrong   int64
	first   []string
}

func newSoldOutJudge(e *evidence, startUnixNano int64) *soldOutJudge {
	return &soldOutJudge{closed: closedSpans(e.sales[0].log), startNS: startUnixNano, lagUS: e.plan.Limits.GateLagMS * 1000}
}

// closedSpans replays the log. A returned unit is reservable from its
// entry's open_at on.
func closedSpans(log []rundir.LogEntry) []closedSpan {
	var spans []closedSpan
	closedAt, openAt := int64(-1), int64(0)
	for i := range log {
		entry := &log[i]
		openAt = max(openAt, entry.OpenAtUS)
		switch {
		case entry.Stock <= 0 && closedAt < 0:
			closedAt = entry.AtUS
		case entry.Stock > 0 && closedAt >= 0:
			spans = append(spans, closedSpan{closedAt, max(entry.AtUS, openAt)})
			closedAt = -1
		}
	}
	if closedAt >= 0 {
		spans = append(spans, closedSpan{closedAt, math.MaxInt64})
	}
	return spans
}

func (j *soldOutJudge) judge(r *history.Record) {
	j.answers++
	sent := (j.startNS+r.Sent)/1000 - j.lagUS - clockToleranceUS
	done := (j.startNS+r.Done)/1000 + clockToleranceUS
	i := sort.Search(len(j.closed), func(i int) bool { return j.closed[i].from > done })
	if i > 0 && j.closed[i-1].to >= sent {
		return
	}
	j.wrong++
	if len(j.first) < soldOutWitnessesMax {
		when := "and was reservable all the time"
		if i < len(j.closed) {
			when = fmt.Sprintf("and the stock came to nothing only %s after that answer", clock((j.closed[i].from-done+clockToleranceUS)*1000))
		} else if len(j.closed) > 0 {
			when = fmt.Sprintf("and a unit was reservable since %s before it was sent", clock((sent+j.lagUS+clockToleranceUS-j.closed[i-1].to)*1000))
		}
		j.first = append(j.first, fmt.Sprintf("user %d was answered SOLD_OUT at %s for request %d sent at %s, %s",
			r.Subject, clock(r.Done), r.N, clock(r.Sent), when))
	}
}

func judgeHonestSoldOut(e *evidence, f *finding) {
	s, j := e.sales[0], e.answers.soldOut
	f.check(int(j.answers))
	for _, w := range j.first {
		f.violate("%s: SOLD_OUT needs a moment without a reservable unit: %s", s.key(), w)
	}
	f.violations += j.wrong - int64(len(j.first))
	if !e.redisMayLose() {
		s.judgeLog(f)
	}
	if e.quiescent() && j.answers > 0 {
		s.judgeStranded(e, f)
	}
}

// judgeLog: each entry's stock follows from the one before, the last is the
// stock key's, and it tells of every reservation exactly once.
func (s *sale) judgeLog(f *finding) {
	stock := int64(0)
	for i := range s.log {
		entry := &s.log[i]
		f.check(1)
		want := stock
		switch n := int64(len(entry.Reservations)); entry.Op {
		case logInit:
			want = s.plan.Stock
		case logReserve:
			want -= n
		case logReturn:
			want += n
		}
		if entry.Stock != want {
			f.violate("%s: change log entry %s (%s of %d) must leave a stock of %d, and left %d: %+d",
				s.key(), entry.ID, entry.Op, len(entry.Reservations), want, entry.Stock, entry.Stock-want)
		}
		stock = entry.Stock
	}
	if s.stock != nil && len(s.log) > 0 && *s.stock != stock {
		f.violate("%s: the change log ends with a stock of %d, and Redis has %d: %+d", s.key(), stock, *s.stock, *s.stock-stock)
	}
	for _, r := range s.reservations {
		want := 0
		if r.hash != nil {
			want = 1
		}
		if n := len(r.reserves); n != want {
			f.violate("%s: reservation %s must be in the change log %d times, and is %d times: %+d", s.key(), r, want, n, n-want)
		}
	}
}

// judgeStranded: a token that is free while Redis has no unit for it can
// never be reserved.
func (s *sale) judgeStranded(e *evidence, f *finding) {
	if s.stock == nil {
		return
	}
	free := int64(0)
	for _, t := range s.tokens {
		if seckill.TokenStatus(t.Status) == seckill.TokenAvailable {
			free++
		}
	}
	stranded := free - *s.stock - max(0, s.plan.Tokens-s.plan.Stock)
	if stranded > 0 {
		f.violate("%s: no unit may be stranded while users are refused: %d tokens are free, Redis offers %d, and %d answers were SOLD_OUT: %d units undersold: %+d",
			s.key(), free, *s.stock, e.answers.soldOut.answers, stranded, -stranded)
	}
}
