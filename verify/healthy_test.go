package verify

import (
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotsku/hotsku/verify/rundir"
)

// Hundreds of healthy runs raise nothing, whatever the shape of the sale.
func TestHealthyRunsRaiseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := options{
			seed:     rapid.Uint64().Draw(t, "seed"),
			stock:    rapid.Int64Range(10, 40).Draw(t, "stock"),
			requests: rapid.Int64Range(150, 400).Draw(t, "requests"),
			repeat:   rapid.Uint32Range(0, 300).Draw(t, "repeat"),
			sameUser: rapid.Uint32Range(0, 100).Draw(t, "same user"),
			rejects:  rapid.Bool().Draw(t, "rejects"),
			failures: rapid.Bool().Draw(t, "failures"),
			ends:     rapid.Bool().Draw(t, "ends"),
			resell:   rapid.Bool().Draw(t, "resell"),
		}
		o.conflict = rapid.Uint32Range(0, o.repeat).Draw(t, "conflict")
		o.tokens = rapid.Int64Range(max(1, o.stock-3), o.stock).Draw(t, "tokens")
		o.step = rapid.Int64Range(20_000, 1_000_000).Draw(t, "step")
		if o.requests*o.step >= 160_000_000 { // long enough for the limit of an outage
			o.outage = rapid.SampledFrom([]string{"", rundir.OnRedis, rundir.OnBroker, rundir.OnPostgres}).Draw(t, "outage")
		}
		for range 2 {
			judgeHealthy(t, o)
			o.seed++
		}
	})
}

func judgeHealthy(t *rapid.T, o options) {
	path, err := os.MkdirTemp(memory(), "verify-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(path)
	simulate(o).write(t, rundir.Dir(path))
	run := judgeDir(t, rundir.Dir(path))
	if run.Verdict != rundir.VerdictPass || run.ExitCode != ExitPass || len(run.Reasons) > 0 {
		t.Fatalf("%s: %q", run.Verdict, run.Reasons)
	}
	for _, inv := range run.Invariants {
		if inv.ID == failClosed.id && o.outage == "" {
			continue
		}
		if inv.Status != rundir.StatusHeld || inv.Checked == 0 || inv.Violations != 0 {
			t.Fatalf("%+v", inv)
		}
	}
	if l := run.Load; l.Scheduled != l.Completed+l.Failed+l.TimedOut+l.Dropped+l.Unfinished || l.Scheduled != o.requests {
		t.Fatalf("accounting: %+v", l)
	}
	if run.Orders.Valid > o.tokens || run.Orders.ConservationDelta != 0 {
		t.Fatalf("orders: %+v", run.Orders)
	}
}
