package scenarios

import (
	"math/rand/v2"
	"time"

	"github.com/hotsku/hotsku/chaos"
	"github.com/hotsku/hotsku/stack"
	"github.com/hotsku/hotsku/verify/rundir"
)

// random are the rows whose faults the seed draws.
func random() []Scenario {
	return []Scenario{{
		// R13.4
		Name:  "two-faults-at-once",
		Doc:   "two faults that the seed draws, of different targets, in the same seconds; whatever they are, all invariants hold",
		Tags:  []string{"nightly"},
		Load:  Load{RatePerS: 300, Duration: 20 * time.Second, Stock: 6000, Connections: 16, Depth: 256, Timeout: 5 * time.Second},
		Fleet: twoOfEach(), Draw: drawTwo, Invariants: invariantsAll(), Converge: 60 * time.Second,
	}}
}

// drawTwo draws two of the faults that any moment of a sale must bear.
func drawTwo(rng *rand.Rand) []Fault {
	const from, until = 2 * time.Second, 6 * time.Second
	down := time.Duration(rng.Int64N(int64(4 * time.Second)))
	fault := func(kind Kind, hits ...string) Fault {
		f := Fault{Kind: kind, Limits: chaos.Limits{Bite: 30 * time.Second, Down: down, Heal: 60 * time.Second}}
		for _, hit := range hits {
			f.Must = append(f.Must, rundir.MustHit{Hit: hit, AtLeast: 1})
		}
		return f
	}
	work := map[string]string{"access": "reservation_created_total", "consumer": "order_created_total", "outbox": "outbox_published_total",
		"orders": "query_cache_answers_total", "reconcile": "reconcile_rounds_total"}
	var targets [][]Fault // what may befall each
	for _, server := range []string{stack.RedisName, stack.PostgresName, stack.BrokerName} {
		by, felt := missed(server)
		var ways []Fault
		for _, how := range []chaos.Halt{chaos.HaltKill, chaos.HaltStop, chaos.HaltPause} {
			ways = append(ways, fault(ServerDown{Server: server, How: how, From: from, Until: until, By: by, Felt: felt}, "down", "felt"))
		}
		targets = append(targets, ways)
	}
	for _, kind := range []string{"access", "consumer", "outbox", "orders", "reconcile"} {
		targets = append(targets, []Fault{
			fault(KillOne{Kind: kind, From: from, Until: until, Work: work[kind]}, "killed", "others_worked"),
			fault(ProcessDown{Member: kind + "-1", How: chaos.HaltPause, From: from, Until: until, By: kind, Felt: work[kind]}, "down", "felt"),
		})
	}
	targets = append(targets,
		[]Fault{fault(Again{What: AgainCreates, Times: 1, From: from, Until: until}, "copies", "felt")},
		[]Fault{fault(Again{What: AgainBackwards, Times: 1, From: from, Until: until}, "copies", "felt")},
		[]Fault{fault(Database{Deed: "old-snapshot", From: from, Until: until}, "done"), fault(Database{Deed: "poison", From: from, Until: until}, "done")})
	var two []Fault
	for _, i := range rng.Perm(len(targets))[:2] {
		two = append(two, targets[i][rng.IntN(len(targets[i]))])
	}
	return two
}
