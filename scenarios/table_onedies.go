package scenarios

import (
	"time"

	"github.com/hotsku/hotsku/chaos"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify"
	"github.com/hotsku/hotsku/verify/rundir"
)

// oneOfTwoDies are the rows in which one process of two dies under load, for
// each role: the other goes on, and all invariants hold. The sale lasts as
// long as the load, and buyers ask, pay and cancel meanwhile.
func oneOfTwoDies() []Scenario {
	load := Load{RatePerS: 500, Duration: 6 * time.Second, Stock: 3000, Connections: 16, Depth: 256, Timeout: 5 * time.Second}
	limits := chaos.Limits{Bite: 15 * time.Second, Down: time.Second, Heal: 20 * time.Second}
	row := func(kind, doc, work string, tags ...string) Scenario {
		return Scenario{
			Name: "one-" + kind + "-dies", Doc: doc, Tags: append(tags, "nightly"), Load: load, Fleet: twoOfEach(),
			Faults: []Fault{{
				Kind: KillOne{Kind: kind, From: time.Second, Until: 4 * time.Second, Work: work}, Limits: limits,
				Must: []rundir.MustHit{{Hit: "killed", AtLeast: 1}, {Hit: "others_worked", AtLeast: 1}},
			}},
			Invariants: invariantsAll(),
			Converge:   30 * time.Second,
		}
	}
	return []Scenario{
		// R7.4.3
		row("access", "one access process of two dies by SIGKILL under load; the other goes on, and what was reserved comes home", "reservation_created_total"),
		// R7.4.5, R7.10.4, R7.10.5, R7.10.6
		row("consumer", "one consumer of two dies by SIGKILL under load; its queues go to the other, its messages come again", "order_created_total", "smoke"),
		oneScannerDies(load, limits),
		// R7.10.7
		row("outbox", "one outbox process of two dies by SIGKILL under load; its leases run out, its events come again, each applied once", "outbox_published_total"),
		// R7.4.7
		row("orders", "one orders process of two dies by SIGKILL while buyers ask, pay and cancel; each order ends once", "query_cache_answers_total"),
		// R11.6
		row("reconcile", "one reconcile process of two dies by SIGKILL while it looks and mends; the other goes on, and nothing is done twice", "reconcile_rounds_total"),
	}
}

// oneScannerDies gives the scanners something to do: an access process dies
// with what it reserved. The other scanner is frozen until the one that dies
// has leased that.
func oneScannerDies(load Load, limits chaos.Limits) Scenario {
	return Scenario{
		// R7.4.4, R7.10.2
		Name: "one-scanner-dies",
		Doc:  "one scanner of two dies by SIGKILL with the reservations it leased from a dead access process; the other brings the orders home",
		Tags: []string{"nightly"}, Load: load, Fleet: twoOfEach(),
		Faults: []Fault{
			{
				Kind:   KillPoint{Member: "access-1", Point: seckill.FaultAccessAfterReserve, At: 200},
				Limits: limits,
				Must:   []rundir.MustHit{{Hit: "killed", AtLeast: 1}, {Hit: verify.HitResentByScannerOnly, AtLeast: 1}},
			},
			{
				Kind:   KillPoint{Member: "scanner-1", Point: seckill.FaultScannerBeforeResend, At: 1, Alone: true},
				Limits: chaos.Limits{Bite: limits.Bite, Down: 5 * time.Second, Heal: limits.Heal},
				Must:   []rundir.MustHit{{Hit: "killed", AtLeast: 1}},
			},
		},
		Invariants: invariantsAll(),
		Converge:   30 * time.Second,
	}
}
