package scenarios

import (
	"time"

	"github.com/hotsku/hotsku/chaos"
	"github.com/hotsku/hotsku/stack"
	"github.com/hotsku/hotsku/verify/rundir"
)

// wayFaults are the rows in which what goes wrong is between the processes
// and the stores: replies are lost one by one, connections are reset, refused
// or slowed down. Every server is well all the time.
func wayFaults() []Scenario {
	const rate = 300
	// The stock outlasts the load: the sale goes on before, during and after.
	load := func(lasts time.Duration) Load {
		return Load{RatePerS: rate, Duration: lasts, Stock: int64(rate * lasts.Seconds()), Connections: 8, Depth: 256, Timeout: 5 * time.Second}
	}
	row := func(name, doc string, lasts time.Duration, kind Kind, down time.Duration, must ...rundir.MustHit) Scenario {
		return Scenario{Name: name, Doc: doc, Tags: []string{"nightly"}, Load: load(lasts), Fleet: withOrders(defaultFleet(2, true)),
			Faults: []Fault{{Kind: kind, Limits: chaos.Limits{Bite: 20 * time.Second, Down: down, Heal: 30 * time.Second},
				Must: append(must, rundir.MustHit{Hit: "felt", AtLeast: 1})}},
			Invariants: invariantsAll(), Converge: 60 * time.Second}
	}
	hit := func(name string, n int64) rundir.MustHit { return rundir.MustHit{Hit: name, AtLeast: n} }
	return []Scenario{
		closes(rundir.Outage{Dependency: rundir.OnRedis, LimitMS: 500, ProbesPerS: 0}, row("redis-down", // R7.11.1, R11.1
			"nobody reaches Redis for four seconds; requests are refused at once with the reason, none hears SOLD_OUT, and the sale goes on after it",
			12*time.Second,
			WayBlocked{Way: Way{Store: stack.RedisName}, Trouble: chaos.Trouble{Refuse: true}, From: time.Second, Until: 2 * time.Second, By: "access", Felt: "seckill_valves_refused_total"},
			2*time.Second, hit("connections_cut", 1))),
		row("query-redis-down", // R7.11.6
			"only the buyers' window does not reach Redis; it asks PostgreSQL within its limits, and the sale does not notice",
			8*time.Second,
			WayBlocked{Way: Way{Store: stack.RedisName, Of: "orders"}, Trouble: chaos.Trouble{Refuse: true}, From: time.Second, Until: 2 * time.Second, By: "orders", Felt: "query_fallbacks_total"},
			2*time.Second, hit("connections_cut", 1)),
	}
}

// closes is the row whose fault must close the sale.
func closes(by rundir.Outage, s Scenario) Scenario {
	s.Faults[0].Closes = &by
	s.Invariants = append(s.Invariants, "I11")
	return s
}
