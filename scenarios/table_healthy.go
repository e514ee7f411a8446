package scenarios

import "time"

// healthy are the rows in which nothing goes wrong: wrong designs are found
// out by load alone in them.
func healthy() []Scenario {
	return []Scenario{
		{
			Name:  "two-accesses-sell-out",
			Doc:   "two access processes sell out one SKU under load, and buyers ask on; nothing goes wrong",
			Tags:  []string{"nightly"},
			Load:  smallLoad(),
			Fleet: defaultFleet(2, true), Invariants: invariantsAll(), Converge: 30 * time.Second,
		},
	}
}
