package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hotsku/hotsku/verify/rundir"
)

// What cannot be obeyed is refused in one line that says what to do, with
// exit code 64, and changes nothing.
func TestRunsThatAreRefused(t *testing.T) {
	state, cwd := t.TempDir(), t.TempDir()
	t.Setenv("HOTSKU_STATE", state)
	t.Chdir(cwd)
	outside := t.TempDir()
	full, file := filepath.Join(outside, "full"), filepath.Join(outside, "file")
	bin, early := filepath.Join(outside, "bin"), filepath.Join(outside, "early")
	for _, dir := range []string{full, bin, filepath.Join(early, "stores")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{file, filepath.Join(full, "mine"), filepath.Join(bin, "seckill"), filepath.Join(bin, "seckill-chaos"), filepath.Join(bin, "seckill-mutant")} {
		if err := os.WriteFile(path, []byte("#!/bin/false\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	other, newer := filepath.Join(outside, "other"), filepath.Join(outside, "newer")
	for dir, schema := range map[string]int{other: rundir.NightSchema, newer: 9} {
		if err := rundir.WriteJSON(rundir.NightDir(dir).Record(), rundir.Night{Schema: schema, SLOMode: rundir.SLOEnforce,
			Runs: []rundir.NightRun{{Scenario: "kill-acess-after-reserve", Seed: 1}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := rundir.WriteJSON(rundir.Dir(other).Plan(), rundir.Plan{Schema: rundir.PlanSchema, Name: "one-acess-dies", Seed: 1, SLOMode: rundir.SLOEnforce,
		Activities: []rundir.Activity{{ActivityID: 1, SKUID: 1, Stock: 1, Tokens: 1}},
		Load:       rundir.LoadPlan{RatePerS: 100, DurationMS: 1000, Scheduled: 100, Connections: 4, Depth: 4, TimeoutMS: 1000}}); err != nil {
		t.Fatal(err)
	}
	with := func(args string) string { return args + " --bin-dir " + bin }
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"bench --nope", exitUsage, "unknown flag: --nope; hotsku bench --help lists the flags"},
		{"bnech", exitUsage, `unknown command "bnech" (did you mean bench?); hotsku --help lists the commands`},
		{"chaos lsit", exitUsage, `unknown command "lsit" (did you mean list?); hotsku chaos --help lists the commands`},
		{"mutants get-then-dcer", exitUsage, `there is no wrong design "get-then-dcer" (did you mean get-then-decr?); hotsku mutants --list shows them all`},
		{"mutants --seeds 0", exitUsage, "--seeds 0: must be 1 to 100"},
		{"mutants --bin-dir " + full, exitEnvironment, "run `make build`"},
		{with("mutants --out " + full), exitUsage, full + " is not empty: give --out a new or empty folder"},
		{with("mutants --out " + file), exitUsage, "give --out a folder that you may write"},
		{"bench --rtae 5", exitUsage, "unknown flag: --rtae (did you mean --rate?); hotsku bench --help lists the flags"},
		{"bench extra", exitUsage, `hotsku bench takes no argument, but got "extra"`},
		{"bench --rate 0", exitUsage, "rate 0: must be 1 to 10000000 requests per second"},
		{"bench --rate -5", exitUsage, "rate -5: must be"},
		{"bench --rate many", exitUsage, `--rate "many": must be a whole number; hotsku bench --help lists the flags`},
		{"bench --rate 1.5", exitUsage, `--rate "1.5": must be a whole number`},
		{"bench --rate 99999999999999999999", exitUsage, `--rate "99999999999999999999": is out of range: must be a whole number`},
		{"bench --depth x", exitUsage, `--depth "x": must be a whole number`},
		{"up --env=perhaps", exitUsage, `--env "perhaps": must be true or false`},
		{"bench --rate", exitUsage, "flag needs an argument: --rate"},
		{"bench --stock -1", exitUsage, "stock -1: must be 1 to 1000000 units"},
		{"bench --duration 0", exitUsage, "duration 0s: must be 100ms to 1h0m0s"},
		{"bench --duration 5", exitUsage, `--duration "5": must be a length of time such as 500ms, 10s or 2m`},
		{"bench --rate 1 --duration 100ms", exitUsage, "schedules no request; raise the rate or the duration"},
		{"bench --connections 0", exitUsage, "connections 0: must be 1 to 4096"},
		{"bench --depth 0", exitUsage, "depth 0: must be 1 to 4096"},
		{"bench --timeout 0", exitUsage, "timeout 0s: must be 10ms to 1m"},
		{"bench --seed -1", exitUsage, `--seed "-1": must be a whole number, 0 or more`},
		{"bench --slo wrong", exitUsage, `--slo "wrong": must be enforce or report`},
		{"bench --slo=", exitUsage, `--slo "": must be enforce or report`},
		{"bench --scheme pg-magic", exitUsage, `--scheme "pg-magic" is not known; known is redis-mq-token`},
		{with("bench --out " + full), exitUsage, full + " is not empty: give --out a new or empty folder"},
		{with("bench --out " + file), exitUsage, file + " is a file, or below one: give --out a new or empty folder"},
		{with("bench --out /proc/hotsku"), exitUsage, "give --out a folder that you may write"},
		{"bench --bin-dir " + full, exitEnvironment, filepath.Join(full, "seckill") + " is missing: run `make build`"},
		{"bench --bin-dir .", exitEnvironment, filepath.Join(cwd, "seckill") + " is missing: run `make build`"},
		{"chaos frobnicate", exitUsage, `unknown command "frobnicate"; hotsku chaos --help lists the commands`},
		{"chaos list extra", exitUsage, `got "extra"`},
		{"chaos run", exitUsage, "give scenario names, or --tag, or --all; hotsku chaos list shows them"},
		{"chaos run --all --tag smoke", exitUsage, "--all and --tag exclude each other: give scenario names, or --tag, or --all"},
		{"chaos run kill-access-after-reserve --all", exitUsage, "--all and scenario names exclude each other: give scenario names, or --tag, or --all"},
		{"chaos run kill-acess-after-reserve", exitUsage, `no scenario "kill-acess-after-reserve" (did you mean kill-access-after-reserve?)`},
		{"chaos run --tag lunch", exitUsage, `no scenario has the tag "lunch"; hotsku chaos list shows the tags`},
		{"chaos run kill-access-after-reserve --rate 5", exitUsage, "unknown flag: --rate"},
		{"chaos run kill-access-after-reserve --slo wrong", exitUsage, `--slo "wrong"`},
		{with("chaos run kill-access-after-reserve --out " + full), exitUsage, full + " is not empty"},
		{"chaos run kill-access-after-reserve --bin-dir " + full, exitEnvironment, "run `make build`"},
		{"chaos run --all --seeds 0", exitUsage, "--seeds 0: must be 1 to 1000"},
		{"chaos run --all --seeds 1001", exitUsage, "--seeds 1001: must be 1 to 1000"},
		{"chaos run --all --slo wrong", exitUsage, `--slo "wrong"`},
		{with("chaos run --all --out " + full), exitUsage, full + " is not empty: give --out a new or empty folder, or --resume this one"},
		{with("chaos run --all --out " + file), exitUsage, file + " is a file, or below one"},
		{with("chaos run --all --out /proc/hotsku"), exitUsage, "give --out a folder that you may write"},
		{"chaos run --all --bin-dir " + full, exitEnvironment, "run `make build`"},
		{"chaos run --resume " + full, exitUsage, "night.json: is missing: give --resume the folder of a night"},
		{"chaos run --resume " + other, exitUsage, `there is no scenario "kill-acess-after-reserve" (did you mean kill-access-after-reserve?)`},
		{"chaos run --resume " + other + " --all --seed 3", exitUsage, "--resume takes all from the folder: leave --all, --seed away"},
		{"chaos run --resume " + other + " one-access-dies", exitUsage, "leave scenario names away"},
		{"chaos replay", exitUsage, "replay takes one run directory, got 0 arguments"},
		{"chaos replay " + full, exitUsage, "plan.json: is missing: give the folder that a run left"},
		{"chaos replay " + early, exitUsage, "plan.json: is missing: give the folder that a run left"},
		{"chaos replay " + full + " --seed 7", exitUsage, "unknown flag: --seed"},
		{"chaos replay " + other, exitUsage, `no scenario "one-acess-dies" (did you mean one-access-dies?)`},
		{"report " + newer, exitEnvironment, "night.json: has schema 9, this build reads 1"},
		{"verify", exitUsage, "verify takes one run directory, got 0 arguments"},
		{"verify a b", exitUsage, "verify takes one run directory, got 2 arguments"},
		{"verify --nope a", exitUsage, "unknown flag: --nope"},
		{"verify absent", exitEnvironment, "absent: is missing: give the folder that a run left"},
		{"verify " + file, exitEnvironment, file + ": is no run directory, but a file"},
		{"verify " + full, exitEnvironment, full + ": is no run directory: plan.json, history, timeline.jsonl, stores and run.json are missing: give the folder that a run left"},
		{"verify --json " + full, exitEnvironment, full + ": is no run directory: plan.json"},
		{"report", exitUsage, "report takes one run directory, got 0 arguments"},
		{"report absent", exitEnvironment, "absent: is missing: give the folder that a run left"},
		{"report " + full, exitEnvironment, full + ": is no run directory: plan.json"},
		{"report " + early, exitEnvironment, "run.json: is missing; hotsku verify " + early + " judges the evidence"},
	} {
		t.Run(c.args, func(t *testing.T) {
			code, stdout, stderr := hotsku(t.Context(), strings.Fields(c.args)...)
			if code != c.code || !strings.Contains(stderr, c.says) || strings.Count(stderr, "\n") != 1 || stdout != "" || strings.Contains(stderr, "strconv") {
				t.Errorf("exit code %d, stdout %q, stderr %q; want %d and one line with %q", code, stdout, stderr, c.code, c.says)
			}
		})
	}
	for _, dir := range []string{state, cwd} {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("something was started or written: %v, %v", entries, err)
		}
	}
	nothingIsLeft(t, state)
}

// A run without its plan cannot be judged: one line says so, and no table of
// zeros; the JSON says it in its reasons.
func TestVerifyOfARunWithoutItsPlan(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "stores"), 0o755); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := hotsku(t.Context(), "verify", dir)
	if want := "hotsku: " + dir + "/plan.json: is missing: without it nothing can be judged\n"; code != exitEnvironment || stdout != "" || stderr != want {
		t.Errorf("exit code %d, stdout %q, stderr %q; want 2 and %q", code, stdout, stderr, want)
	}
	code, stdout, _ = hotsku(t.Context(), "verify", "--json", dir)
	if code != exitEnvironment || !strings.Contains(stdout, `"plan.json: is missing"`) {
		t.Errorf("exit code %d, stdout %q", code, stdout)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("verify wrote %v, %v", entries, err)
	}
}

// What the packages that parse flags call themselves is no word of ours.
func TestNoFlagErrorSpeaksOfItsParser(t *testing.T) {
	tried := 0
	var try func(path []string, cmd *cobra.Command)
	try = func(path []string, cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if strings.HasPrefix(f.Value.Type(), "string") || f.Name == "help" {
				return
			}
			tried++
			code, stdout, stderr := hotsku(t.Context(), append(slices.Clone(path), "--"+f.Name+"=!")...)
			if code != exitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "--"+f.Name+` "!": `) ||
				strings.Contains(stderr, "strconv") || strings.Contains(stderr, "time: ") || strings.Contains(stderr, "invalid argument") {
				t.Errorf("%v --%s=!: exit code %d, stdout %q, stderr %q", path, f.Name, code, stdout, stderr)
			}
		})
		for _, c := range cmd.Commands() {
			try(append(slices.Clone(path), c.Name()), c)
		}
	}
	try(nil, newRoot())
	if tried < 20 {
		t.Errorf("%d flags were tried", tried)
	}
}

// A person who has only the binary learns what it is for, and which build.
func TestHelpAndVersion(t *testing.T) {
	if code, out, errs := hotsku(t.Context(), "--help"); code != 0 || errs != "" || !strings.Contains(out, "Examples:\n") || !strings.Contains(out, "2 inconclusive") {
		t.Errorf("--help: exit %d, %q, %s", code, errs, out)
	}
	if code, out, errs := hotsku(t.Context(), "--version"); code != 0 || errs != "" || !strings.HasPrefix(out, "hotsku version ") {
		t.Errorf("--version: exit %d, %q, %q", code, out, errs)
	}
}
