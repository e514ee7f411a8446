package scenarios

import (
	"slices"
	"time"

	"github.com/hotsku/hotsku/chaos"
	"github.com/hotsku/hotsku/scenarios/fleet"
	"github.com/hotsku/hotsku/stack"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify"
)

// salesAndStores are the rows of which the field tells: what is sold, or what
// the stores hold, is not as somebody thought.
func salesAndStores() []Scenario {
	load := Load{RatePerS: 500, Duration: 12 * time.Second, Stock: 3000, Connections: 16, Depth: 256, Timeout: 5 * time.Second}
	limits := chaos.Limits{Bite: 15 * time.Second, Down: 0, Heal: 20 * time.Second}
	row := func(name, doc string, roles []fleet.Role, faults ...Fault) Scenario {
		return Scenario{Name: name, Doc: doc, Tags: []string{"nightly"}, Load: load, Fleet: roles, Faults: faults,
			Invariants: invariantsAll(), Converge: 45 * time.Second}
	}
	with := func(s Scenario, change func(*Scenario)) Scenario { change(&s); return s }
	fault := func(kind Kind, down time.Duration, hits ...string) Fault {
		return Fault{Kind: kind, Limits: chaos.Limits{Bite: limits.Bite, Down: down, Heal: limits.Heal}, Must: happened(hits...)}
	}
	ended := verify.HitEnded
	// backlog has create messages under way whenever something else happens, 3 to
	// 5 s into the load.
	backlog := fault(ProcessDown{Member: "consumer", How: chaos.HaltPause, From: time.Second, Until: 2 * time.Second, By: "access", Felt: "reservation_created_total"},
		4*time.Second, "down", "felt")
	const from, until = 3 * time.Second, 4 * time.Second
	window := func(roles []fleet.Role) []fleet.Role {
		return withArgs(roles, "consumer", "--payment-window", "10s", "--sweep-grace", "3s")
	}
	buyers := func() []fleet.Role { return append(defaultFleet(2, true), role("orders", "orders", true)) }
	return []Scenario{
		row("poison-message", // R7.4.8
			"the database refuses the orders of one buyer in fifty for a while; no neighbour in the batch sinks with them, and their units return",
			defaultFleet(2, true), fault(Database{Deed: "poison", From: time.Second, Until: 2 * time.Second}, 3*time.Second, "done", ended(seckill.StatusRejectedPoison))),
		trial(row("duplicate-create-message", // R7.6, R13.3
			"every create message the broker has comes twice more, in other queues; each changes nothing but the first",
			defaultFleet(2, true), fault(Again{What: AgainCreates, Times: 2, From: from, Until: until}, 0, "copies", "felt"))),
		row("duplicate-compensation", // R13.4.7
			"every compensation that was published comes three times more; each returns its unit once",
			buyers(), fault(Again{What: AgainCompensations, Times: 3, From: 5 * time.Second, Until: 6 * time.Second}, 0, "copies", "felt", ended(seckill.StatusCancelled))),
		trial(row("messages-reordered", // R10
			"create messages overtake each other in a backlog, and events come again the latest first; an order's end is not undone by its beginning",
			buyers(), backlog, fault(Again{What: AgainCreates, Times: 1, From: from, Until: until}, 0, "copies", "felt"),
			fault(Again{What: AgainBackwards, Times: 1, From: 8 * time.Second, Until: 9 * time.Second}, 0, "copies", "felt", ended(seckill.StatusCancelled)))),
		trial(with(row("late-message-after-expiry", // R8.3
			"the consumer is frozen beyond what a reservation is held for; the late messages become no orders, and their units return",
			withArgs(defaultFleet(2, true), "access", "--hold", "5s"),
			fault(ProcessDown{Member: "consumer", How: chaos.HaltPause, From: time.Second, Until: 2 * time.Second, By: "access", Felt: "reservation_created_total"},
				10*time.Second, "down", "felt", ended(seckill.StatusRejectedLate))), func(s *Scenario) { s.Load.Duration = 15 * time.Second })),
		trial(row("activity-terminated-mid-sale", // R7.9
			"the operator closes the sale with messages under way; they end as rejections, nobody is told sold out, nothing is reserved any more",
			defaultFleet(2, true), backlog, fault(CloseSale{From: from, Until: until}, 0, "closed", ended(seckill.StatusRejectedClosed)))),
		trial(row("activity-version-mismatch", // R8.3
			"the activity changes in PostgreSQL with messages of the old version under way; they end as rejections until it is changed back",
			defaultFleet(2, true), backlog, fault(Database{Deed: "newer-version", From: from, Until: until}, 4*time.Second, "done", ended(seckill.StatusRejectedVersion)))),
		trial(with(row("same-user-50-requests", // R13.1, I2
			"each buyer sends fifty requests in a row, each under an id of its own; one reservation each, and the same one in all answers",
			defaultFleet(2, true)), func(s *Scenario) {
			s.Load.RatePerS, s.Load.RequestsPerUser, s.Load.Stock = 2000, 50, 200
			s.Must = happened(verify.HitAnswered(seckill.CodeDuplicateUser), verify.HitAnswered(seckill.CodeSoldOut))
		})),
		trial(with(row("consumer-stalled-past-timeout", // R7.4.5
			"one consumer of two freezes in the midst of its transactions for longer than the database keeps them, and goes on as if nothing had happened",
			twoOfEach(),
			fault(ProcessDown{Member: "consumer-1", How: chaos.HaltPause, From: time.Second, Until: 4 * time.Second, By: "consumer", Felt: "order_created_total"}, 20*time.Second, "down", "felt")),
			func(s *Scenario) { s.Load.Duration = 15 * time.Second })),
		trial(with(row("snapshot-held-all-sale", // R15
			"somebody forgot a transaction that keeps every dead row of the sale; orders come in time all the same",
			buyers(), fault(Database{Deed: "old-snapshot", From: 0, Until: 100 * time.Millisecond}, 12*time.Second, "done")), func(s *Scenario) {
			s.Load.RatePerS, s.Load.Stock = 1000, 10_000
		})),
		trial(row("broker-restart-with-delayed-cancels", // R12.5
			"the broker dies with the reminders of unpaid orders in it, and starts again with its data; every overdue order expires once",
			window(buyers()), Fault{Kind: ServerDown{Server: stack.BrokerName, How: chaos.HaltKill, From: 4 * time.Second, Until: 6 * time.Second,
				By: "access", Felt: "message_send_unknown_total"},
				Limits: chaos.Limits{Bite: 20 * time.Second, Down: 2 * time.Second, Heal: 60 * time.Second}, Must: happened("down", "felt", ended(seckill.StatusExpired))})),
	}
}

// withArgs gives the processes of a kind arguments.
func withArgs(roles []fleet.Role, kind string, args ...string) []fleet.Role {
	for i := range roles {
		if roles[i].Kind == kind {
			roles[i].Args = slices.Concat(roles[i].Args, args)
		}
	}
	return roles
}
