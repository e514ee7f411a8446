package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/hotsku/hotsku/scenarios"
	"github.com/hotsku/hotsku/scenarios/night"
	"github.com/hotsku/hotsku/verify/rundir"
)

// nightOf runs a night of scenarios of the table, each ending as the next of
// ends says: by a verdict, its exit code, or by an error.
func nightOf(t *testing.T, ctx context.Context, n *night.Night, dir rundir.NightDir, ends []any) (code int, stdout, stderr string) {
	t.Helper()
	cmd := &cobra.Command{SilenceErrors: true, SilenceUsage: true}
	var out, errs bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(nil)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return runNight(cmd, runFlags{}, n, dir, func(o *runFlags, _ *cobra.Command, s scenarios.Scenario) error {
			end := ends[0]
			ends = ends[1:]
			if err, ok := end.(error); ok {
				return err
			}
			code := end.(int)
			verdict := [...]string{rundir.VerdictPass, rundir.VerdictFail, rundir.VerdictInconclusive}[code]
			if err := rundir.WriteJSON(rundir.Dir(o.out).Run(), &rundir.Run{Schema: rundir.RunSchema, Verdict: verdict, ExitCode: code, Name: s.Name, Seed: o.seed}); err != nil {
				return err
			}
			if code != 0 {
				return verdictError{code}
			}
			return nil
		})
	}
	code = run(ctx, cmd)
	if len(ends) > 0 {
		t.Errorf("runs were not tried: %v", ends)
	}
	return code, out.String(), errs.String()
}

