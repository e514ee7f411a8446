package verify

import (
	"strings"
	"testing"

	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// The order of contracts.md section 7: a violation, then what was not
// proved, then a missed SLO.
func TestVerdictAndExitCode(t *testing.T) {
	violate := func(w *world) { lies()[0].tell(w) }
	drop := func(w *world) {
		r := w.lateFresh()
		r.Outcome, r.Sent, r.Done, r.Code, r.Status = history.Dropped, history.Never, history.Never, 0, 0
	}
	missSLO := func(w *world) {
		w.plan.SLOs = append(w.plan.SLOs, rundir.SLO{Name: "impossible", Metric: "latency_ms.all.p50", Op: "<", Target: 0.001})
	}
	report := func(w *world) { w.plan.SLOMode = "report" }
	for name, c := range map[string]struct {
		spoil   []func(*world)
		verdict string
		exit    int
		reason  string // begins the first
	}{
		"healthy":                     {nil, rundir.VerdictPass, 0, ""},
		"a violation":                 {[]func(*world){violate}, rundir.VerdictFail, 1, "I1 no oversell violated: "},
		"a violation before the rest": {[]func(*world){violate, drop, missSLO}, rundir.VerdictFail, 1, "I1 no oversell violated: "},
		"dropped requests":            {[]func(*world){drop}, rundir.VerdictInconclusive, 2, "the generator dropped 1 requests"},
		"unrecorded requests": {[]func(*world){func(w *world) { w.records, w.unrecorded = w.records[:len(w.records)-1], 1 }},
			rundir.VerdictInconclusive, 2, "the generator dropped 1 requests"},
		"dropped before a missed SLO": {[]func(*world){drop, missSLO}, rundir.VerdictInconclusive, 2, "the generator dropped 1 requests"},
		"a missed SLO":                {[]func(*world){missSLO}, rundir.VerdictFail, 1, "SLO impossible missed: latency_ms.all.p50 must be < 0.001 and is "},
		"a missed SLO, reported":      {[]func(*world){missSLO, report}, rundir.VerdictPass, 0, "SLO impossible missed"},
		"send lag above its limit": {[]func(*world){func(w *world) { w.plan.Limits.SendLagP99MS = 0.01 }},
			rundir.VerdictInconclusive, 2, "the generator fell behind: send lag P99 is 0.0"},
		"a fault that did not bite": {[]func(*world){func(w *world) {
			w.plan.MustHits = []rundir.MustHit{{Fault: "kill-access", Hit: "killed", AtLeast: 1}}
		}}, rundir.VerdictInconclusive, 2, "fault kill-access did not bite: killed must be at least 1 and is 0"},
		"an invariant no build knows": {[]func(*world){func(w *world) { w.plan.Invariants = append(w.plan.Invariants, "I99") }},
			rundir.VerdictInconclusive, 2, "I99 is required, and this build cannot check it"},
		"an SLO that names no figure": {[]func(*world){func(w *world) { w.plan.SLOs[0].Metric = "redis.lua_p99_ms" }},
			rundir.VerdictInconclusive, 2, `plan.json: slo "answers": metric "redis.lua_p99_ms" is no figure that verify recomputes`},
		"an SLO that measured nothing": {[]func(*world){func(w *world) {
			w.plan.SLOs[0].Metric = "latency_ms.by_code.ORDER_CREATED.p99"
		}}, rundir.VerdictInconclusive, 2, "SLO answers: latency_ms.by_code.ORDER_CREATED.p99 measured nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := healthyWorld()
			for _, spoil := range c.spoil {
				spoil(w)
			}
			run := w.judged(t)
			first := strings.Join(run.Reasons[:min(1, len(run.Reasons))], "")
			if run.Verdict != c.verdict || run.ExitCode != c.exit || !strings.HasPrefix(first, c.reason) {
				t.Errorf("%s, exit %d: %q", run.Verdict, run.ExitCode, run.Reasons)
			}
		})
	}
}

