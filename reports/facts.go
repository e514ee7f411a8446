package reports

import (
	"fmt"
	"slices"

	"github.com/hotsku/hotsku/verify/rundir"
)

// tiles are the headline figures.
func tiles(in Input) []tile {
	r := in.run()
	l := r.Load
	return []tile{
		offeredTile(l),
		latencyTile(in, "P99, all answers", "latency_ms.all.p99", r.LatencyMS.All),
		latencyTile(in, "P99, accepted", "latency_ms.accepted.p99", r.LatencyMS.Accepted),
		ordersTile(in),
		within3sTile(in),
		oversellTile(in),
		deltaTile(in),
	}
}

func offeredTile(l rundir.LoadResult) tile {
	t := tile{Label: "Offered load", Value: count(l.IntendedQPS), Unit: "/s", Sub: "answered " + answeredRate(l)}
	switch {
	case l.Scheduled == 0:
		return tile{Label: "Offered load", Value: none, Sub: "no request scheduled", State: "unknown"}
	case l.Dropped > 0:
		t.State = "unknown" // the load asked for was not the load offered
	}
	return t
}

// answeredRate is completed requests a second, over the time the answers
// took: an overloaded system goes on answering when the load has ended.
func answeredRate(l rundir.LoadResult) string {
	if l.AnsweredInS <= 0 {
		return none
	}
	rate := decimal(float64(l.Completed)/l.AnsweredInS, 0) + " /s"
	if took := decimal(l.AnsweredInS, 1); took != decimal(l.DurationS, 1) {
		rate += " over " + took + " s"
	}
	return rate
}

func latencyTile(in Input, label, metric string, p rundir.Percentiles) tile {
	if p.Count == 0 {
		return tile{Label: label, Value: none, Sub: "no such answer", State: "unknown"}
	}
	t := tile{Label: label, Value: figure(p.P99), Unit: "ms", Sub: "max " + ms(p.Max)}
	for _, s := range in.run().SLO {
		if s.Metric == metric {
			t.Sub = "target " + sloTarget(s)
			t.State = state(s.OK)
		}
	}
	return t
}

// ordersKnown says that PostgreSQL's orders were there to be counted.
func (in Input) ordersKnown() bool { return in.judged("I1") || in.run().Orders.Valid > 0 }

func state(ok bool) string {
	if ok {
		return "good"
	}
	return "bad"
}

func ordersTile(in Input) tile {
	if !in.ordersKnown() {
		return tile{Label: "Valid orders", Value: none, Sub: "not checked", State: "unknown"}
	}
	t := tile{Label: "Valid orders", Value: count(in.run().Orders.Valid)}
	if units, ok := in.stock(); ok {
		t.Sub = "of " + plural64(units, "unit")
	} else {
		t.Sub = count(in.run().Orders.Accepted) + " accepted"
	}
	return t
}

func within3sTile(in Input) tile {
	o := in.run().Orders
	if !in.ordersKnown() {
		return tile{Label: "Ordered within 3 s", Value: none, Sub: "not checked", State: "unknown"}
	}
	if o.Valid == 0 {
		return tile{Label: "Ordered within 3 s", Value: none, Sub: "no valid order", State: "unknown"}
	}
	t := tile{Label: "Ordered within 3 s", Value: percent(o.Within3sRatio), Sub: "slowest " + ms(o.LatencyMS.Max)}
	for _, s := range in.run().SLO {
		if s.Metric == "orders.within_3s_ratio" {
			t.Sub = "target " + sloTarget(s)
			t.State = state(s.OK)
		}
	}
	return t
}

// oversellTile shows the orders without a unit of their own, as I1 counted
// them: valid orders less units would be nothing where one is sold twice
// beside an order that is lost.
func oversellTile(in Input) tile {
	if !in.judged("I1") {
		return tile{Label: "Oversold", Value: none, Sub: "not checked", State: "unknown"}
	}
	n := in.run().Orders.Oversold
	inv, _ := in.invariant("I1")
	if inv.Status == rundir.StatusViolated {
		return tile{"Oversold", count(n), "", "I1 violated: " + plural64(inv.Violations, "finding"), "bad"}
	}
	return tile{"Oversold", count(n), "", "I1 held: " + plural64(inv.Checked, "check"), state(n == 0)}
}

