package scenarios

import (
	"time"

	"github.com/hotsku/hotsku/chaos"
	"github.com/hotsku/hotsku/stack"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify"
	"github.com/hotsku/hotsku/verify/rundir"
)

// missed are the counters by which the product tells that a server is away:
// reserve calls whose outcome is unknown, order transactions to be repeated,
// sends without a confirmation.
func missed(server string) (by, felt string) {
	switch server {
	case stack.RedisName:
		return "access", "reservation_lua_errors"
	case stack.PostgresName:
		return "consumer", "order_transient_failures_total"
	}
	return "access", "message_send_unknown_total"
}

// serverFaults are the rows in which a whole server, or the only process of a
// role, goes away under load and comes back with its data.
func serverFaults() []Scenario {
	down := func(server string, how chaos.Halt, from, long time.Duration) Fault {
		by, felt := missed(server)
		return Fault{Kind: ServerDown{Server: server, How: how, From: from, Until: from + time.Second, By: by, Felt: felt},
			Limits: chaos.Limits{Bite: 20 * time.Second, Down: long, Heal: 60 * time.Second},
			Must:   []rundir.MustHit{{Hit: "down", AtLeast: 1}, {Hit: "felt", AtLeast: 1}}}
	}
	// Slow enough for a sale to go on before, during and after.
	load := func(lasts time.Duration) Load {
		const rate = 300
		return Load{RatePerS: rate, Duration: lasts, Stock: int64(rate * lasts.Seconds()), Connections: 8, Depth: 256, Timeout: 5 * time.Second}
	}
	row := func(name, doc string, lasts time.Duration, faults ...Fault) Scenario {
		return Scenario{Name: name, Doc: doc, Tags: []string{"nightly"}, Load: load(lasts), Fleet: defaultFleet(2, true),
			Faults: faults, Invariants: invariantsAll(), Converge: 60 * time.Second}
	}
	// PostgreSQL comes last: the backlog it leaves closes a valve, and while that
	// is closed nobody would miss the broker.
	each := func(how chaos.Halt) []Fault {
		return []Fault{down(stack.RedisName, how, time.Second, time.Second), down(stack.BrokerName, how, 6*time.Second, time.Second),
			down(stack.PostgresName, how, 18*time.Second, time.Second)}
	}
	return []Scenario{
		row("stop-postgres-30s", // R7.11.4, R7.11.5, R13.4.5
			"PostgreSQL is shut down for 30 s under load; reservations wait in the broker, new ones stop at the limit, and every order comes once it is back",
			45*time.Second, down(stack.PostgresName, chaos.HaltStop, 2*time.Second, 30*time.Second)),
		row("stop-scanner", // R7.8.4, R13.4.6
			"the scanner is away for 10 s while an access process dies with what it reserved; when it is back it brings that home",
			20*time.Second,
			Fault{Kind: ProcessDown{Member: "scanner", How: chaos.HaltStop, From: 0, Until: 500 * time.Millisecond, By: "access", Felt: "reservation_created_total"},
				Limits: chaos.Limits{Bite: 10 * time.Second, Down: 10 * time.Second, Heal: 20 * time.Second},
				Must:   []rundir.MustHit{{Hit: "down", AtLeast: 1}, {Hit: "felt", AtLeast: 1}}},
			Fault{Kind: KillPoint{Member: "access-1", Point: seckill.FaultAccessAfterReserve, At: 300},
				Limits: chaos.Limits{Bite: 10 * time.Second, Down: time.Second, Heal: 20 * time.Second},
				Must:   []rundir.MustHit{{Hit: "killed", AtLeast: 1}, {Hit: verify.HitResentByScannerOnly, AtLeast: 1}}}),
		trial(row("pause-each-server", // R7.11.1, R7.11.2, R7.11.4
			"Redis, then the broker, then PostgreSQL freezes with its connections open, until the product misses it and a second more",
			25*time.Second, each(chaos.HaltPause)...)),
		trial(row("kill-each-server", // R7.11.1, R7.11.2, R7.11.4
			"Redis, then the broker, then PostgreSQL dies by SIGKILL and starts again with its data after a second; nothing acknowledged is lost",
			25*time.Second, each(chaos.HaltKill)...)),
	}
}
