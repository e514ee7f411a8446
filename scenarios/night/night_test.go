package night

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotsku/hotsku/scenarios"
	"github.com/hotsku/hotsku/verify/rundir"
)

// bed is a night of three runs in a folder of its own, on a clock that each
// run moves by 10 s.
type bed struct {
	t    *testing.T
	dir  rundir.NightDir
	at   time.Time
	ran  []string // scenarios, in order
	does map[string]func(r rundir.NightRun, dir rundir.Dir) error
}

func newBed(t *testing.T) *bed {
	t.Parallel()
	return &bed{t: t, dir: rundir.NightDir(filepath.Join(t.TempDir(), "night")), at: time.Unix(1_800_000_000, 0), does: map[string]func(rundir.NightRun, rundir.Dir) error{}}
}

func record() rundir.Night {
	return rundir.Night{Command: "hotsku chaos run --all --seed 7", StartedAt: time.Unix(1_800_000_000, 0).UTC(), SLOMode: rundir.SLOEnforce,
		Runs: []rundir.NightRun{{Scenario: "a", Seed: 7, Doc: "a dies"}, {Scenario: "b", Seed: 7, Doc: "b dies"}, {Scenario: "a", Seed: 8, Doc: "a dies"}}}
}

func (b *bed) begin() *Night {
	b.t.Helper()
	n, err := Begin(b.dir, record())
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// run runs n to its end, as b.does says; what is not said passes.
func (b *bed) run(ctx context.Context, n *Night) error {
	b.t.Helper()
	b.ran = nil
	err := n.Run(ctx, Params{
		Now: func() time.Time { return b.at },
		Folder: func(at time.Time, r rundir.NightRun) string {
			return fmt.Sprintf("%d-%s-%d", at.Unix(), r.Scenario, r.Seed)
		},
		Run: func(_ context.Context, r rundir.NightRun, dir rundir.Dir) error {
			b.at = b.at.Add(10 * time.Second)
			b.ran = append(b.ran, fmt.Sprintf("%s-%d", r.Scenario, r.Seed))
			if does := b.does[b.ran[len(b.ran)-1]]; does != nil {
				return does(r, dir)
			}
			return judge(r, dir, rundir.VerdictPass)
		}})
	return errors.Join(err, n.Close())
}

func judge(r rundir.NightRun, dir rundir.Dir, verdict string) error {
	run := rundir.Run{Schema: rundir.RunSchema, Verdict: verdict, Name: r.Scenario, Seed: r.Seed}
	return errors.Join(rundir.WriteJSON(dir.Run(), &run), rundir.WriteFile(dir.Report(), []byte("report")))
}

func (b *bed) wantRan(want ...string) {
	b.t.Helper()
	if !slices.Equal(b.ran, want) {
		b.t.Errorf("ran %v, want %v", b.ran, want)
	}
}

func (b *bed) exitCode() int {
	b.t.Helper()
	n, err := Read(b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	return n.ExitCode()
}

func (b *bed) report() string {
	b.t.Helper()
	body, err := os.ReadFile(b.dir.Report())
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := os.Stat(b.dir.JUnit()); err != nil {
		b.t.Error(err)
	}
	return string(body)
}

func TestANightRunsAllInOrderAndReports(t *testing.T) {
	b := newBed(t)
	if err := b.run(t.Context(), b.begin()); err != nil {
		t.Fatal(err)
	}
	b.wantRan("a-7", "b-7", "a-8")
	if code := b.exitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	page := b.report()
	for i, dir := range []string{"1800000000-a-7", "1800000010-b-7", "1800000020-a-8"} {
		if !strings.Contains(page, `href="./`+dir+`/report.html"`) {
			t.Errorf("the report does not lead to run %d, %s", i, dir)
		}
	}
	if !strings.Contains(page, "30 s") {
		t.Error("the report does not say how long it took")
	}
}

// A run without a verdict is noted with its reason, and the others go on.
func TestARunWithoutAVerdictEndsNoNight(t *testing.T) {
	b := newBed(t)
	b.does["a-7"] = func(rundir.NightRun, rundir.Dir) error { return errors.New("no\nRedis") }
	b.does["b-7"] = func(rundir.NightRun, rundir.Dir) error { return nil } // and left no run.json
	if err := b.run(t.Context(), b.begin()); err != nil {
		t.Fatal(err)
	}
	b.wantRan("a-7", "b-7", "a-8")
	page := b.report()
	if !strings.Contains(page, "no Redis") || !strings.Contains(page, "run.json: is missing") || b.exitCode() != 2 {
		t.Errorf("exit code %d, report:\n%s", b.exitCode(), page)
	}
}

// What a run left running would meet the next: the night ends.
func TestANightEndsWhereSomethingIsLeftRunning(t *testing.T) {
	b := newBed(t)
	b.does["b-7"] = func(rundir.NightRun, rundir.Dir) error { return fmt.Errorf("%w: access-1 runs on", scenarios.ErrLeft) }
	if err := b.run(t.Context(), b.begin()); !errors.Is(err, scenarios.ErrLeft) {
		t.Fatal(err)
	}
	b.wantRan("a-7", "b-7")
	if page := b.report(); !strings.Contains(page, "access-1 runs on") {
		t.Error("the report does not say why")
	}
}

// A run that was interrupted is not judged when the night goes on: its folder
// is set aside and it runs again; what has a verdict is not run again.
func TestANightGoesOn(t *testing.T) {
	b := newBed(t)
	ctx, interrupt := context.WithCancel(t.Context())
	b.does["b-7"] = func(_ rundir.NightRun, dir rundir.Dir) error {
		interrupt()
		return errors.Join(rundir.WriteFile(dir.Plan(), []byte("{}")), errors.New("interrupted"))
	}
	if err := b.run(ctx, b.begin()); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	b.wantRan("a-7", "b-7")
	if page := b.report(); b.exitCode() != 2 || !strings.Contains(page, "not run") || !strings.Contains(page, "--resume") {
		t.Errorf("exit code %d, report:\n%s", b.exitCode(), page)
	}
	before, err := os.ReadFile(b.dir.Run("1800000000-a-7").Run())
	if err != nil {
		t.Fatal(err)
	}

	n, aside, err := Resume(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(aside, []string{"1800000010-b-7"}) {
		t.Errorf("set aside: %v", aside)
	}
	if _, err := os.Stat(filepath.Join(b.dir.SetAside(), "1800000010-b-7", "plan.json")); err != nil {
		t.Error(err)
	}
	delete(b.does, "b-7")
	if err := b.run(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	b.wantRan("b-7", "a-8")
	if code := b.exitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if after, _ := os.ReadFile(b.dir.Run("1800000000-a-7").Run()); string(after) != string(before) {
		t.Error("a judged run was changed")
	}

	n, aside, err = Resume(b.dir)
	if err != nil || len(aside) > 0 {
		t.Fatal(aside, err)
	}
	if err := b.run(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	b.wantRan()
}

// A process that was killed leaves a run that says nothing of its end; one
// whose run.json is cut, or another run's, has no verdict either.
func TestWhatIsNoVerdictIsRunAgain(t *testing.T) {
	for name, spoil := range map[string]func(r rundir.NightRun, dir rundir.Dir) error{
		"no run.json":     func(_ rundir.NightRun, dir rundir.Dir) error { return os.Remove(dir.Run()) },
		"a cut one":       func(_ rundir.NightRun, dir rundir.Dir) error { return os.Truncate(dir.Run(), 20) },
		"another run's":   func(r rundir.NightRun, dir rundir.Dir) error { r.Seed++; return judge(r, dir, rundir.VerdictPass) },
		"no folder":       func(_ rundir.NightRun, dir rundir.Dir) error { return os.RemoveAll(string(dir)) },
		"no such verdict": func(r rundir.NightRun, dir rundir.Dir) error { return judge(r, dir, "fine") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			if err := b.run(t.Context(), b.begin()); err != nil {
				t.Fatal(err)
			}
			r := record().Runs[1]
			if err := spoil(r, b.dir.Run("1800000010-b-7")); err != nil {
				t.Fatal(err)
			}
			if code := b.exitCode(); code != 2 {
				t.Errorf("exit code %d before", code)
			}
			n, _, err := Resume(b.dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.run(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			b.wantRan("b-7")
		})
	}
	t.Run("a failed run has a verdict", func(t *testing.T) {
		b := newBed(t)
		b.does["b-7"] = func(r rundir.NightRun, dir rundir.Dir) error { return judge(r, dir, rundir.VerdictFail) }
		if err := b.run(t.Context(), b.begin()); err != nil {
			t.Fatal(err)
		}
		n, aside, err := Resume(b.dir)
		if err != nil || len(aside) > 0 {
			t.Fatal(aside, err)
		}
		if err := b.run(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		b.wantRan()
		if code := b.exitCode(); code != 1 {
			t.Errorf("exit code %d", code)
		}
	})
}

func TestFoldersThatCannotBeANights(t *testing.T) {
	b := newBed(t)
	n := b.begin()
	if _, err := Begin(b.dir, record()); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a night in a night's folder: %v", err)
	}
	if _, _, err := Resume(b.dir); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "another process runs this night") {
		t.Errorf("two processes in one night: %v", err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{
		"empty": "", "cut": `{"schema": 1, "runs": [`, "of another build": `{"schema": 9, "runs": [{"scenario": "a", "seed": 1, "doc": "", "took_s": 0}], "slo_mode": "enforce", "command": "", "started_at": "2026-05-11T22:00:00Z"}`,
		"of no run":            `{"schema": 1, "runs": [], "slo_mode": "enforce", "command": "", "started_at": "2026-05-11T22:00:00Z"}`,
		"with a run elsewhere": `{"schema": 1, "runs": [{"scenario": "a", "seed": 1, "doc": "", "dir": "../x", "took_s": 0}], "slo_mode": "enforce", "command": "", "started_at": "2026-05-11T22:00:00Z"}`,
		"with itself as a run": `{"schema": 1, "runs": [{"scenario": "a", "seed": 1, "doc": "", "dir": ".", "took_s": 0}], "slo_mode": "enforce", "command": "", "started_at": "2026-05-11T22:00:00Z"}`,
	} {
		if err := os.WriteFile(b.dir.Record(), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Resume(b.dir); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "night.json") {
			t.Errorf("a record that is %s: %v", name, err)
		}
	}
	if _, _, err := Resume(rundir.NightDir(t.TempDir())); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "night.json: is missing") {
		t.Errorf("no night: %v", err)
	}
}