func deltaTile(in Input) tile {
	const label = "Conservation delta"
	if !in.judged("I3") {
		return tile{Label: label, Value: none, Sub: "not checked", State: "unknown"}
	}
	inv, _ := in.invariant("I3")
	d := in.run().Orders.ConservationDelta
	if inv.Status == rundir.StatusViolated {
		return tile{label, count(d), "", "I3 violated: " + plural64(inv.Violations, "finding"), "bad"}
	}
	return tile{label, count(d), "", "units out of place", state(d == 0)}
}

func orderFacts(in Input) []fact {
	o := in.run().Orders
	facts := []fact{
		{"Reserved", count(in.run().Redis.Reserved), "reservations in the change log"},
		{"Accepted", count(o.Accepted), "of them, those a client was told of"},
		{"Orders created", count(o.Created), "rows in PostgreSQL"},
		{"Valid orders", count(o.Valid), "created or paid"},
		{"Rejected", count(o.Rejected), "reservations that ended without an order, compensated"},
		{"Handed out in", ms(o.HandOutMS), "first to last reservation"},
		{"Peak", count(o.PerSPeak) + " /s", "orders committed in the busiest second"},
	}
	if o.LatencyMS.Count > 0 {
		facts = append(facts, fact{"Order P99", ms(o.LatencyMS.P99), "from reservation to commit"})
	}
	return facts
}

func storeFacts(r *rundir.Run) []fact {
	if r.Redis == (rundir.RedisResult{}) && r.MQ == (rundir.MQResult{}) && r.Postgres == (rundir.PostgresResult{}) {
		return nil
	}
	perOrder := ""
	if r.Orders.Created > 0 {
		perOrder = bytesSize(r.Postgres.WALBytes/r.Orders.Created) + " an order"
	}
	perSecond := func(v float64) string { return decimal(v, 0) + " /s" }
	return []fact{
		{"Redis reserve calls", measured(r.Redis.Calls, count), count(r.Redis.Reserved) + " reserved"},
		{"Redis reserve P99", measured(r.Redis.LuaP99MS, ms), "as access saw it"},
		{"Broker sends", measured(r.MQ.Sends, count), "batches; without a confirmation: " + measured(r.MQ.Unknown, count)},
		{"Messages stored", count(r.MQ.Stored), "delivered again: " + measured(r.MQ.Redelivered, count)},
		{"Oldest message", measured(r.MQ.OldestAgeMSMax, ms), "the longest wait in the broker"},
		{"PostgreSQL commits", measured(r.Postgres.TxPerS, perSecond), "lock waits: " + measured(r.Postgres.LockWaitMS, ms)},
		{"WAL written", bytesSize(r.Postgres.WALBytes), perOrder},
		{"Empty claims", measured(r.Postgres.ClaimsEmpty, count), "claims that found no free token"},
	}
}

// notMeasured stands for a figure nobody took, which is not 0.
const notMeasured = "not measured"

// measured writes a figure that may not have been taken.
func measured[T any](v *T, format func(T) string) string {
	if v == nil {
		return notMeasured
	}
	return format(*v)
}

func environmentFacts(e rundir.Environment) []fact {
	if e == (rundir.Environment{}) {
		return nil
	}
	facts := []fact{
		{"CPU", e.CPU, plural(e.Cores, "core")},
		{"Memory", fmt.Sprintf("%d GiB", e.MemoryGiB), ""},
		{"Kernel", e.Kernel, ""},
		{"Go", e.Go, ""},
		{"Redis", e.Redis, ""},
		{"RocketMQ", e.RocketMQ, ""},
		{"PostgreSQL", e.Postgres, ""},
		{"Niceness", e.Niceness, "what processes gave way to the rest by"},
	}
	return slices.DeleteFunc(facts, func(f fact) bool { return f.Value == "" || f.Value == "0 GiB" })
}
