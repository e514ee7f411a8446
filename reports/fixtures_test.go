package reports

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/hotsku/hotsku/verify/rundir"
)

// passInput is a run as the main job aims at: 300,000 requests a second for
// 10 s, 10,000 units, every promise held, every SLO met.
func passInput() Input {
	const scheduled = 3_000_000
	started := time.Date(2026, 5, 11, 20, 0, 0, 0, time.UTC)
	codes := map[string]int64{
		"QUEUED": 10_842, "QUEUED_PENDING_MESSAGE": 37, "SOLD_OUT": 2_927_391, "DUPLICATE_USER": 1_206,
		"IDEMPOTENCY_CONFLICT": 94, "RATE_LIMITED": 60_430,
	}
	run := &rundir.Run{
		Schema: rundir.RunSchema, Verdict: rundir.VerdictPass, Name: "bench", Seed: 7, Scheme: "redis-mq-token",
		StartedAt: started, Command: "bin/hotsku bench --rate 300000 --duration 10s --stock 10000 --seed 7",
		Environment: rundir.Environment{
			CPU: "AMD EPYC 7B13", Cores: 2, MemoryGiB: 24, Kernel: "Linux 6.1.0-37-amd64", Go: "go1.26.0",
			Redis: "7.0.15", RocketMQ: "5.5.0", Postgres: "15.18", Colocated: true,
		},
		Load: rundir.LoadResult{
			IntendedQPS: 300_000, DurationS: 10, AnsweredInS: 10, Scheduled: scheduled, Sent: scheduled, Completed: scheduled,
			DecidedRatio: 0.979857, SendLagMS: rundir.Percentiles{Count: scheduled, P50: 0.21, P90: 0.84, P99: 2.9, P999: 6.2, Max: 11.4},
		},
		LatencyMS: rundir.Latencies{
			All:      rundir.Percentiles{Count: scheduled, P50: 1.84, P90: 6.02, P99: 18.44, P999: 61.9, Max: 143.2},
			Accepted: rundir.Percentiles{Count: 10_879, P50: 31.2, P90: 48.8, P99: 71.6, P999: 96.4, Max: 118.7},
			Service:  rundir.Percentiles{Count: scheduled, P50: 1.41, P90: 5.2, P99: 16.1, P999: 58.3, Max: 139.9},
			ByCode: map[string]rundir.Percentiles{
				"QUEUED":                 {Count: 10_842, P50: 31.1, P90: 48.5, P99: 70.2, P999: 94.8, Max: 112.3},
				"QUEUED_PENDING_MESSAGE": {Count: 37, P50: 81.2, P90: 88.4, P99: 118.7, P999: 118.7, Max: 118.7},
				"SOLD_OUT":               {Count: 2_927_391, P50: 1.8, P90: 5.8, P99: 17.9, P999: 60.2, Max: 143.2},
				"DUPLICATE_USER":         {Count: 1_206, P50: 4.4, P90: 18.9, P99: 52.7, P999: 71.3, Max: 88.1},
				"IDEMPOTENCY_CONFLICT":   {Count: 94, P50: 6.3, P90: 19.4, P99: 41.0, P999: 41.0, Max: 41.0},
				"RATE_LIMITED":           {Count: 60_430, P50: 0.9, P90: 3.2, P99: 14.1, P999: 33.8, Max: 61.4},
			},
		},
		Codes: codes,
		Orders: rundir.OrdersResult{
			Accepted: 10_000, Created: 10_000, Valid: 10_000, Within3sRatio: 1,
			LatencyMS: rundir.Percentiles{Count: 10_000, P50: 412, P90: 871, P99: 1_204, P999: 1_388, Max: 1_402},
			PerSPeak:  7_912, PerSecond: []rundir.OrdersAt{{Second: 0, Orders: 7_912}, {Second: 1, Orders: 2_088}}, HandOutMS: 618,
		},
		Redis:      rundir.RedisResult{LuaP99MS: new(8.72), Reserved: 10_000, Calls: new(int64(1_194))},
		MQ:         rundir.MQResult{Sends: new(int64(412)), Unknown: new(int64(1)), Stored: 10_037, OldestAgeMSMax: new(883.0), Redelivered: new(int64(37))},
		Postgres:   rundir.PostgresResult{TxPerS: new(61.4), WALBytes: 27_412_992, ClaimsEmpty: new(int64(0))},
		CPUSeconds: map[string]float64{"access-0": 9.82, "consumer-0": 1.12, "scanner": 0.08, "outbox": 0.61, "projector": 0.44, "redis": 1.38, "rocketmq broker": 4.9, "rocketmq namesrv": 1.2, "postgres": 2.2, "generator": 7.31},
		Phases: []rundir.Phase{
			{Name: "burst", UntilMS: 500, DuePerS: 300_000, AnsweredPerS: 300_000, LatencyMS: rundir.Percentiles{Count: 150_000, P50: 6.1, P90: 19, P99: 71, P999: 99, Max: 143.2},
				ReservedPerS: 16_180, StoredPerS: 12_020, OrderedPerS: 3_110, Cores: map[string]float64{"access-0": 0.91, "generator": 0.52, "redis": 0.21, "rocketmq broker": 0.2, "consumer-0": 0.08, "postgres": 0.07, "scanner": 0.01}},
			{Name: "sold out", FromMS: 500, UntilMS: 10_000, DuePerS: 300_000, AnsweredPerS: 300_000, LatencyMS: rundir.Percentiles{Count: 2_850_000, P50: 1.8, P90: 5.8, P99: 17.9, P999: 60, Max: 90}},
			{Name: "convergence", FromMS: 10_000, UntilMS: 10_400, OrderedPerS: 30.5},
		},
		Stages: []rundir.Stage{{Name: "due → written: the generator", MS: rundir.Percentiles{Count: 10_000, P50: 0.2, P90: 0.9, P99: 3.1, Max: 9}},
			{Name: "due → ordered: all of it", MS: rundir.Percentiles{Count: 10_000, P50: 441, P90: 902, P99: 1_260, Max: 1_511}}},
		Funnel: []rundir.FunnelStage{
			{Source: rundir.ByCounters, Stage: "edge", In: scheduled, Out: 2_939_570}, {Source: rundir.ByCounters, Stage: "gate", In: 2_939_570, Out: 38_211},
			{Source: rundir.ByCounters, Stage: "reserve", In: 38_211, Out: 10_000},
			{Source: rundir.ByHistory, Stage: "answered", In: scheduled, Out: scheduled}, {Source: rundir.ByHistory, Stage: "accepted", In: scheduled, Out: 10_879},
			{Source: rundir.ByStores, Stage: "message", In: 10_000, Out: 10_000}, {Source: rundir.ByStores, Stage: "order", In: 10_000, Out: 10_000},
		},
		SLO: []rundir.SLOResult{
			{Name: "P99 of all answers (R1.3)", Metric: "latency_ms.all.p99", Op: "<", Target: 100, Measured: 18.44, OK: true},
			{Name: "P99 of accepted answers", Metric: "latency_ms.accepted.p99", Op: "<", Target: 100, Measured: 71.6, OK: true},
			{Name: "orders within 3 s (R1.5)", Metric: "orders.within_3s_ratio", Op: ">=", Target: 0.999, Measured: 1, OK: true},
			{Name: "requests judged", Metric: "load.decided_ratio", Op: ">=", Target: 0.95, Measured: 0.979857, OK: true},
		},
	}
	ids := []string{"I1", "I2", "I3", "I4", "I5", "I6", "I7", "I9", "I15"}
	checked := []int64{10_000, 10_000, 20_000, 10_879, 10_000, 291_402, 10_037, 10_000, 20_000}
	for i, id := range ids {
		run.Invariants = append(run.Invariants, rundir.Invariant{ID: id, Name: invariantName(id), Status: rundir.StatusHeld, Checked: checked[i]})
	}
	plan := &rundir.Plan{
		Schema: rundir.PlanSchema, Name: "bench", Seed: 7, Scheme: run.Scheme, Command: run.Command, CreatedAt: started,
		Activities: []rundir.Activity{{ActivityID: 1, SKUID: 1001, Stock: 10_000, Tokens: 10_000, Version: 1}},
		Load:       rundir.LoadPlan{RatePerS: 300_000, DurationMS: 10_000, Scheduled: scheduled, Connections: 64, Depth: 256, TimeoutMS: 2_000},
		SLOMode:    "enforce", Limits: rundir.Limits{SendLagP99MS: 20, ConvergeMS: 30_000, GateLagMS: 200}, Invariants: ids,
	}
	return Input{Run: run, Plan: plan, Measurements: measurements(run), Dir: "reports/out/20260511T200000-bench-7"}
}

