package scenarios

import (
	"math"
	"slices"
	"time"

	"github.com/hotsku/hotsku/verify/rundir"
)

// LoadDefault is the specification's headline (R1.1, R1.2): 300,000 requests
// a second for one SKU of 10,000 units.
var LoadDefault = Load{RatePerS: 300_000, Duration: 10 * time.Second, Stock: 10_000,
	Connections: 32, Depth: 1024, Timeout: 5 * time.Second}

// Bench is the main job: the given load on a healthy system, with the
// specification's targets as SLOs (R1.3, R1.5, R13.5.7).
func Bench(load Load) Scenario {
	return Scenario{
		Name: "bench", Doc: "one SKU under open-loop load on a healthy system",
		Load: load, Fleet: defaultFleet(1, false),
		Invariants: invariantsAll(),
		SLOs: []rundir.SLO{
			{Name: "P99 of all answers below 100 ms", Metric: "latency_ms.all.p99", Op: "<", Target: 100},
			{Name: "P99 of accepted answers below 100 ms", Metric: "latency_ms.accepted.p99", Op: "<", Target: 100},
			{Name: "99.9 % of valid orders within 3 s", Metric: "orders.within_3s_ratio", Op: ">=", Target: 0.999},
			{Name: "every unit sold", Metric: "orders.valid", Op: ">=", Target: float64(min(load.Stock, load.users()))},
			{Name: "every request answered", Metric: "load.unanswered", Op: "<", Target: 1},
		},
		Converge: 60 * time.Second,
	}
}

// users is a lower bound of how many distinct users a load has, whatever its
// seed: five deviations below the expected number of fresh requests.
func (l Load) users() int64 {
	n := math.Floor(float64(l.RatePerS) * l.Duration.Seconds())
	const old = float64(repeatPermille+sameUserPermille) / 1000
	return int64(max(0, n*(1-old)-5*math.Sqrt(n*old*(1-old))))
}

// All is the scenario table. Each row is replayed by
// `hotsku chaos run NAME --seed N`.
func All() []Scenario {
	return slices.Concat(
		killPoints(),
		workloads(),
		oneOfTwoDies(),
		serverFaults(),
		wayFaults(),
		salesAndStores(),
		random(),
	)
}

// trial marks a row that was not seen to pass with three seeds yet: no night
// runs it.
func trial(s Scenario) Scenario {
	s.Tags = []string{"trial"}
	return s
}
