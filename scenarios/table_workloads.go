package scenarios

import (
	"time"

	"github.com/hotsku/hotsku/scenarios/fleet"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify"
	"github.com/hotsku/hotsku/verify/rundir"
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
			Name: "tokens-fewer-than-redis-stock",
			Doc:  "Redis has a tenth more units than there are inventory tokens; who got one of those is rejected, and its unit is not sold again",
			Tags: []string{"nightly"},
			Load: smallLoad(), Sale: Sale{Tokens: 2700}, Fleet: defaultFleet(2, true), Invariants: invariantsAll(), Converge: 30 * time.Second,
			Must: happened(verify.HitEnded(seckill.StatusRejectedNoFinalStock)),
		},
		{
			// R5.4
			Name: "resale-reopens-every-gate",
			Doc:  "buyers cancel after the sale is sold out, and their units are sold again by every access process; nothing goes wrong",
			Tags: []string{"nightly"},
			Load: resaleLoad(), Sale: Sale{Resell: true}, Fleet: resaleFleet(), Invariants: invariantsAll(), Converge: 30 * time.Second,
			Must: happened(verify.HitResold, verify.HitEnded(seckill.StatusCancelled), verify.HitAnswered(seckill.CodeSoldOut)),
		},
	}
}

// happened says what must have been in a run for it to prove anything: each
// once at least.
func happened(hits ...string) []rundir.MustHit {
	out := make([]rundir.MustHit, len(hits))
	for i, hit := range hits {
		out[i] = rundir.MustHit{Hit: hit, AtLeast: 1}
	}
	return out
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