// measurements makes series and curves in keeping with the run's figures.
func measurements(run *rundir.Run) *rundir.Measurements {
	rng := rand.New(rand.NewPCG(1, 2))
	const stepMS, n = 100, 100
	m := &rundir.Measurements{Schema: rundir.MeasurementsSchema, StepMS: stepMS}
	perStep := run.Load.Scheduled / n
	for i := range int64(n) {
		heat := math.Exp(-float64(i)/4)*14 + 1 + 0.25*rng.Float64()
		if i == 63 || i == 64 {
			heat *= 4
		}
		pt := rundir.SeriesPoint{
			AtMS: i * stepMS, Scheduled: perStep, Completed: perStep,
			P50MS: 1.6 * math.Sqrt(heat), P99MS: 6.1 * heat, MaxMS: 9 * heat * (1 + rng.Float64()*0.6),
			Codes: map[string]int64{},
		}
		left := perStep
		if i < 7 {
			pt.Codes["QUEUED"] = 1_540
			pt.Codes["RATE_LIMITED"] = 8_600
			left -= 10_140
		}
		pt.Codes["DUPLICATE_USER"] = 12
		pt.Codes["SOLD_OUT"] = left - 12
		m.Series = append(m.Series, pt)
	}
	m.Curve = curve(run.LatencyMS.All)
	m.Curves = []rundir.NamedCurve{
		{Name: "accepted", Curve: curve(run.LatencyMS.Accepted)},
		{Name: "service", Curve: curve(run.LatencyMS.Service)},
		{Name: "send lag", Curve: curve(run.Load.SendLagMS)},
	}
	return m
}

