package comparison

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotsku/hotsku/verify/rundir"
)

var options = Options{Metrics: Metrics(), Tolerance: 0.1, Alpha: 0.05}

// made is a run whose judged latencies are p99 and whose requests cost us of
// CPU time each.
func made(p99, us float64) *rundir.Run {
	p := rundir.Percentiles{Count: 100, P50: p99 / 4, P99: p99}
	return &rundir.Run{Schema: rundir.RunSchema, Verdict: rundir.VerdictPass, Name: "bench", Scheme: "s",
		Load:       rundir.LoadResult{IntendedQPS: 1000, DurationS: 5, Scheduled: 5000, Completed: 5000, DecidedRatio: 1, SendLagMS: p},
		LatencyMS:  rundir.Latencies{All: p, Accepted: p},
		Orders:     rundir.OrdersResult{Accepted: 10, Valid: 10, Within3sRatio: 1, LatencyMS: p, HandOutMS: p99},
		CPUSeconds: map[string]float64{"access-1": us * 4000 / 1e6, "broker": us * 1000 / 1e6}}
}

// side is n runs around a P99 that spread by a tenth of it to both sides.
func side(rng *rand.Rand, n int, p99 float64) Side {
	s := Side{Path: "side"}
	for range n {
		s.Runs = append(s.Runs, made(p99*(0.9+0.2*rng.Float64()), 10))
	}
	return s
}

func statusOf(t *testing.T, c *Comparison, path string) string {
	t.Helper()
	for _, f := range c.Figures {
		if f.Path == path {
			return f.Status
		}
	}
	t.Fatalf("no figure %s", path)
	return ""
}

func compare(t *testing.T, a, b Side) *Comparison {
	t.Helper()
	c, err := Compare(a, b, options)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAChangeBeyondSpreadAndToleranceIsFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name  string
		b     float64
		want  string
		worse bool
	}{
		{"half as slow again", 150, Worse, true},
		{"half of it", 50, Better, false},
		{"the same", 100, Same, false},
		{"a twentieth more, within the tolerance", 105, Same, false},
	} {
		got := compare(t, side(rng, 6, 100), side(rng, 6, c.b))
		if s := statusOf(t, got, "latency_ms.all.p99"); s != c.want || (len(got.Worse) > 0) != c.worse || !got.Conclusive {
			t.Errorf("%s: %s, worse %v, conclusive %v", c.name, s, got.Worse, got.Conclusive)
		}
		if s := statusOf(t, got, cpuPerRequest); s != Same {
			t.Errorf("%s: the CPU time, which is equal, is %s", c.name, s)
		}
	}
}

// What CI relies on: two sides of the same thing are hardly ever told apart,
// however many figures are judged.
func TestTheSameThingIsSeldomCalledWorse(t *testing.T) {
	rng, found := rand.New(rand.NewPCG(7, 7)), 0
	for range 400 {
		a, b := Side{}, Side{}
		for range 6 { // every figure spreads on its own, by more than the tolerance
			for _, s := range []*Side{&a, &b} {
				r := made(100, 8+8*rng.Float64())
				r.LatencyMS.All.P99, r.LatencyMS.Accepted.P99 = 50+100*rng.Float64(), 50+100*rng.Float64()
				r.Orders.HandOutMS, r.Orders.LatencyMS.P99 = 50+100*rng.Float64(), 50+100*rng.Float64()
				s.Runs = append(s.Runs, r)
			}
		}
		if c, err := Compare(a, b, options); err != nil || len(c.Worse) > 0 {
			found++
		}
	}
	if most := 400 * 5 / 100; found > most { // alpha, of which half is on the worse side
		t.Errorf("%d of 400 comparisons of the same thing call it worse", found)
	}
}

