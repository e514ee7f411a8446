package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hotsku/hotsku/stack"
	"github.com/hotsku/hotsku/verify/rundir"
)

// A bench from nothing to a verdict, on real servers; then lies told about
// the folder it left. R1.6, R1.7.
func TestBench(t *testing.T) {
	state, bin, dir := stateFolder(t), binDir(t), filepath.Join(t.TempDir(), "new", "run")
	code, stdout, stderr := hotsku(t.Context(), "bench", "--rate", "100", "--duration", "4s", "--stock", "60", "--slo", "report",
		"--seed", "7", "--out", dir, "--bin-dir", bin)
	nothingIsLeft(t, state)
	run, err := rundir.Dir(dir).ReadRun()
	if err != nil {
		t.Fatalf("%v; exit code %d, stderr %s", err, code, stderr)
	}
	// On a busy machine the generator may fall behind, buyers be turned away
	// until the load is over, and answers or orders come late, which is said
	// and is for benches to judge; nothing else may be amiss.
	run.Reasons = slices.DeleteFunc(run.Reasons, func(r string) bool {
		return strings.HasPrefix(r, "the generator fell behind") || strings.HasPrefix(r, "SLO P99") || strings.HasPrefix(r, "SLO every unit sold") ||
			strings.HasPrefix(r, "SLO 99.9 % of valid orders within")
	})
	if len(run.Reasons) > 0 || code != run.ExitCode || run.Orders.Valid == 0 || run.Orders.Valid > 60 {
		t.Fatalf("exit code %d, run.json says %d, %d valid orders, %q; stderr %s", code, run.ExitCode, run.Orders.Valid, run.Reasons, stderr)
	}
	t.Run("standard output has the table and nothing else", func(t *testing.T) {
		first, _, _ := strings.Cut(stdout, "\n")
		if !regexp.MustCompile(`^(PASS|INCONCLUSIVE) +bench +redis-mq-token  seed 7  exit code [02]$`).MatchString(first) ||
			!strings.HasSuffix(stdout, "\nreport  "+dir+"/report.html\n") || strings.Contains(stdout, "starting") {
			t.Errorf("standard output is\n%s", stdout)
		}
	})
	t.Run("standard error has plain lines", func(t *testing.T) {
		for line := range strings.Lines(stderr) {
			if !regexp.MustCompile(`^ *\d+\.\d s  [^\r\x1b]+\n$`).MatchString(line) {
				t.Errorf("line %q", line)
			}
		}
	})
	t.Run("the run says how to run it again", func(t *testing.T) {
		want := "hotsku bench --bin-dir " + bin + " --duration 4s --rate 100 --slo report --stock 60 --seed 7"
		if run.Command != want {
			t.Errorf("command is %q, want %q", run.Command, want)
		}
	})
	t.Run("outputs are there", func(t *testing.T) {
		for _, path := range []string{rundir.Dir(dir).Report(), rundir.Dir(dir).JUnit(), rundir.Dir(dir).LatencyLog()} {
			if info, err := os.Stat(path); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v", path, err)
			}
		}
		for _, role := range []string{"access-1", "consumer", "scanner", "outbox", "redis", "postgres", "namesrv", "broker"} {
			if _, err := os.Stat(filepath.Join(rundir.Dir(dir).Logs(), role+".log")); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("verify gives the same verdict and changes nothing", func(t *testing.T) {
		before := tree(t, dir)
		if again, table, errs := hotsku(t.Context(), "verify", dir); again != code || table != stdout || errs != "" {
			t.Errorf("exit code %d, want %d; stderr %q; stdout\n%s", again, code, errs, table)
		}
		if after := tree(t, dir); before != after {
			t.Error("verify changed the folder")
		}
	})
	t.Run("report writes the same pages again", func(t *testing.T) {
		before := tree(t, dir)
		if again, out, errs := hotsku(t.Context(), "report", dir); again != 0 || out != dir+"/report.html\n" || errs != "" {
			t.Errorf("exit code %d, stdout %q, stderr %q", again, out, errs)
		}
		if after := tree(t, dir); before != after {
			t.Error("report wrote other pages")
		}
	})
	t.Run("lies", func(t *testing.T) { lies(t, dir) })
	t.Run("spoilt evidence", func(t *testing.T) { spoilt(t, dir) })
}

// tree is the content of a folder as one string.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		b.WriteString(path + "\n" + string(body) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// doctored is a copy of a run whose generator may have fallen behind.
func doctored(t *testing.T, dir string) rundir.Dir {
	t.Helper()
	to := rundir.Dir(t.TempDir())
	if err := os.CopyFS(string(to), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	plan, err := to.ReadPlan()
	if err != nil {
		t.Fatal(err)
	}
	plan.Limits.SendLagP99MS = 1e6
	if err := rundir.WriteJSON(to.Plan(), plan); err != nil {
		t.Fatal(err)
	}
	return to
}

func verdict(t *testing.T, dir rundir.Dir) *rundir.Run {
	t.Helper()
	code, stdout, stderr := hotsku(t.Context(), "verify", "--json", string(dir))
	var run rundir.Run
	if err := json.Unmarshal([]byte(stdout), &run); err != nil || code != run.ExitCode || stderr != "" && !strings.HasPrefix(stderr, "hotsku: run.json says ") {
		t.Fatalf("exit code %d, verdict's %d, stderr %q, %v", code, run.ExitCode, stderr, err)
	}
	return &run
}

// changeRows rewrites a row file: f gets its rows, without the trailer.
func changeRows(t *testing.T, path string, f func(rows []string) []string) {
	t.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(body), "\n"), "\n")
	trailer := lines[len(lines)-1]
	if err := os.WriteFile(path, []byte(strings.Join(append(f(lines[:len(lines)-1]), trailer), "")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func lies(t *testing.T, dir string) {
	if run := verdict(t, doctored(t, dir)); run.ExitCode != 0 {
		t.Fatalf("the undoctored copy: exit code %d, %q", run.ExitCode, run.Reasons)
	}
	orders := rundir.Dir.Table
	token := regexp.MustCompile(`"inventory_token_id":(\d+)`)
	for _, c := range []struct {
		lie  string
		tell func(t *testing.T, dir rundir.Dir)
		want map[string]string // what the violated invariants say
	}{
		{"one order row is deleted", func(t *testing.T, dir rundir.Dir) {
			changeRows(t, orders(dir, "orders"), func(rows []string) []string { return slices.Delete(rows, 5, 6) })
		}, map[string]string{"I1": "0 hold it: none: -1", "I3": "-1", "I4": "", "I15": ""}},
		{"one token is given to two orders", func(t *testing.T, dir rundir.Dir) {
			changeRows(t, orders(dir, "orders"), func(rows []string) []string {
				rows[7] = token.ReplaceAllString(rows[7], token.FindString(rows[3]))
				return rows
			})
		}, map[string]string{"I1": "2 hold it", "I3": ""}},
	} {
		t.Run(c.lie, func(t *testing.T) {
			dir := doctored(t, dir)
			c.tell(t, dir)
			run := verdict(t, dir)
			if run.ExitCode != 1 || run.Verdict != rundir.VerdictFail {
				t.Errorf("%s, exit code %d", run.Verdict, run.ExitCode)
			}
			if _, _, stderr := hotsku(t.Context(), "verify", string(dir)); !strings.Contains(stderr, ", the evidence fail (exit code 1): they differ in exit_code, ") {
				t.Errorf("verify does not say that run.json differs: %q", stderr)
			}
			for id, says := range c.want {
				if !slices.ContainsFunc(run.Reasons, func(r string) bool {
					return strings.HasPrefix(r, id+" ") && strings.Contains(r, " violated: ") && strings.Contains(r, says)
				}) {
					t.Errorf("%s does not say %q: %q", id, says, run.Reasons)
				}
			}
		})
	}
}

// spoilt cuts and removes each file that a verdict leans on.
func spoilt(t *testing.T, dir string) {
	var evidence []string
	for _, top := range []string{"plan.json", "timeline.jsonl", "history", "stores"} {
		err := filepath.WalkDir(filepath.Join(dir, top), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				evidence = append(evidence, strings.TrimPrefix(path, dir+"/"))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(evidence) < 16 {
		t.Fatalf("the run left %v", evidence)
	}
	for how, spoil := range map[string]func(path string) error{
		"removed":   os.Remove,
		"truncated": halve,
	} {
		for _, name := range evidence {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				dir := doctored(t, dir)
				if err := spoil(filepath.Join(string(dir), name)); err != nil {
					t.Fatal(err)
				}
				run := verdict(t, dir)
				named := func(r string) bool { return strings.HasPrefix(r, name+": ") }
				if how == "removed" && strings.HasPrefix(name, "history/") {
					named = func(r string) bool { return strings.HasPrefix(r, "history: ") } // the folder is empty then
				}
				if run.ExitCode != exitEnvironment || !slices.ContainsFunc(run.Reasons, named) {
					t.Errorf("exit code %d, want 2 and %s named: %q", run.ExitCode, name, run.Reasons)
				}
			})
		}
	}
}

func halve(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.Truncate(path, info.Size()/2)
}

// Ctrl-C: one line, exit code 2, nothing left. Later phases end by the same
// context; package scenarios has them.
func TestInterruptedWhileServersStart(t *testing.T) {
	state := stateFolder(t)
	dir := filepath.Join(t.TempDir(), "run")
	cmd := process(t, "bench", "--out", dir, "--bin-dir", binDir(t))
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
	want := "hotsku: interrupted; everything was stopped, evidence so far is in " + dir
	if code := cmd.ProcessState.ExitCode(); code != exitEnvironment || len(lines) != 2 || lines[1] != want || stdout.Len() > 0 {
		t.Errorf("exit code %d, stdout %q, stderr %q; want 2 and at last %q", code, stdout.String(), lines, want)
	}
	nothingIsLeft(t, state)
}

// awaitServer returns when a server of a stack runs.
func awaitServer(t *testing.T, state string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		stacks, err := stack.List(state)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range stacks {
			if slices.ContainsFunc(s.Servers, func(s stack.ServerInfo) bool { return s.PID != 0 }) {
				return
			}
		}
	}
	t.Fatal("no server was started")
}