// curve interpolates percentiles, on log axes.
func curve(p rundir.Percentiles) []rundir.CurvePoint {
	known := []rundir.CurvePoint{{Quantile: 0, MS: p.P50 / 8}, {Quantile: .5, MS: p.P50}, {Quantile: .9, MS: p.P90}, {Quantile: .99, MS: p.P99}, {Quantile: .999, MS: p.P999}, {Quantile: .99999, MS: p.Max}}
	var out []rundir.CurvePoint
	for i := 1; i < len(known); i++ {
		a, b := known[i-1], known[i]
		for k := range 8 {
			f := float64(k) / 8
			x := nines(a.Quantile) + f*(nines(b.Quantile)-nines(a.Quantile))
			out = append(out, rundir.CurvePoint{Quantile: 1 - math.Pow(10, -x), MS: math.Pow(10, math.Log10(a.MS)+f*(math.Log10(b.MS)-math.Log10(a.MS)))})
		}
	}
	return append(out, rundir.CurvePoint{Quantile: 1, MS: p.Max})
}

// failInput sold one token twice and missed the P99.
func failInput() Input {
	in := passInput()
	r := in.Run
	r.Verdict, r.ExitCode = rundir.VerdictFail, 1
	r.Reasons = []string{
		"I1 no oversell: token 8812734 of SKU 1001 has two valid orders (delta +1)",
		"I3 conservation: 10,001 valid orders for 10,000 units (delta +1)",
		"SLO missed: P99 of all answers is 9,712 ms, target < 100 ms",
	}
	r.Invariants[0].Status, r.Invariants[0].Violations = rundir.StatusViolated, 1
	r.Invariants[0].Witness = []string{
		"token 8812734 seq 4411 status CLAIMED order_id 01JV0B6T3K9QZX",
		"order 01JV0B6T3K9QZX user 204811 reservation 01JV0B6T2M1A7C request r7-204811 committed 2026-05-11T20:00:00.781342Z",
		"order 01JV0B6T5R8WNE user 204902 reservation 01JV0B6T2M1A9H request r7-204902 committed 2026-05-11T20:00:00.802119Z",
	}
	r.Invariants[2].Status, r.Invariants[2].Violations = rundir.StatusViolated, 14
	r.Invariants[2].Witness = []string{"delta +1: free 0 + claimed 10,001 + sold 0 + released 0, initial 10,000"}
	r.Orders.Created, r.Orders.Valid, r.Orders.Oversold, r.Orders.ConservationDelta = 10_001, 10_001, 1, 1
	r.LatencyMS.All = rundir.Percentiles{Count: 3_000_000, P50: 812, P90: 6_410, P99: 9_712, P999: 10_233, Max: 11_904}
	r.SLO[0].Measured, r.SLO[0].OK = 9_712.4, false
	for i := range in.Measurements.Series {
		pt := &in.Measurements.Series[i]
		grow := 1 + float64(i)*1.1
		pt.P50MS, pt.P99MS, pt.MaxMS = pt.P50MS*grow, pt.P99MS*grow*2, pt.MaxMS*grow*2
		lost := pt.Scheduled * int64(i) / 240
		pt.Completed -= lost
		pt.Codes["SOLD_OUT"] -= lost
		r.Load.Completed, r.Load.TimedOut, r.Codes["SOLD_OUT"] = r.Load.Completed-lost, r.Load.TimedOut+lost, r.Codes["SOLD_OUT"]-lost
	}
	r.LatencyMS.All.Count = r.Load.Completed + r.Load.TimedOut
	in.Measurements.Curve = curve(r.LatencyMS.All)
	return in
}

