package verify

import (
	"math"
	"testing"

	"github.com/hotsku/hotsku/verify/rundir"
)

// Phases divide a run: every request, reservation, message and order is in
// one of them, none in two, and they follow each other without a gap.
func TestPhasesHoldEverythingOnce(t *testing.T) {
	for seed := range uint64(20) {
		o := options{seed: seed, stock: 40, requests: 900, repeat: 100, sameUser: 50, failures: seed%2 == 0, step: int64(seed+1) * 100_000}
		run := simulate(o).judged(t)
		var due, answered, latencies, reserved, stored, ordered, until float64
		for _, p := range run.Phases {
			seconds := (p.UntilMS - p.FromMS) / 1000
			if p.FromMS != until || seconds <= 0 {
				t.Fatalf("seed %d: %+v after %v ms", seed, p, until)
			}
			until = p.UntilMS
			due, answered, latencies = due+p.DuePerS*seconds, answered+p.AnsweredPerS*seconds, latencies+float64(p.LatencyMS.Count)
			reserved, stored, ordered = reserved+p.ReservedPerS*seconds, stored+p.StoredPerS*seconds, ordered+p.OrderedPerS*seconds
		}
		for what, pair := range map[string][2]float64{
			"requests": {due, float64(run.Load.Scheduled)}, "answers": {answered, float64(run.Load.Completed)}, "latencies": {latencies, float64(run.Load.Completed)},
			"reservations": {reserved, float64(run.Redis.Reserved)}, "orders": {ordered, float64(run.Orders.Created)},
		} {
			if math.Abs(pair[0]-pair[1]) > 1 { // rates are rounded
				t.Errorf("seed %d: %.1f %s in phases, %.0f in the run", seed, pair[0], what, pair[1])
			}
		}
		if stored > float64(run.MQ.Stored)+1 { // the broker may store again when all is over
			t.Errorf("seed %d: %.1f messages in phases, %d in the run", seed, stored, run.MQ.Stored)
		}
	}
}

// The stages of a reservation follow each other: what they took one after
// another is what all of it took.
func TestStagesAreTheWayOfARequest(t *testing.T) {
	run := simulate(options{seed: 3, stock: 30, requests: 600}).judged(t)
	if len(run.Stages) != 6 || run.Stages[0].MS.Count != 30 || run.Stages[5].MS.Count != 30 {
		t.Fatalf("%+v", run.Stages)
	}
	if sum := run.Stages[0].MS.P50 + run.Stages[1].MS.P50; sum > run.Stages[5].MS.Max {
		t.Errorf("half of the way takes %v ms, all of it %v at most", sum, run.Stages[5].MS.Max)
	}
}

func TestCoresAreWhatProcessesUsedInAPhase(t *testing.T) {
	at := func(ms int64, access, broker float64) rundir.UsageAt {
		return rundir.UsageAt{AtMS: ms, CPUSeconds: map[string]float64{"access-1": access, "broker": broker}}
	}
	usage := []rundir.UsageAt{at(0, 10, 5), at(1000, 11, 5.5), at(3000, 11.5, 6.5)}
	got := cores([]rundir.Phase{{FromMS: 0, UntilMS: 500}, {FromMS: 500, UntilMS: 2000}, {FromMS: 2000, UntilMS: 3000}}, usage)
	for i, want := range []map[string]float64{{"access-1": 1, "broker": 0.5}, {"access-1": 0.5, "broker": 0.5}, {"access-1": 0.25, "broker": 0.5}} {
		for name, v := range want {
			if math.Abs(got[i].Cores[name]-v) > 0.001 {
				t.Errorf("phase %d: %v, want %v", i, got[i].Cores, want)
			}
		}
	}
	if left := cores([]rundir.Phase{{UntilMS: 1}}, nil); left[0].Cores != nil {
		t.Errorf("unmeasured, and yet %v", left[0].Cores)
	}
}