// The timeline adds up by fault; what only the stores know is counted there.
func TestFaultsAreHeldAgainstWhatTheyMustHit(t *testing.T) {
	w := healthyWorld()
	w.timeline = append(w.timeline,
		rundir.TimelineEvent{AtMS: 10, Actor: "kill-access", Target: "access-1", Event: "armed"},
		rundir.TimelineEvent{AtMS: 30, Actor: "kill-access", Target: "access-1", Event: "killed", Hits: map[string]int64{"killed": 1}},
		rundir.TimelineEvent{AtMS: 50, Actor: "kill-access", Target: "access-1", Event: "healed"})
	w.plan.MustHits = []rundir.MustHit{{Fault: "kill-access", Hit: "killed", AtLeast: 1}, {Fault: "kill-access", Hit: HitResentByScannerOnly, AtLeast: 1}}
	run := w.judged(t)
	if len(run.Faults) != 1 || run.ExitCode != ExitPass {
		t.Fatalf("%+v, %q", run.Faults, run.Reasons)
	}
	f := run.Faults[0]
	if f.Name != "kill-access" || f.Target != "access-1" || f.AtMS != 10 || f.UntilMS != 50 || f.Hits["killed"] != 1 || !f.Bit {
		t.Errorf("%+v", f)
	}
	want := int64(0) // orders that access never sent itself
	for _, o := range w.orders {
		byAccess := false
		for _, m := range w.messages {
			create, err := seckill.DecodeOrderCreate(m.Body)
			if err != nil {
				t.Fatal(err)
			}
			byAccess = byAccess || create.ReservationID == o.ReservationID && create.RetryCount == 0
		}
		if !byAccess {
			want++
		}
	}
	if got := f.Hits[HitResentByScannerOnly]; got != want || want == 0 {
		t.Errorf("%d orders resent by the scanner only, want %d", got, want)
	}
}

// A hit that only the stores or the history know is counted there, whichever
// fault asks for it.
func TestHitsThatNoTimelineKnows(t *testing.T) {
	w := healthyWorld()
	want := map[string]int64{HitResold: -w.plan.Activities[0].Stock}
	for _, r := range w.reservations {
		want[HitEnded(seckill.ReservationStatus(r.Status))]++
		want[HitResold]++
	}
	for hit := range want {
		w.plan.MustHits = append(w.plan.MustHits, rundir.MustHit{Fault: "load", Hit: hit, AtLeast: 1})
	}
	queued := HitAnswered(seckill.CodeQueued)
	w.plan.MustHits = append(w.plan.MustHits, rundir.MustHit{Fault: "load", Hit: queued, AtLeast: 1}, rundir.MustHit{Fault: "load", Hit: "answered:NEVER", AtLeast: 1})
	run := w.judged(t)
	if len(run.Faults) != 1 || run.Faults[0].Bit {
		t.Fatalf("%+v: nobody was answered NEVER", run.Faults)
	}
	hits := run.Faults[0].Hits
	if want[HitEnded(seckill.StatusOrderCreated)] == 0 || hits[queued] != run.Codes["QUEUED"] || hits[queued] == 0 || hits["answered:NEVER"] != 0 {
		t.Errorf("hits %v, answers %v", hits, run.Codes)
	}
	for hit, n := range want {
		if hits[hit] != n {
			t.Errorf("%s is %d, want %d", hit, hits[hit], n)
		}
	}
}

func TestEverySLOPathIsKnownOrRefused(t *testing.T) {
	good := []string{"load.decided_ratio", "load.dropped", "load.send_lag_ms.p99", "latency_ms.all.p99", "latency_ms.accepted.p999",
		"latency_ms.service.max", "latency_ms.by_code.QUEUED.p50", "orders.within_3s_ratio", "orders.latency_ms.p90", "orders.valid", "orders.hand_out_ms"}
	for _, path := range good {
		if err := CheckSLOs([]rundir.SLO{{Name: "x", Metric: path, Op: "<"}}); err != nil {
			t.Error(err)
		}
	}
	for _, path := range []string{"", ".", "p99", "latency_ms.all", "latency_ms.all.p95", "latency_ms.by_code.NEVER.p99", "latency_ms.by_code.p99",
		"redis.lua_p99_ms", "load.send_lag_ms", "orders.within_3s_ratio.p99"} {
		if err := CheckSLOs([]rundir.SLO{{Name: "x", Metric: path, Op: "<"}}); err == nil {
			t.Errorf("%q is taken for a figure", path)
		}
	}
	if err := CheckSLOs([]rundir.SLO{{Name: "x", Metric: good[0], Op: "="}}); err == nil {
		t.Error(`op "=" is taken`)
	}
}

