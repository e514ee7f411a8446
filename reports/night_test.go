package reports

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hotsku/hotsku/verify/rundir"
)

// night has a run of every state, in this order: pass, fail, inconclusive,
// pass, without a verdict, cut off, not run.
func night() Night {
	n := Night{Dir: "reports/out/20260511T220000.000Z-night-7", Record: &rundir.Night{Schema: rundir.NightSchema,
		Command: "bin/hotsku chaos run --tag nightly --seeds 2 --seed 7", StartedAt: time.Date(2026, 5, 11, 22, 0, 0, 0, time.UTC), SLOMode: rundir.SLOEnforce}}
	add := func(name, doc string, seed uint64, took float64, in Input) {
		r := rundir.NightRun{Scenario: name, Seed: seed, Doc: doc, TookS: took}
		if in.Run != nil {
			in.Run.Name, in.Run.Seed = name, seed
			in.Run.Command = "bin/hotsku chaos run " + name + " --seed 7"
			r.Dir = "20260511T220012.000Z-" + name + "-7"
		}
		n.Record.Runs, n.Inputs = append(n.Record.Runs, r), append(n.Inputs, in)
	}
	const kill = "an access process dies by SIGKILL after the script reserved and before anything was sent; the scanner brings the orders home"
	add("kill-access-after-reserve", kill, 7, 27.4, faultInput())
	add("one-consumer-dies", "one consumer of two dies by SIGKILL under load; its queues go to the other, its messages come again", 7, 31.2, failInput())
	add("stop-postgres-30s", "PostgreSQL is stopped for 30 s under load", 7, 64.9, inconclusiveInput())
	add("kill-access-after-reserve", kill, 8, 26.8, faultInput())
	add("one-consumer-dies", "one consumer of two dies by SIGKILL under load", 8, 3.1, Input{})
	n.Record.Runs[4].Dir, n.Record.Runs[4].Error = "20260511T220212.000Z-one-consumer-dies-8", "stack: start broker: not ready within 1m0s"
	add("stop-postgres-30s", "PostgreSQL is stopped for 30 s under load", 8, 0, Input{})
	n.Record.Runs[5].Dir = "20260511T220215.000Z-stop-postgres-30s-8"
	add("redis-down", "Redis dies and comes back", 8, 0, Input{})
	return n
}

// nights are the night and what is left of it when each run is taken away.
func nights() map[string]Night {
	whole := night()
	only := func(keep ...int) Night {
		n := night()
		record := *n.Record
		record.Runs, n.Inputs = nil, nil
		for _, i := range keep {
			record.Runs, n.Inputs = append(record.Runs, whole.Record.Runs[i]), append(n.Inputs, whole.Inputs[i])
		}
		n.Record = &record
		return n
	}
	return map[string]Night{"night": whole, "night-pass": only(0, 3), "night-empty": only()}
}

func TestGoldenNights(t *testing.T) {
	t.Parallel()
	renderers := map[string]func(io.Writer, Night) error{
		"html": NightHTML,
		"xml":  NightJUnit,
		"txt":  func(w io.Writer, n Night) error { return NightTerminal(w, n, TerminalOptions{}) },
	}
	for name, n := range nights() {
		for ext, render := range renderers {
			t.Run(name+"."+ext, func(t *testing.T) {
				t.Parallel()
				var got bytes.Buffer
				if err := render(&got, n); err != nil {
					t.Fatal(err)
				}
				golden(t, filepath.Join("testdata", name+".golden."+ext), got.String())
			})
		}
	}
}

// golden holds got against the file, or writes it.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test ./reports -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s changed (-golden +now); if meant, run go test ./reports -update and look at it:\n%s", path, diff)
	}
}

// A night is as good as its worst run: a failure before what proved nothing,
// and neither is ever a pass.
func TestANightIsAsGoodAsItsWorstRun(t *testing.T) {
	t.Parallel()
	whole := night()
	for _, c := range []struct {
		rule string
		keep []int
		want int
	}{
		{"all passed", []int{0, 3}, 0},
		{"one failed", []int{0, 1, 2}, 1},
		{"one failed, after one that proved nothing", []int{2, 1}, 1},
		{"one proved nothing", []int{0, 2}, 2},
		{"one ended without a verdict", []int{0, 4}, 2},
		{"one was cut off", []int{0, 5}, 2},
		{"one was not run", []int{0, 6}, 2},
		{"none was to be run", nil, 2},
	} {
		n := Night{Record: &rundir.Night{}}
		for _, i := range c.keep {
			n.Record.Runs, n.Inputs = append(n.Record.Runs, whole.Record.Runs[i]), append(n.Inputs, whole.Inputs[i])
		}
		if got := n.ExitCode(); got != c.want {
			t.Errorf("%s: exit code %d, want %d", c.rule, got, c.want)
		}
		var junit bytes.Buffer
		if err := NightJUnit(&junit, n); err != nil {
			t.Fatal(err)
		}
		var doc junitSuites
		if err := xml.Unmarshal(junit.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		if green := doc.Failures+doc.Errors == 0; len(c.keep) > 0 && green != (c.want == 0) || len(doc.Suites) != len(c.keep) {
			t.Errorf("%s: JUnit has %d suites, %d failures, %d errors", c.rule, len(doc.Suites), doc.Failures, doc.Errors)
		}
	}
}

// Nothing that others named changes the page's markup or moves a cursor.
func TestNoStringChangesANightsMarkup(t *testing.T) {
	t.Parallel()
	page := func(s string) string {
		n := night()
		n.Record.Command = s
		for i := range n.Record.Runs {
			r := &n.Record.Runs[i]
			r.Scenario, r.Doc = s, s
			if r.Error != "" {
				r.Error = s
			}
			if n.Inputs[i].Run != nil {
				n.Inputs[i] = named(s)
				r.Dir = s
			}
		}
		return renderString(t, func(w io.Writer, _ Input) error { return NightHTML(w, n) }, Input{})
	}
	harmless := page("harmless")
	for _, s := range dangerous {
		sameMarkup(t, page(s), harmless)
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for s, want := range map[float64]string{0: none, -1: none, 0.4: "0 s", 59.4: "59 s", 59.6: "1 min 0 s", 724: "12 min 4 s", 7384: "2 h 3 min"} {
		if got := span(s); got != want {
			t.Errorf("%v s are %q, want %q", s, got, want)
		}
	}
	if !strings.HasPrefix(night().summary(), "Of 7 runs: 1 failed, 1 inconclusive, 2 ended without a verdict, 1 not run, 2 passed") {
		t.Error(night().summary())
	}
}
