package scenarios

import (
	"context"
	"fmt"
	"math"

	"github.com/hotsku/hotsku/loadgen"
	"github.com/hotsku/hotsku/scenarios/fleet"
	"github.com/hotsku/hotsku/stack"
	"github.com/hotsku/hotsku/verify/rundir"
)

// scrapes are the metrics of each process at one time, by its name.
type scrapes map[string]fleet.Metrics

func (r *runner) scrape(ctx context.Context) (scrapes, error) {
	out := scrapes{}
	for _, m := range r.fleet.Members() {
		metrics, err := m.Scrape(ctx)
		if err != nil {
			return nil, err
		}
		out[m.Name()] = metrics
	}
	return out, nil
}

// extras are the figures beside the evidence: what the processes counted
// between two scrapes. A process that was killed took its counts with it, so
// with faults only what cannot mislead is shown.
func (r *runner) extras(before, after scrapes, result *loadgen.Result) rundir.Extras {
	x := rundir.Extras{Schema: rundir.ExtrasSchema, Environment: environment(r.s.Fleet), CPUSeconds: map[string]float64{"generator": result.CPU.Seconds()},
		Funnel: []rundir.FunnelStage{}}
	for _, m := range r.fleet.Members() {
		x.CPUSeconds[m.Name()] = m.CPU().Seconds()
	}
	for _, server := range r.stack.Servers() {
		if p, ok := server.(stack.Processed); ok {
			if usage, err := p.Usage(); err == nil {
				x.CPUSeconds[server.Name()] = (usage.User + usage.System).Seconds()
			}
		}
	}
	if len(r.s.Faults) > 0 {
		return x
	}
	sum := func(name string) int64 {
		total := int64(0)
		for member, m := range after {
			total += m.Count(name) - before[member].Count(name)
		}
		return total
	}
	x.Redis.Calls = sum("reservation_lua_calls_total")
	x.MQ.Sends, x.MQ.Unknown = sum("message_send_total"), sum("message_send_unknown_total")
	x.MQ.Redelivered = sum("inbox_conflict_total")
	x.Postgres.ClaimsEmpty = sum("inventory_token_empty_total")
	for member, m := range after {
		if p99 := m.QuantileSince(before[member], "reservation_lua_duration", 0.99); !math.IsNaN(p99) {
			x.Redis.LuaP99MS = math.Max(x.Redis.LuaP99MS, p99*1000)
		}
	}
	if seconds := result.Elapsed.Seconds(); seconds > 0 {
		x.Postgres.TxPerS = float64(sum("order_transactions_total")) / seconds
	}
	requests, authenticated := sum("seckill_requests_total"), sum("seckill_requests_authenticated_total")
	pastGate, submitted := sum("seckill_requests_past_gate_total"), sum("seckill_submitted_total")
	dispatched := submitted - sum("seckill_queue_expired_total")
	x.Funnel = []rundir.FunnelStage{
		{Stage: "edge: well-formed, eligible", In: requests, Out: authenticated},
		{Stage: "sold-out gate", In: authenticated, Out: pastGate},
		{Stage: "in-flight cap", In: pastGate, Out: submitted},
		{Stage: "dispatched to Redis in time", In: submitted, Out: dispatched},
		{Stage: "reserved", In: dispatched, Out: sum("reservation_created_total")},
	}
	return x
}

// membersServing are the addresses of members of a kind.
func (r *runner) membersServing(kind string, but map[string]bool) ([]string, error) {
	var addrs []string
	for _, m := range r.fleet.Members() {
		if m.Kind() == kind && !but[m.Name()] {
			addrs = append(addrs, m.Listen())
		}
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("no %s process to send to", kind)
	}
	return addrs, nil
}
