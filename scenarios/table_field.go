package scenarios

import (
	"time"

	"github.com/hotsku/hotsku/chaos"
	"github.com/hotsku/hotsku/scenarios/fleet"
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
	fault := func(kind Kind, down time.Duration, hits ...string) Fault {
		return Fault{Kind: kind, Limits: chaos.Limits{Bite: limits.Bite, Down: down, Heal: limits.Heal}, Must: happened(hits...)}
	}
	ended := verify.HitEnded
	buyers := func() []fleet.Role { return append(defaultFleet(2, true), role("orders", "orders", true)) }
	return []Scenario{
		row("poison-message", // R7.4.8
			"the database refuses the orders of one buyer in fifty for a while; no neighbour in the batch sinks with them, and their units return",
			defaultFleet(2, true), fault(Database{Deed: "poison", From: time.Second, Until: 2 * time.Second}, 3*time.Second, "done", ended(seckill.StatusRejectedPoison))),
		row("duplicate-compensation", // R13.4.7
			"every compensation that was published comes three times more; each returns its unit once",
			buyers(), fault(Again{What: AgainCompensations, Times: 3, From: 5 * time.Second, Until: 6 * time.Second}, 0, "copies", "felt", ended(seckill.StatusCancelled))),
	}
}