// What was measured while the run went on is shown, and decides nothing.
func TestExtrasAreShownBesideTheEvidence(t *testing.T) {
	dir := rundir.Dir(scratch(t))
	w := healthyWorld()
	w.write(t, dir)
	x := rundir.Extras{Schema: rundir.ExtrasSchema,
		Environment: rundir.Environment{CPU: "a cpu", Cores: 2, Redis: "a lie"},
		Redis:       rundir.RedisResult{LuaP99MS: new(1.5), Calls: new(int64(7)), Reserved: 999},
		MQ:          rundir.MQResult{Sends: new(int64(5)), Stored: 999}, Postgres: rundir.PostgresResult{TxPerS: new(3.0), WALBytes: 1},
		CPUSeconds: map[string]float64{"access": 2}, Funnel: []rundir.FunnelStage{{Source: rundir.ByCounters, Stage: "gate", In: 9, Out: 1}}}
	if err := rundir.WriteJSON(dir.Extras(), x); err != nil {
		t.Fatal(err)
	}
	run := judgeDir(t, dir)
	if run.ExitCode != ExitPass || run.Environment.CPU != "a cpu" || *run.Redis.LuaP99MS != 1.5 || *run.MQ.Sends != 5 || run.MQ.Unknown != nil ||
		*run.Postgres.TxPerS != 3 || run.CPUSeconds["access"] != 2 || run.Funnel[0].Stage != "gate" {
		t.Errorf("%+v", run)
	}
	if run.Environment.Redis != "7.0.15" || run.Redis.Reserved != int64(len(w.held)) || run.MQ.Stored != int64(len(w.messages)) || run.Postgres.WALBytes != 1<<20 {
		t.Errorf("extras overrule evidence: %+v %+v %+v", run.Environment, run.Redis, run.MQ)
	}
	x.Schema = 1
	if err := rundir.WriteJSON(dir.Extras(), x); err != nil {
		t.Fatal(err)
	}
	if run := judgeDir(t, dir); run.ExitCode != ExitInconclusive || run.Reasons[0] != "metrics/extras.json: has schema 1, this build reads 3" || run.MQ.Sends != nil {
		t.Errorf("exit %d, %q", run.ExitCode, run.Reasons)
	}
	if err := rundir.WriteFile(dir.Extras(), []byte(`{"schema":1`)); err != nil {
		t.Fatal(err)
	}
	if run := judgeDir(t, dir); run.ExitCode != ExitInconclusive || !strings.HasPrefix(run.Reasons[0], "metrics/extras.json: is truncated") {
		t.Errorf("exit %d, %q", run.ExitCode, run.Reasons)
	}
}

// funnelNarrows: nothing passes a stage that did not enter it, and what passes
// one enters the next of its source, whatever became of the run. R10.1.
func funnelNarrows(t *testing.T, run *rundir.Run) {
	t.Helper()
	last := map[string]rundir.FunnelStage{}
	for _, s := range run.Funnel {
		if before, ok := last[s.Source]; ok && before.Out != s.In {
			t.Errorf("%d pass %q, and %d enter %q", before.Out, before.Stage, s.In, s.Stage)
		}
		if s.Out > s.In || s.Out < 0 {
			t.Errorf("of %d that enter %q %d pass", s.In, s.Stage, s.Out)
		}
		last[s.Source] = s
	}
	if len(last) != 2 {
		t.Errorf("the funnel is %+v", run.Funnel)
	}
}

// The funnel narrows where answers were lost, too; every lie's run is held
// against it beside its invariants. R10.1.
func TestNoStageOfTheFunnelPassesMoreThanEnters(t *testing.T) {
	w := simulate(options{seed: 5, stock: 200, requests: 900, repeat: 100, failures: true, rejects: true})
	run := w.judged(t)
	funnelNarrows(t, run)
	if run.Orders.Accepted >= run.Redis.Reserved {
		t.Errorf("%d accepted of %d reserved: no answer was lost", run.Orders.Accepted, run.Redis.Reserved)
	}
}

