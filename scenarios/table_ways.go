package scenarios

import (
	"time"

	"github.com/hotsku/hotsku/chaos"
	"github.com/hotsku/hotsku/chaos/proxy"
	"github.com/hotsku/hotsku/stack"
	"github.com/hotsku/hotsku/verify"
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
	broker := Way{Store: stack.BrokerName}
	slow := func(d proxy.Direction, by time.Duration) chaos.Trouble {
		return chaos.Trouble{Toxics: []proxy.Toxic{{Direction: d, Latency: by, Jitter: by / 2}}}
	}
	hit := func(name string, n int64) rundir.MustHit { return rundir.MustHit{Hit: name, AtLeast: n} }
	return []Scenario{
		trial(row("lose-one-evalsha-reply", // R7.10.2, R11.1
			"the reply to a reserve call is lost after the script reserved; the buyers hear that it is unknown, and the scanner brings their orders home",
			6*time.Second,
			LoseReply{Reply: ReplyReserve, Of: "access", From: time.Second, Until: 2 * time.Second, Among: 20, Times: 1, By: "access", Felt: "reservation_lua_errors"},
			0, hit("replies_lost", 1), hit(verify.HitResentByScannerOnly, 1))),
		row("lose-one-send-reply", // R7.8.1, R7.8.2, R7.8.3, R7.8.4
			"the broker's reply to a send is lost after it stored the messages; the buyers hear that they are pending, and each has one order in the end",
			6*time.Second,
			LoseReply{Reply: ReplySend, From: time.Second, Until: 2 * time.Second, Among: 20, Times: 1, By: "access", Felt: "message_send_unknown_total"},
			0, hit("replies_lost", 1)),
		row("lose-one-commit-reply", // R7.10.6, R13.4.4
			"PostgreSQL's reply to the consumer's COMMIT is lost after it committed; the consumer does the batch again, and the inbox says that it is done",
			6*time.Second,
			LoseReply{Reply: ReplyCommit, Of: "consumer", From: time.Second, Until: 2 * time.Second, Among: 10, Times: 1, By: "consumer", Felt: "inbox_conflict_total"},
			0, hit("replies_lost", 1)),
		row("drop-broker-before-ack", // R13.4.2, R7.11.2
			"six times in a row the broker's acknowledgement is lost with its connection; every message is resent with its id, and none becomes two orders",
			8*time.Second,
			LoseReply{Reply: ReplySend, From: time.Second, Until: 2 * time.Second, Among: 5, Times: 6, By: "access", Felt: "message_send_unknown_total"},
			0, hit("replies_lost", 6), hit(verify.HitResentBesideOriginal, 1)),
		row("broker-flap", // R7.11.2
			"the broker's connections are reset and refused four times for half a second; reservations wait and are resent, and the breaker stays closed or opens briefly",
			10*time.Second,
			WayBlocked{Way: broker, Trouble: chaos.Trouble{Refuse: true}, From: time.Second, Until: 2 * time.Second, Times: 4, For: 500 * time.Millisecond, By: "access", Felt: "message_send_unknown_total"},
			500*time.Millisecond, hit("times", 4), hit("connections_cut", 4)),
		closes(rundir.Outage{Dependency: rundir.OnBroker, LimitMS: 1000, ProbesPerS: 16}, row("broker-down", // R7.11.3, R11.3
			"the broker cannot be reached for longer than the breaker bears; new reservations stop, and what waits comes home once it is back",
			16*time.Second,
			WayBlocked{Way: broker, Trouble: chaos.Trouble{Refuse: true}, From: time.Second, Until: 2 * time.Second, By: "access", Felt: "seckill_breaker_refused_total"},
			5*time.Second, hit("connections_cut", 1))),
		row("broker-timeouts", // R13.5.5
			"the broker's replies come later than sends wait for them; every reservation is pending for a while, and the load shape of 13.5 still ends in one order each",
			8*time.Second,
			WayBlocked{Way: broker, Trouble: slow(proxy.ToClient, 300*time.Millisecond),
				From: time.Second, Until: 2 * time.Second, By: "access", Felt: "seckill_queued_pending_total"},
			3*time.Second, hit("bytes_hit", 1)),
		closes(rundir.Outage{Dependency: rundir.OnRedis, LimitMS: 500, ProbesPerS: 0}, row("redis-down", // R7.11.1, R11.1
			"nobody reaches Redis for four seconds; requests are refused at once with the reason, none hears SOLD_OUT, and the sale goes on after it",
			12*time.Second,
			WayBlocked{Way: Way{Store: stack.RedisName}, Trouble: chaos.Trouble{Refuse: true}, From: time.Second, Until: 2 * time.Second, By: "access", Felt: "seckill_valves_refused_total"},
			2*time.Second, hit("connections_cut", 1))),
		trial(closes(rundir.Outage{Dependency: rundir.OnPostgres, LimitMS: 1500, ProbesPerS: 0}, row("postgres-down-long", // R7.11.5, R11.5
			"nobody reaches PostgreSQL for longer than the valve bears; new reservations stop at the limit, and every order comes once it is back",
			24*time.Second,
			WayBlocked{Way: Way{Store: stack.PostgresName}, Trouble: chaos.Trouble{Refuse: true}, From: time.Second, Until: 2 * time.Second, By: "access", Felt: "seckill_valves_refused_total"},
			4*time.Second, hit("connections_cut", 1)))),
		trial(lagOverLimit(row("lag-over-limit", // R7.11.5, R11.4
			"the consumer's way to PostgreSQL is slow, and messages wait; over the limit new reservations stop, and go on once the consumer has caught up",
			20*time.Second,
			WayBlocked{Way: Way{Store: stack.PostgresName, Of: "consumer"}, Trouble: slow(proxy.ToClient, time.Second),
				From: time.Second, Until: 2 * time.Second, By: "access", Felt: "seckill_valves_refused_total"},
			2*time.Second, hit("bytes_hit", 1)))),
		row("query-redis-down", // R7.11.6
			"only the buyers' window does not reach Redis; it asks PostgreSQL within its limits, and the sale does not notice",
			8*time.Second,
			WayBlocked{Way: Way{Store: stack.RedisName, Of: "orders"}, Trouble: chaos.Trouble{Refuse: true}, From: time.Second, Until: 2 * time.Second, By: "orders", Felt: "query_fallbacks_total"},
			2*time.Second, hit("connections_cut", 1)),
		row("query-postgres-down", // R7.11.7
			"only the buyers' window does not reach PostgreSQL; it answers what Redis knows and says that the rest cannot be told now",
			8*time.Second,
			WayBlocked{Way: Way{Store: stack.PostgresName, Of: "orders"}, Trouble: chaos.Trouble{Refuse: true}, From: time.Second, Until: 2 * time.Second, By: "orders", Felt: "query_store_failures_total"},
			2*time.Second, hit("connections_cut", 1)),
	}
}

// closes is the row whose fault must close the sale.
func closes(by rundir.Outage, s Scenario) Scenario {
	s.Faults[0].Closes = &by
	s.Invariants = append(s.Invariants, "I11")
	return s
}

// lagOverLimit gives the access processes a limit that the load reaches: above
// what seems to wait because the broker hears of offsets late.
func lagOverLimit(s Scenario) Scenario {
	for i := range s.Fleet {
		if s.Fleet[i].Kind == "access" {
			s.Fleet[i].Args = append(s.Fleet[i].Args, "--lag-limit", "600")
		}
	}
	return s
}
