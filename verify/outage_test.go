package verify

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

const (
	outageFault   = "refuse@it"
	outageLimitMS = 20
)

// goDown takes a dependency away in the second and third quarter of a sale of
// that length, and closes the sale for it within the limit.
func (w *world) goDown(dependency string, length int64) {
	bit, healing := length/4/1e6, length*3/4/1e6
	w.plan.Invariants = append(w.plan.Invariants, failClosed.id)
	w.plan.Outages = []rundir.Outage{{Fault: outageFault, Dependency: dependency, LimitMS: outageLimitMS}}
	w.timeline = append(w.timeline,
		rundir.TimelineEvent{AtMS: bit - 5, Actor: outageFault, Target: dependency, Event: "injected"},
		rundir.TimelineEvent{AtMS: bit, Actor: outageFault, Target: dependency, Event: eventBit, Hits: map[string]int64{"refused": 3}},
		rundir.TimelineEvent{AtMS: healing, Actor: outageFault, Target: dependency, Event: eventHealing},
		rundir.TimelineEvent{AtMS: healing + 2, Actor: outageFault, Target: dependency, Event: "healed"})
	w.closed.from, w.closed.to = (bit+outageLimitMS)*1e6, healing*1e6
}

// outageWorld is a sale of 360 ms, closed from 110 ms to 270 ms.
func outageWorld(dependency string) *world {
	return simulate(options{seed: 31, stock: 400, requests: 1200, repeat: 100, sameUser: 20, step: 300_000, outage: dependency})
}

// within finds an answer that was sent and given while the sale was closed.
func (w *world) within() *history.Record {
	for i := range w.records {
		if r := &w.records[i]; r.Sent > w.closed.from+20_000_000 && r.Done < w.closed.to-20_000_000 && codeOf(r) == seckill.CodeUnavailable {
			return r
		}
	}
	panic("nobody was turned away")
}

// outageLies are told of a sale without Redis.
func outageLies() []lie {
	return []lie{
		{"SOLD_OUT while nobody can know", "I11 I10", func(w *world) string {
			r := w.within()
			r.Code, r.Status = uint8(seckill.CodeSoldOut), 410
			return fmt.Sprintf("redis was down by refuse@it from 121.000 ms to 260.000 ms: who asks then must be told UNAVAILABLE, and user %d was answered SOLD_OUT at %s for request %d sent at %s",
				r.Subject, clock(r.Done), r.N, clock(r.Sent))
		}},
		{"reservations made while it was down", "I11", func(w *world) string {
			i := slices.IndexFunc(w.log, func(l rundir.LogEntry) bool { return w.sinceStart(l.AtUS) > w.closed.to && l.Op == logReserve })
			l := &w.log[i]
			l.AtUS = w.us(200_000_000)
			return fmt.Sprintf("redis was down by refuse@it from 121.000 ms to 260.000 ms: at most 0 reservations may be made then, and %d were, the first %s by change log entry %s at 200.000 ms: %+d",
				len(l.Reservations), l.Reservations[0], l.ID, len(l.Reservations))
		}},
	}
}

func (w *world) sinceStart(us int64) int64 { return us*1000 - w.start.UnixNano() }

func TestEveryLieAboutAnOutageIsFound(t *testing.T) {
	for _, l := range outageLies() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			l.mustBeFound(t, outageWorld(rundir.OnRedis))
		})
	}
}

// What is known without the broker may be said, and a probe be made.
func TestWithoutTheBrokerTheSaleIsClosedAndNotBlind(t *testing.T) {
	w := outageWorld(rundir.OnBroker)
	w.within().Code = uint8(seckill.CodeRateLimited)
	l := &w.log[slices.IndexFunc(w.log, func(l rundir.LogEntry) bool { return w.sinceStart(l.AtUS) > w.closed.to && l.Op == logReserve })]
	l.AtUS = w.us(200_000_000)
	w.plan.Outages[0].ProbesPerS = int64(len(l.Reservations))
	if run := w.judged(t); run.ExitCode != ExitPass {
		t.Errorf("%q", run.Reasons)
	}
}

// An outage that nobody saw proves nothing.
func TestAnOutageThatNobodySawIsNotChecked(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*world)
		says  string
	}{
		"none planned":      {func(w *world) { w.plan.Outages = nil }, "plan.json: no dependency is to be down beyond its limit"},
		"it never bit":      {func(w *world) { w.timeline = w.timeline[:1] }, "timeline.jsonl: broker was never down by refuse@it for longer than 20 ms: nothing had to close"},
		"it was too short":  {func(w *world) { w.plan.Outages[0].LimitMS = 170 }, "timeline.jsonl: broker was never down by refuse@it for longer than 170 ms"},
		"nobody was told":   {func(w *world) { w.tellAll(seckill.CodeRateLimited) }, "none was UNAVAILABLE: nobody saw the sale closed"},
		"an unknown victim": {func(w *world) { w.plan.Outages[0].Dependency = "luck" }, `plan.json: plan.json: outage of "luck" by refuse@it`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := outageWorld(rundir.OnBroker)
			c.spoil(w)
			run := w.judged(t)
			if inv := statusOf(run, "I11"); inv.Status != rundir.StatusNotChecked || run.ExitCode != ExitInconclusive || !strings.Contains(inv.Witness[0], c.says) {
				t.Errorf("exit %d, %+v", run.ExitCode, inv)
			}
		})
	}
}

func (w *world) tellAll(code seckill.Code) {
	for i := range w.records {
		if r := &w.records[i]; codeOf(r) == seckill.CodeUnavailable {
			r.Code, r.Status = uint8(code), uint16(code.HTTPStatus())
		}
	}
}