// A side compared the other way round says the opposite.
func TestTurningTheSidesTurnsTheVerdict(t *testing.T) {
	opposite := map[string]string{Better: Worse, Worse: Better, Same: Same, Unknown: Unknown}
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		a := side(rng, rapid.IntRange(1, 8).Draw(rt, "n"), 100)
		b := side(rng, rapid.IntRange(1, 8).Draw(rt, "m"), rapid.SampledFrom([]float64{20, 60, 180, 500}).Draw(rt, "p99"))
		there, err := Compare(a, b, options)
		if err != nil {
			rt.Fatal(err)
		}
		back, err := Compare(b, a, options)
		if err != nil {
			rt.Fatal(err)
		}
		for i, f := range there.Figures {
			if g := back.Figures[i]; f.Path != g.Path || g.Status != opposite[f.Status] || f.A != g.B {
				rt.Fatalf("%+v and %+v", f, g)
			}
		}
	})
}

func TestTooFewRunsSaySoInsteadOfPassing(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	c := compare(t, side(rng, 1, 100), side(rng, 1, 1000))
	if c.Conclusive || len(c.Worse) > 0 || statusOf(t, c, "latency_ms.all.p99") != Unknown {
		t.Errorf("one run a side: %+v", c)
	}
	if notes := strings.Join(c.Notes, "\n"); !strings.Contains(notes, "give 5 a side") {
		t.Errorf("it says %q", notes)
	}
	if c := compare(t, side(rng, 5, 100), side(rng, 5, 1000)); !c.Conclusive || len(c.Worse) != 4 {
		t.Errorf("what it asked for does not do: %+v", c)
	}
}

func TestWhatCannotBeComparedIsRefused(t *testing.T) {
	save := func(dir string, change func(*rundir.Run)) {
		t.Helper()
		r := made(100, 10)
		change(r)
		text, err := json.Marshal(r)
		if err == nil {
			err = os.MkdirAll(dir, 0o755)
		}
		if err == nil {
			err = os.WriteFile(rundir.Dir(dir).Run(), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	root := t.TempDir()
	at := func(parts ...string) string { return filepath.Join(append([]string{root}, parts...)...) }
	save(at("good", "1"), func(*rundir.Run) {})
	save(at("good", "2"), func(r *rundir.Run) {
		r.Verdict, r.Reasons = rundir.VerdictInconclusive, []string{"the generator fell behind"}
	})
	save(at("faster"), func(r *rundir.Run) { r.Load.IntendedQPS = 2000 })
	save(at("mixed", "1"), func(*rundir.Run) {})
	save(at("mixed", "2"), func(r *rundir.Run) { r.Load.DurationS = 9 })
	save(at("liar"), func(r *rundir.Run) {
		r.Invariants = []rundir.Invariant{{ID: "I1", Name: "no oversell", Status: rundir.StatusViolated}}
	})
	save(at("doubtful"), func(r *rundir.Run) { r.Verdict = rundir.VerdictInconclusive })
	if err := os.MkdirAll(at("empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"mixed": "seconds 9, not 5", "liar": "violated I1", "doubtful": "--with-inconclusive", "empty": "no run.json", "absent": "no such file"} {
		if _, err := Read(at(path), false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	good, err := Read(at("good"), false)
	if err != nil || len(good.Runs) != 1 || len(good.LeftOut) != 1 || !strings.Contains(good.LeftOut[0], "fell behind") {
		t.Fatalf("%+v, %v", good, err)
	}
	if both, err := Read(at("good"), true); err != nil || len(both.Runs) != 2 {
		t.Errorf("%+v, %v", both, err)
	}
	if one, err := Read(at("good", "1"), false); err != nil || len(one.Runs) != 1 {
		t.Errorf("%+v, %v", one, err)
	}
	faster, err := Read(at("faster"), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Compare(good, faster, options); err == nil || !strings.Contains(err.Error(), "requests per second 2000, not 1000") {
		t.Errorf("two loads: %v", err)
	}
	for _, bad := range []Options{{}, {Metrics: []Metric{{Path: "no.such"}}, Alpha: 0.05}, {Metrics: Metrics(), Alpha: 1}, {Metrics: Metrics(), Alpha: 0.05, Tolerance: -1}} {
		if _, err := Compare(good, good, bad); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
