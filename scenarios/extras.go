package scenarios

import (
	"context"
	"fmt"
	"math"

	"github.com/hotsku/hotsku/loadgen"
	"github.com/hotsku/hotsku/scenarios/fleet"
	"github.com/hotsku/hotsku/verify/rundir"
)

// scrapes are the metrics of each process at one time, by its name.
type scrapes map[string]scrape

type scrape struct {
	kind    string
	metrics fleet.Metrics
	start   int // of its member; another one is another process
}

func (r *runner) scrape(ctx context.Context) (scrapes, error) {
	out := scrapes{}
	for _, m := range r.fleet.Members() {
		metrics, err := m.Scrape(ctx)
		if err != nil {
			return nil, err
		}
		out[m.Name()] = scrape{m.Kind(), metrics, m.Starts()}
	}
	return out, nil
}

// counted is what the processes of a kind counted between two scrapes. A
// process that ended in between took its counts with it, so that what its
// kind counted is not known.
type counted struct {
	kind          string
	before, after scrapes
}

// whole says that every process of the kind lived through.
func (c counted) whole() bool {
	processes := 0
	for member, m := range c.after {
		if m.kind != c.kind {
			continue
		}
		processes++
		if c.before[member].start != m.start {
			return false
		}
	}
	return processes > 0
}

// sum is nil where it is not known.
func (c counted) sum(name string) *int64 {
	if !c.whole() {
		return nil
	}
	total := int64(0)
	for member, m := range c.after {
		if m.kind == c.kind {
			total += m.metrics.Count(name) - c.before[member].metrics.Count(name)
		}
	}
	return &total
}

// worst is the highest of the processes' quantiles of a histogram, nil where
// it is not known or nothing was measured.
func (c counted) worst(name string, quantile float64) *float64 {
	if !c.whole() {
		return nil
	}
	var worst *float64
	for member, m := range c.after {
		if m.kind != c.kind {
			continue
		}
		if q := m.metrics.QuantileSince(c.before[member].metrics, name, quantile); !math.IsNaN(q) && (worst == nil || q > *worst) {
			worst = &q
		}
	}
	return worst
}

// extras are the figures beside the evidence: what the processes counted
// between two scrapes.
func (r *runner) extras(before, after scrapes, result *loadgen.Result) rundir.Extras {
	x := rundir.Extras{Schema: rundir.ExtrasSchema, Environment: environment(r.s.Fleet), CPUSeconds: map[string]float64{}, Usage: r.usage.samples}
	if n := len(r.usage.samples); n > 1 {
		for name, seconds := range r.usage.samples[n-1].CPUSeconds {
			x.CPUSeconds[name] = seconds - r.usage.samples[0].CPUSeconds[name]
		}
	}
	access, consumer := counted{"access", before, after}, counted{"consumer", before, after}
	x.Redis.Calls = access.sum("reservation_lua_calls_total")
	if p99 := access.worst("reservation_lua_duration", 0.99); p99 != nil {
		x.Redis.LuaP99MS = new(*p99 * 1000)
	}
	x.MQ.Sends, x.MQ.Unknown = access.sum("message_send_total"), access.sum("message_send_unknown_total")
	x.MQ.Redelivered = consumer.sum("inbox_conflict_total")
	x.Postgres.ClaimsEmpty = consumer.sum("inventory_token_empty_total")
	if n, seconds := consumer.sum("order_transactions_total"), result.Elapsed.Seconds(); n != nil && seconds > 0 {
		x.Postgres.TxPerS = new(float64(*n) / seconds)
	}
	x.Funnel = edgeFunnel(access)
	return x
}

// edgeFunnel is what the access processes did with the requests they parsed;
// empty where it is not known.
func edgeFunnel(access counted) []rundir.FunnelStage {
	if !access.whole() {
		return []rundir.FunnelStage{}
	}
	sum := func(name string) int64 { return *access.sum(name) }
	submitted := sum("seckill_submitted_total")
	through := []int64{sum("seckill_requests_total"), sum("seckill_requests_authenticated_total"), sum("seckill_requests_past_gate_total"),
		submitted, submitted - sum("seckill_queue_expired_total"), sum("reservation_created_total")}
	var stages []rundir.FunnelStage
	for i, stage := range []string{"edge: well-formed, eligible", "sold-out gate", "in-flight cap", "dispatched to Redis in time", "reserved"} {
		stages = append(stages, rundir.FunnelStage{Source: rundir.ByCounters, Stage: stage, In: through[i], Out: through[i+1]})
	}
	return stages
}

// membersServing are the addresses of members of a kind.
func (r *runner) membersServing(kind string) ([]string, error) {
	var addrs []string
	for _, m := range r.fleet.Members() {
		if m.Kind() == kind {
			addrs = append(addrs, m.Listen())
		}
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("no %s process to send to", kind)
	}
	return addrs, nil
}
