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
	return Load{RatePerS: 1000, Duration: 6 * time.Second, Stock: 3000, Connections: 16, Depth: 256, Timeout: 5 * time.Second}
}

// killPoints are the rows in which a process dies at a named point of its work
// and is started again a second later (7.10, 13.4).
func killPoints() []Scenario {
	dies := func(member string, point seckill.FaultPoint, at int64, must ...rundir.MustHit) Fault {
		return Fault{Kind: KillPoint{Member: member, Point: point, At: at},
			Limits: chaos.Limits{Bite: 10 * time.Second, Down: time.Second, Heal: 15 * time.Second},
			Must:   append([]rundir.MustHit{{Hit: "killed", AtLeast: 1}}, must...)}
	}
	row := func(name, doc string, faults ...Fault) Scenario {
		return Scenario{Name: name, Doc: doc, Tags: []string{"nightly"}, Load: smallLoad(), Fleet: defaultFleet(2, true),
			Faults: faults, Invariants: invariantsAll(), Converge: 30 * time.Second}
	}
	afterReserve := row("kill-access-after-reserve", // R7.7, R7.10.2, R13.4.1
		"an access process dies by SIGKILL after the script reserved and before anything was sent; the scanner brings the orders home",
		dies("access-1", seckill.FaultAccessAfterReserve, 200, rundir.MustHit{Hit: verify.HitResentByScannerOnly, AtLeast: 1}))
	afterReserve.Tags = append(afterReserve.Tags, "smoke")
	return []Scenario{
		row("kill-before-reserve", // R7.10.1
			"an access process dies by SIGKILL before the script; nobody was promised anything, and all other requests are answered",
			dies("access-1", seckill.FaultAccessBeforeReserve, 200)),
		afterReserve,
		row("kill-after-send-before-mark", // R7.10.3
			"an access process dies by SIGKILL after the broker confirmed and before that was noted; the scanner sends again, each order comes once",
			dies("access-1", seckill.FaultAccessAfterSend, 200, rundir.MustHit{Hit: verify.HitResentBesideOriginal, AtLeast: 1})),
		row("kill-consumer-before-tx", // R7.10.4
			"the consumer dies by SIGKILL with messages in hand, before its transaction; they come again",
			dies("consumer", seckill.FaultConsumerBeforeTx, 10)),
		row("kill-consumer-in-tx", // R7.10.5, R13.4.3
			"the consumer dies by SIGKILL before COMMIT; the transaction is gone as a whole, its messages come again",
			dies("consumer", seckill.FaultConsumerInTx, 10)),
		row("kill-consumer-after-commit", // R7.10.6, R13.4.4
			"the consumer dies by SIGKILL after COMMIT and before the acknowledgement; the messages come again and change nothing",
			dies("consumer", seckill.FaultConsumerAfterCommit, 10)),
		row("kill-outbox-before-publish", // R7.10.7
			"the outbox dies by SIGKILL with events leased, before it publishes them; the lease runs out, they are published",
			dies("outbox", seckill.FaultOutboxBeforePublish, 3)),
		row("kill-outbox-after-publish", // R7.10.7
			"the outbox dies by SIGKILL after the broker confirmed events and before that was noted; they come twice and are applied once",
			dies("outbox", seckill.FaultOutboxAfterPublish, 3)),
		row("kill-scanner-before-resend", // R7.7, R7.10.2
			"an access process dies with what it reserved, then the scanner with that in hand; when it is back it sends the originals",
			dies("access-1", seckill.FaultAccessAfterReserve, 200, rundir.MustHit{Hit: verify.HitResentByScannerOnly, AtLeast: 1}),
			dies("scanner", seckill.FaultScannerBeforeResend, 1)),
		row("kill-before-query-cache", // R7.10.8
			"the projector dies by SIGKILL before it writes what PostgreSQL decided to Redis; the events come again",
			dies("outbox", seckill.FaultProjectorBeforeWrite, 3)),
	}
}