// What was not answered is told by one figure, however it came: a request that
// was never sent neither failed nor timed out.
func TestDroppedRequestsAreUnanswered(t *testing.T) {
	w := healthyWorld()
	w.plan.SLOs = []rundir.SLO{{Name: "every request answered", Metric: "load.unanswered", Op: "<", Target: 1}}
	w.records, w.unrecorded = w.records[:len(w.records)-3], 3
	run := w.judged(t)
	if run.SLO[0].OK || run.SLO[0].Measured != 3 {
		t.Errorf("%+v", run.SLO)
	}
}

// The rate of answers is over the time they took, not over the load's alone.
func TestAnswersAreTimedToTheLast(t *testing.T) {
	w := healthyWorld()
	if got, want := w.judged(t).Load.AnsweredInS, float64(w.plan.Load.DurationMS)/1000; got < want {
		t.Errorf("answered in %v s of a load of %v s", got, want)
	}
	r := w.lateFresh()
	r.Done = 90_000_000_000
	if got := w.judged(t).Load.AnsweredInS; got != 90 {
		t.Errorf("the last answer came after 90 s, and all were answered in %v s", got)
	}
}

// Under the loss contract of Redis an extra reservation may exist if it ends
// rejected; without it, not.
func TestLossContractAllowsOnlyWhatItDeclares(t *testing.T) {
	spoil := func(w *world) { // one user's rejected reservation, and a second that became an order
		r := w.rejected()
		for i := range w.reservations {
			if w.reservations[i].Status == "ORDER_CREATED" {
				w.reservations[i].UserID, w.orders[w.orderOf(w.reservations[i].ReservationID)].UserID = r.UserID, r.UserID
				w.key("resv:" + w.reservations[i].ReservationID).Hash["user_id"] = w.key("resv:" + r.ReservationID).Hash["user_id"]
				return
			}
		}
	}
	strict := healthyWorld()
	spoil(strict)
	lax := healthyWorld()
	lax.plan.LossContracts = []string{"redis-failover"}
	spoil(lax)
	if inv := statusOf(strict.judged(t), "I2"); inv.Status != rundir.StatusViolated {
		t.Errorf("%+v", inv)
	}
	if inv := statusOf(lax.judged(t), "I2"); inv.Status != rundir.StatusHeld {
		t.Errorf("%+v", inv)
	}
}

func (w *world) orderOf(reservation string) int {
	for i := range w.orders {
		if w.orders[i].ReservationID == reservation {
			return i
		}
	}
	panic("no order")
}

// Before quiescence an undecided reservation is late, which is I14's, not lost.
func TestBeforeQuiescenceLateIsNotLost(t *testing.T) {
	w := healthyWorld()
	w.snapshot.Quiescent, w.snapshot.Lag = false, 1
	o := w.orders[0]
	w.forget(o.ReservationID)
	h := w.key("resv:" + o.ReservationID).Hash
	h["status"] = "MESSAGE_SENT"
	delete(h, "order_id")
	for i := range w.tokens {
		if w.tokens[i].TokenID == o.InventoryTokenID {
			w.tokens[i].Status, w.tokens[i].OrderID, w.tokens[i].ReservationID = "AVAILABLE", nil, nil
		}
	}
	run := w.judged(t)
	for _, inv := range run.Invariants {
		if inv.ID == failClosed.id { // nothing was down
			continue
		}
		if want := map[bool]string{true: rundir.StatusViolated, false: rundir.StatusHeld}[inv.ID == "I14"]; inv.Status != want {
			t.Errorf("%+v", inv)
		}
	}
}

func TestClosedSpansFollowTheLog(t *testing.T) {
	entry := func(op string, at, stock, openAt int64) rundir.LogEntry {
		return rundir.LogEntry{Op: op, AtUS: at, Stock: stock, OpenAtUS: openAt}
	}
	log := []rundir.LogEntry{
		entry(logInit, 0, 1, 0), entry(logReserve, 10, 0, 0), // closed at 10
		entry(logReturn, 20, 1, 220), entry(logReturn, 30, 2, 0), // reservable from 220
		entry(logReserve, 250, 0, 0), entry(logReturn, 260, 1, 480),
		entry(logReserve, 500, 0, 0), // for good
	}
	got := closedSpans(log)
	want := []closedSpan{{10, 220}, {250, 480}, {500, 1<<63 - 1}}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("%v, want %v", got, want)
	}
}
