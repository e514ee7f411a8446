package scenarios

import (
	"time"

	"github.com/hotsku/hotsku/chaos"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify"
	"github.com/hotsku/hotsku/verify/rundir"
)

// smallLoad sells out within its duration and leaves a machine time for the
// faults.
func smallLoad() Load {
	return Load{RatePerS: 2000, Duration: 6 * time.Second, Stock: 3000, Connections: 16, Depth: 256, Timeout: 5 * time.Second}
}

// killPoints are the rows in which a process dies at a named point of its work
// (7.10, 13.4).
func killPoints() []Scenario {
	return []Scenario{
		{
			// R7.7, R7.10.2, R13.4.1
			Name: "kill-access-after-reserve",
			Doc:  "an access process dies by SIGKILL after the script reserved and before anything was sent; the scanner brings the orders home",
			Tags: []string{"smoke", "nightly"},
			Load: smallLoad(), Fleet: defaultFleet(2, true),
			Faults: []Fault{{
				Kind:   KillPoint{Member: "access-1", Point: seckill.FaultAccessAfterReserve, At: 200},
				Limits: chaos.Limits{Bite: 10 * time.Second, Down: time.Second, Heal: 15 * time.Second},
				Must:   []rundir.MustHit{{Hit: "killed", AtLeast: 1}, {Hit: verify.HitResentByScannerOnly, AtLeast: 1}},
			}},
			Invariants: invariantsAll(),
			Converge:   30 * time.Second,
		},
	}
}
