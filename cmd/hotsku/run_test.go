package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hotsku/hotsku/loadgen"
	"github.com/hotsku/hotsku/scenarios"
	"github.com/hotsku/hotsku/verify/snapshot"
)

func TestCommandLineRunsTheSameAgain(t *testing.T) {
	for args, want := range map[string]string{
		"bench":                           "hotsku bench --seed 42",
		"bench --seed 7":                  "hotsku bench --seed 42", // the caller says which
		"bench --seed=0 --out DIR":        "hotsku bench --seed 42",
		"bench --slo=report --rate 5000":  "hotsku bench --rate 5000 --slo report --seed 42",
		"bench --duration=3s --stock 200": "hotsku bench --duration 3s --stock 200 --seed 42",
		"bench --bin-dir it's":            `hotsku bench --bin-dir 'it'\''s' --seed 42`,
		"chaos run a --out DIR":           "hotsku chaos run a --seed 42",
		"chaos run --tag smoke":           "hotsku chaos run a --seed 42",
		"chaos run --all --slo report":    "hotsku chaos run a --slo report --seed 42",
		"chaos run --all --seeds 3":       "hotsku chaos run a --seed 42",
		"chaos run --resume DIR":          "hotsku chaos run a --seed 42",
		"chaos replay --out DIR":          "hotsku chaos replay a",
	} {
		t.Run(args, func(t *testing.T) {
			root := newRoot()
			cmd, rest, err := root.Find(strings.Fields(args))
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Fatal(err)
			}
			var again []string
			if cmd.Parent().Name() == "chaos" {
				again = []string{"a"}
			}
			if got := commandLine(cmd, again, 42, manyFlags...); got != want {
				t.Errorf("command is %q, want %q", got, want)
			}
		})
	}
}

// It names hotsku as it was called: bin/hotsku is not found as hotsku.
func TestTheCommandNamesHotskuAsItWasCalled(t *testing.T) {
	for called, want := range map[string]string{"bin/hotsku": "bin/hotsku", "hotsku": "hotsku", "/opt/h k/hotsku": "'/opt/h k/hotsku'", "/tmp/cmd.test": "hotsku"} {
		if got := program(called); got != want {
			t.Errorf("called as %s: %s, want %s", called, got, want)
		}
	}
}

// The command of a plan is a command line that this build takes.
func TestCommandLineIsOneThatIsTaken(t *testing.T) {
	root := newRoot()
	cmd, rest, err := root.Find([]string{"bench", "--rate=7", "--timeout=2s"})
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Fatal(err)
	}
	again, rest, err := newRoot().Find(strings.Fields(commandLine(cmd, nil, 1<<64-1))[1:])
	if err != nil {
		t.Fatal(err)
	}
	if err := again.ParseFlags(rest); err != nil {
		t.Error(err)
	}
	if rate, _ := again.Flags().GetInt64("rate"); rate != 7 {
		t.Errorf("the rate became %d", rate)
	}
}

func TestRunNamesSortByTime(t *testing.T) {
	at := time.Date(2026, 11, 11, 8, 0, 0, 5e6, time.FixedZone("CST", 8*3600))
	if got := runName(at, "bench", 7); got != "20261111T000000.005Z-bench-7" {
		t.Errorf("name is %s", got)
	}
}

func TestProgressWithoutATerminalIsPlainLines(t *testing.T) {
	var out bytes.Buffer
	at := time.Unix(1_800_000_000, 0)
	p := newProgress(&out, func() time.Time { return at })
	p.Phase("load")
	for range 8 { // 4 s of reports, four a second
		p.Load(loadgen.Live{Scheduled: 1000, Completed: 10, Failed: 2, TimedOut: 1, InFlight: 3, P99: 1500 * time.Microsecond})
		at = at.Add(500 * time.Millisecond)
	}
	p.Load(loadgen.Live{Scheduled: 1000, Completed: 20, InFlight: 3, Waiting: 500}) // none due in the last second was answered
	at = at.Add(2 * time.Second)
	p.Phase("waiting")
	p.Converging(snapshot.Backlog{Pending: 1, Lag: 2, Outbox: 3, Overdue: 4})
	p.done()
	want := `   0.0 s  load
   0.0 s      13 of 1000 answered,    3 in flight, P99    1.5 ms
   2.0 s      13 of 1000 answered,    3 in flight, P99    1.5 ms
   4.0 s      20 of 1000 answered,    3 in flight, P99      – ms, 500 overdue
   6.0 s  waiting
   6.0 s    to go: reservations 1, messages 2, events 3, overdue orders 4
`
	if out.String() != want {
		t.Errorf("progress is\n%s\nwant\n%s", out.String(), want)
	}
	if regexp.MustCompile(`[\r\x1b]`).MatchString(out.String()) {
		t.Error("it moves a cursor there is not")
	}
}

func TestChoose(t *testing.T) {
	for _, s := range scenarios.All() {
		got, err := choose([]string{s.Name}, "", false)
		if err != nil || len(got) != 1 || got[0].Name != s.Name {
			t.Errorf("%s: chose %v, %v", s.Name, got, err)
		}
		for _, tag := range s.Tags {
			if got, err := choose(nil, tag, false); err != nil || len(got) == 0 {
				t.Errorf("tag %s: chose %v, %v", tag, got, err)
			}
		}
	}
	if got, err := choose(nil, "", true); err != nil || len(got) != len(scenarios.All()) {
		t.Errorf("all: chose %d of %d, %v", len(got), len(scenarios.All()), err)
	}
}

func TestDidYouMean(t *testing.T) {
	words := []string{"list", "run", "kill-access-after-reserve"}
	for word, want := range map[string]string{"lsit": "list", "rn": "run", "kill-acess-after-reserv": "kill-access-after-reserve", "frobnicate": "", "": ""} {
		got := didYouMean("", word, words)
		if want != "" {
			want = " (did you mean " + want + "?)"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
