package scenarios

import (
	"time"

	"github.com/hotsku/hotsku/scenarios/fleet"
)

// workloads are the rows in which it is the sale itself that is hard: wrong
// designs are found out by load alone in most of them.
func workloads() []Scenario {
	return []Scenario{
		{
			Name: "two-accesses-sell-out",
			Doc:  "two access processes sell out one SKU under load, and buyers ask on; nothing goes wrong",
			Tags: []string{"nightly"},
			Load: smallLoad(), Fleet: defaultFleet(2, true), Invariants: invariantsAll(), Converge: 30 * time.Second,
		},
		{
			// R15.12
			Name: "redis-promises-too-much",
			Doc:  "Redis has a tenth more units than there are inventory tokens; who got one of those is rejected, and its unit is not sold again",
			Tags: []string{"nightly"},
			Load: smallLoad(), Sale: Sale{Tokens: 2700}, Fleet: defaultFleet(2, true), Invariants: invariantsAll(), Converge: 30 * time.Second,
		},
		{
			Name: "cancelled-units-sell-again",
			Doc:  "buyers cancel after the sale is sold out, and their units are sold again by every access process; nothing goes wrong",
			Tags: []string{"nightly"},
			Load: resaleLoad(), Sale: Sale{Resell: true}, Fleet: resaleFleet(), Invariants: invariantsAll(), Converge: 30 * time.Second,
		},
	}
}

// resaleLoad sells out early, so that buyers have time to cancel.
func resaleLoad() Load {
	load := smallLoad()
	load.RatePerS, load.Stock = 1000, 1000
	return load
}

// resaleFleet is the default one with processes to cancel at.
func resaleFleet() []fleet.Role {
	return append(defaultFleet(2, true), role("orders", "orders", true))
}