// inconclusiveInput lost evidence and did not offer its load.
func inconclusiveInput() Input {
	in := passInput()
	r := in.Run
	r.Verdict, r.ExitCode = rundir.VerdictInconclusive, 2
	r.Reasons = []string{
		"I7 one message id was not checked: stores/broker/messages.jsonl: is truncated: no trailer at byte 1048576",
		"12,904 requests were never sent: the offered load was not reached",
	}
	r.Invariants[6].Status, r.Invariants[6].Checked = rundir.StatusNotChecked, 0
	r.Invariants[6].Witness = []string{"stores/broker/messages.jsonl: is truncated: no trailer at byte 1048576"}
	r.Invariants = r.Invariants[:8] // I15 is required and nobody judged it
	r.Load.Dropped, r.Load.Completed, r.Load.TimedOut, r.Load.Sent = 12_904, 2_987_036, 60, 2_987_096
	r.Load.SendLagMS.P99 = 48.2
	in.Measurements = nil
	in.Plan.SLOMode = "report"
	r.SLO[3].Measured, r.SLO[3].OK = 0.94996, false
	return in
}

// faultInput killed an access process, and the scanner brought the orders home.
func faultInput() Input {
	in := passInput()
	r := in.Run
	r.Name, in.Plan.Name = "kill-access-after-reserve", "kill-access-after-reserve"
	r.Command = "bin/hotsku chaos run kill-access-after-reserve --seed 7"
	r.Faults = []rundir.FaultResult{{
		Name: "kill-access-after-reserve", Target: "access-0", AtMS: 212, UntilMS: 1_460, Bit: true,
		Hits: map[string]int64{"killed": 1, "restarted": 1, "resent_by_scanner_only": 31},
	}}
	// The process that was killed took its counts with it.
	r.Redis.LuaP99MS, r.Redis.Calls, r.MQ.Sends, r.MQ.Unknown = nil, nil, nil, nil
	r.Funnel = r.Funnel[3:]
	in.Plan.MustHits = []rundir.MustHit{
		{Fault: "kill-access-after-reserve", Hit: "killed", AtLeast: 1},
		{Fault: "kill-access-after-reserve", Hit: "resent_by_scanner_only", AtLeast: 1},
	}
	in.Timeline = []rundir.TimelineEvent{
		{AtMS: -840, Actor: "kill-access-after-reserve", Target: "access-0", Event: "armed", Detail: "access.after-reserve=kill@40"},
		{AtMS: 0, Actor: "bench", Target: "access", Event: "load started"},
		{AtMS: 212, Actor: "faultpoint", Target: "access-0", Event: "killed", Hits: map[string]int64{"access.after-reserve": 40}},
		{AtMS: 1_460, Actor: "kill-access-after-reserve", Target: "access-0", Event: "restarted", Detail: "pid 41822, ready in 96 ms"},
		{AtMS: 10_000, Actor: "bench", Target: "access", Event: "load ended"},
	}
	for i := range in.Measurements.Series {
		if pt := &in.Measurements.Series[i]; pt.AtMS >= 300 && pt.AtMS < 1_400 {
			pt.Completed, pt.Codes, pt.P50MS, pt.P99MS, pt.MaxMS = 0, nil, 0, 0, 0
		}
	}
	return in
}