// The exit code of a night is that of its worst run, and a run without a
// verdict is said at once.
func TestTheExitCodeOfANight(t *testing.T) {
	name := scenarios.All()[0].Name
	broken := errors.New("no\nRedis")
	for _, c := range []struct {
		rule string
		ends []any
		want int
		says string // on standard error
	}{
		{"all pass", []any{0, 0}, 0, ""},
		{"a violation is worse than an inconclusive run before it", []any{2, 1, 0}, 1, ""},
		{"and than one after it", []any{1, 2}, 1, ""},
		{"a run without a verdict is said at once, and the others go on", []any{broken, 0}, 2, "hotsku: " + name + ": no Redis\n"},
		{"a violation is worse than a run without a verdict", []any{1, broken}, 1, "hotsku: " + name + ": no Redis\n"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			dir := rundir.NightDir(filepath.Join(t.TempDir(), "night"))
			n := beginNight(t, dir, name, len(c.ends))
			code, stdout, stderr := nightOf(t, t.Context(), n, dir, c.ends)
			if code != c.want || stderr != c.says {
				t.Errorf("exit code %d, stderr %q; want %d, %q", code, stderr, c.want, c.says)
			}
			if !strings.HasSuffix(stdout, "\nreport  "+dir.Report()+"\n") || strings.Count(stdout, " of "+string('0'+rune(len(c.ends)))+"  "+name) != len(c.ends) {
				t.Errorf("standard output is\n%s", stdout)
			}
			for _, path := range []string{dir.Report(), dir.JUnit(), dir.Record()} {
				if _, err := os.Stat(path); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func beginNight(t *testing.T, dir rundir.NightDir, name string, runs int) *night.Night {
	t.Helper()
	record := rundir.Night{Command: "hotsku chaos run x --seed 1", SLOMode: rundir.SLOEnforce}
	for i := range runs {
		record.Runs = append(record.Runs, rundir.NightRun{Scenario: name, Seed: uint64(i + 1)})
	}
	n, err := night.Begin(dir, record)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Ctrl-C in the first run of a night: exit code 2, nothing left running, and
// a report that says what was not run and how to go on.
func TestANightIsInterrupted(t *testing.T) {
	state := stateFolder(t)
	dir := rundir.NightDir(filepath.Join(t.TempDir(), "night"))
	cmd := process(t, "chaos", "run", "one-access-dies", "--seeds", "2", "--seed", "7", "--out", string(dir), "--bin-dir", binDir(t))
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for s := bufio.NewScanner(stderr); s.Scan(); {
		lines = append(lines, s.Text())
		if len(lines) == 1 {
			awaitServer(t, state)
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // the exit code says it
	last := lines[len(lines)-1]
	if code := cmd.ProcessState.ExitCode(); code != exitEnvironment || !strings.HasPrefix(last, "hotsku: one-access-dies: interrupted; everything was stopped") {
		t.Errorf("exit code %d, stderr %q", code, lines)
	}
	nothingIsLeft(t, state)
	again := "hotsku chaos run --resume " + string(dir)
	if out := stdout.String(); !strings.Contains(out, "1 ended without a verdict, 1 not run") || !strings.Contains(out, again) {
		t.Errorf("standard output is\n%s", out)
	}
	page, err := os.ReadFile(dir.Report())
	if err != nil || !strings.Contains(string(page), again) || !strings.Contains(string(page), "interrupted; everything was stopped") {
		t.Errorf("%v: the report is\n%s", err, page)
	}
	record, err := dir.Read()
	if err != nil || len(record.Runs) != 2 || record.Runs[0].Seed != 7 || record.Runs[1].Seed != 8 || record.Runs[1].Dir != "" ||
		!regexp.MustCompile(`^hotsku chaos run one-access-dies --bin-dir \S+ --seeds 2 --seed 7$`).MatchString(record.Command) {
		t.Errorf("%v: night.json is %+v", err, record)
	}
}

// A replay runs the plan's load, whatever the table says of it now.
func TestAReplayTakesTheLoadOfThePlan(t *testing.T) {
	s := scenarios.All()[0]
	plan := &rundir.Plan{Name: s.Name, Seed: 9, Activities: []rundir.Activity{{Stock: 77, Tokens: 77}},
		Load: rundir.LoadPlan{RatePerS: 123, DurationMS: 7000, Connections: 5, Depth: 6, TimeoutMS: 800}}
	want := scenarios.Load{RatePerS: 123, Duration: 7 * time.Second, Stock: 77, Connections: 5, Depth: 6, Timeout: 800 * time.Millisecond}
	for _, name := range []string{s.Name, "bench"} {
		plan.Name = name
		got, err := planned(plan)
		if err != nil || got.Name != name || got.Load != want {
			t.Errorf("%s: %s with %+v, %v", name, got.Name, got.Load, err)
		}
	}
	plan.Load.RatePerS = 0
	if _, err := planned(plan); err == nil || !strings.Contains(err.Error(), "plan.json: rate 0") {
		t.Errorf("a plan of no load: %v", err)
	}
}

func TestTheListing(t *testing.T) {
	code, table, errs := hotsku(t.Context(), "chaos", "list")
	lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
	if code != 0 || errs != "" || len(lines) != 1+len(scenarios.All()) {
		t.Fatalf("exit code %d, stderr %q, %d lines", code, errs, len(lines))
	}
	for i, s := range scenarios.All() {
		if fields := strings.Fields(lines[i+1]); fields[0] != s.Name || fields[1] != strings.Join(s.Tags, ",") || !strings.HasSuffix(lines[i+1], "  "+s.Doc) {
			t.Errorf("line %q", lines[i+1])
		}
	}
	if _, asJSON, _ := hotsku(t.Context(), "chaos", "list", "--json"); !strings.Contains(asJSON, `"fault": "kill@access.after-reserve"`) || strings.Contains(asJSON, "\\u003c") {
		t.Errorf("JSON is\n%s", asJSON)
	}
	for _, c := range []struct {
		ids  string
		want string
	}{{"", ""}, {"I3", "I3"}, {"I1 I2 I3 I9", "I1-I3 I9"}, {"I1 I3 I4", "I1 I3-I4"}, {"I9 I10 x", "I9-I10 x"}} {
		if got := ranges(strings.Fields(c.ids)); got != c.want {
			t.Errorf("%q is %q, want %q", c.ids, got, c.want)
		}
	}
	hits := []rundir.MustHit{{Fault: "a", Hit: "killed", AtLeast: 1}, {Fault: "a", Hit: "dropped", AtLeast: 3}, {Fault: "b", Hit: "cut", AtLeast: 1}}
	if got := faultsInWords(hits); got != "a: killed, dropped ≥ 3; b: cut" || faultsInWords(nil) != "none" {
		t.Errorf("faults are %q", got)
	}
}
