package verify

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// needers lists the invariants that cannot be checked without a file.
func needers(s source) []string {
	var ids []string
	for _, c := range checks() {
		if slices.Contains(c.needs, s) {
			ids = append(ids, c.id)
		}
	}
	return ids
}

func statusOf(run *rundir.Run, id string) rundir.Invariant {
	for _, inv := range run.Invariants {
		if inv.ID == id {
			return inv
		}
	}
	return rundir.Invariant{}
}

// sources are all files of a run directory that a verdict leans on.
func sources() []source {
	return []source{fromPlan, fromTimeline, fromQueries, fromSnapshot, fromKeys, fromLog, fromMessages, fromOffsets, fromTokens, fromOrders,
		fromSKUs, fromItems, fromReservations, fromLedger, fromInbox, fromOutbox, fromDeadLetters, fromActivities, "history/0000.hist"}
}

// Evidence that is missing, empty or cut never passes: what depends on it is
// not checked, the file is named, and the exit code is 2.
func TestSpoiltEvidenceIsNamedAndNeverPasses(t *testing.T) {
	healthy := rundir.Dir(scratch(t))
	smallWorld().write(t, healthy)
	for _, s := range sources() {
		for how, spoil := range map[string]func(path string, body []byte) error{
			"missing": func(path string, _ []byte) error { return os.Remove(path) },
			"empty":   func(path string, _ []byte) error { return os.Truncate(path, 0) },
			"cut in the middle": func(path string, body []byte) error {
				return os.Truncate(path, int64(len(body)/2))
			},
			"cut near its end": func(path string, body []byte) error { return os.Truncate(path, int64(len(body)-3)) },
			"spoilt": func(path string, body []byte) error {
				return os.WriteFile(path, append([]byte("\x00\x01"), body...), 0o644)
			},
			"longer": func(path string, body []byte) error {
				return os.WriteFile(path, append(bytes.Clone(body), "{}\n"...), 0o644)
			},
		} {
			if s == "history/0000.hist" && how == "missing" {
				continue // another file of the history is there: its records contradict the plan, see below
			}
			t.Run(string(s)+" "+how, func(t *testing.T) {
				t.Parallel()
				dir := rundir.Dir(scratch(t))
				if err := os.CopyFS(string(dir), os.DirFS(string(healthy))); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(string(dir), string(s))
				body, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := spoil(path, body); err != nil {
					t.Fatal(err)
				}
				run := judgeDir(t, dir)
				if run.Verdict != rundir.VerdictInconclusive || run.ExitCode != ExitInconclusive {
					t.Errorf("%s, exit %d: %q", run.Verdict, run.ExitCode, run.Reasons)
				}
				if !slices.ContainsFunc(run.Reasons, func(r string) bool { return strings.HasPrefix(r, string(s)+": ") }) {
					t.Errorf("no reason names %s: %q", s, run.Reasons)
				}
				key := s
				if strings.HasPrefix(string(s), "history/") {
					key = fromHistory
				}
				for _, id := range needers(key) {
					if inv := statusOf(run, id); inv.Status != rundir.StatusNotChecked || inv.Checked != 0 || !strings.Contains(inv.Witness[0], string(s)) {
						t.Errorf("%+v", inv)
					}
				}
				for _, inv := range run.Invariants {
					if s != fromPlan && inv.ID != failClosed.id && !slices.Contains(needers(key), inv.ID) && inv.Status != rundir.StatusHeld {
						t.Errorf("%s does not need %s and is %s: %q", inv.ID, s, inv.Status, inv.Witness)
					}
				}
			})
		}
	}
}

func TestMissingHistoryIsNamed(t *testing.T) {
	for name, spoil := range map[string]func(dir rundir.Dir) error{
		"no folder": func(d rundir.Dir) error { return os.RemoveAll(d.History()) },
		"no files": func(d rundir.Dir) error {
			return os.RemoveAll(filepath.Join(d.History(), "0000.hist"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := rundir.Dir(scratch(t))
			w := healthyWorld()
			w.write(t, dir)
			if err := os.Remove(filepath.Join(dir.History(), "0001.hist")); err != nil {
				t.Fatal(err)
			}
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			run := judgeDir(t, dir)
			if run.ExitCode != ExitInconclusive || !strings.HasPrefix(run.Reasons[0], "history: is ") {
				t.Errorf("exit %d: %q", run.ExitCode, run.Reasons)
			}
		})
	}
}

// A bit that flipped in the history accuses nobody and is never overlooked:
// the file, the block and the byte are named, and the exit code is 2.
func TestAFlippedBitOfTheHistoryAccusesNobody(t *testing.T) {
	healthy := rundir.Dir(scratch(t))
	healthyWorld().write(t, healthy)
	for _, c := range []struct {
		part string
		at   func(size int) int
		says string
	}{
		{"the start of the run", func(int) int { return 18 }, "history/0001.hist: history file is corrupt (the header does not match its checksum) at byte 0"},
		{"a record", func(size int) int { return size / 2 }, "history/0001.hist: history file is corrupt (block 1 does not match its checksum) at byte 32"},
		{"the count of dropped requests", func(size int) int { return size - 8 }, "history/0001.hist: history file is corrupt (the trailer does not match its checksum) at byte "},
	} {
		t.Run(c.part, func(t *testing.T) {
			dir := rundir.Dir(scratch(t))
			if err := os.CopyFS(string(dir), os.DirFS(string(healthy))); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir.History(), "0001.hist")
			body, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			body[c.at(len(body))] ^= 4
			if err := os.WriteFile(path, body, 0o644); err != nil {
				t.Fatal(err)
			}
			run := judgeDir(t, dir)
			if run.Verdict != rundir.VerdictInconclusive || run.ExitCode != ExitInconclusive || !strings.HasPrefix(run.Reasons[0], c.says) {
				t.Errorf("%s, exit %d: %q", run.Verdict, run.ExitCode, run.Reasons)
			}
			for _, inv := range run.Invariants {
				if inv.Status == rundir.StatusViolated {
					t.Errorf("%s is accused: %q", inv.ID, inv.Witness)
				}
			}
		})
	}
}

// A figure whose evidence is missing is not known, which misses no SLO: 0
// orders were not sold, they are not told.
func TestAnSLOWithoutItsEvidenceIsNotMissed(t *testing.T) {
	for _, c := range []struct {
		gone   string
		metric string
	}{
		{"stores/postgres/orders.jsonl", "orders.valid"}, {"stores/redis/log.jsonl", "orders.hand_out_ms"}, {"history", "orders.accepted"}, {"history", "latency_ms.all.p99"},
	} {
		t.Run(c.gone+" "+c.metric, func(t *testing.T) {
			dir := rundir.Dir(scratch(t))
			w := healthyWorld()
			w.plan.SLOs = []rundir.SLO{{Name: "x", Metric: c.metric, Op: ">=", Target: 1e9}}
			w.write(t, dir)
			if err := os.RemoveAll(filepath.Join(string(dir), c.gone)); err != nil {
				t.Fatal(err)
			}
			run := judgeDir(t, dir)
			want := "SLO x: " + c.metric + " is not known: " + c.gone + ": is missing"
			if s := run.SLO[0]; s.OK || !s.NotMeasured || run.ExitCode != ExitInconclusive || !slices.Contains(run.Reasons, want) {
				t.Errorf("%+v, exit %d, %q", run.SLO, run.ExitCode, run.Reasons)
			}
			if slices.ContainsFunc(run.Reasons, func(r string) bool { return strings.Contains(r, " missed: ") }) {
				t.Errorf("it is called missed: %q", run.Reasons)
			}
		})
	}
}

// A row removed from a file whose trailer still counts it meets its
// invariant; one whose absence breaks no promise still never passes.
func TestAlteredFilesAreJudgedAndNeverPass(t *testing.T) {
	for _, c := range []struct {
		file     source
		violated string // "" if the removed row proves nothing by itself
	}{
		{fromOrders, "I1"}, {fromTokens, "I1"}, {fromLedger, "I15"}, {fromInbox, "I7"}, {fromReservations, "I4"},
		{fromOutbox, "I9"}, {fromLog, "I10"}, {fromItems, "I3"}, {fromSKUs, "I15"}, {fromTimeline, ""},
	} {
		t.Run(string(c.file), func(t *testing.T) {
			dir := rundir.Dir(scratch(t))
			healthyWorld().write(t, dir)
			path := filepath.Join(string(dir), string(c.file))
			body, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, rest, _ := strings.Cut(string(body), "\n")
			if err := os.WriteFile(path, []byte(rest), 0o644); err != nil {
				t.Fatal(err)
			}
			run := judgeDir(t, dir)
			wantExit := ExitInconclusive
			if c.violated != "" {
				wantExit = ExitFail
				if inv := statusOf(run, c.violated); inv.Status != rundir.StatusViolated {
					t.Errorf("%+v", inv)
				}
			}
			if run.ExitCode != wantExit {
				t.Errorf("exit %d: %q", run.ExitCode, run.Reasons)
			}
			if !strings.Contains(strings.Join(run.Reasons, "\n"), string(c.file)+": holds ") {
				t.Errorf("no reason says that %s was altered: %q", c.file, run.Reasons)
			}
		})
	}
}

func TestAHistoryOfAnotherPlanNeverPasses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*world)
		want  string
	}{
		"a record removed": {func(w *world) { w.records = w.records[:len(w.records)-1] },
			"history: 699 requests are recorded and 0 were dropped unrecorded, the plan schedules 700: -1"},
		"a record twice": {func(w *world) { w.records = append(w.records, w.records[0]) }, "is recorded twice"},
		"a request beyond the plan": {func(w *world) { w.records[0].N = 5000 },
			"history: request 5000 is recorded, the plan schedules 700"},
		"another user": {func(w *world) { w.lateFresh().Subject = 77 }, "is recorded as user 77 with request id"},
		"another seed": {func(w *world) { w.plan.Workload.Seed++ }, "records in all are not the plan's"},
	} {
		t.Run(name, func(t *testing.T) {
			w := healthyWorld()
			c.spoil(w)
			run := w.judged(t)
			if run.ExitCode == ExitPass || !strings.Contains(strings.Join(run.Reasons, "\n"), c.want) {
				t.Errorf("exit %d: %q, want %q", run.ExitCode, run.Reasons, c.want)
			}
		})
	}
}

func TestEmptyHistoryChecksNothing(t *testing.T) {
	w := healthyWorld()
	w.records, w.unrecorded = nil, uint64(w.plan.Load.Scheduled)
	run := w.judged(t)
	if inv := statusOf(run, "I4"); run.ExitCode == ExitPass || inv.Status != rundir.StatusNotChecked {
		t.Errorf("exit %d, %+v", run.ExitCode, inv)
	}
}

func TestStoresOfOtherActivitiesAreNotJudged(t *testing.T) {
	w := healthyWorld()
	o := w.orders[0]
	o.ActivityID, o.OrderID = 99, "ord_other"
	w.orders = append(w.orders, o)
	w.keys = append(w.keys, rundir.RedisKey{Key: seckill.KeysOf(99, skuID).Stock(), Type: "string", String: "-5"})
	if run := w.judged(t); run.ExitCode != ExitPass {
		t.Errorf("%q", run.Reasons)
	}
}

func TestAHistoryOfSeveralActivitiesIsNotGuessedAt(t *testing.T) {
	w := healthyWorld()
	second := w.plan.Activities[0]
	second.SKUID++
	w.plan.Activities = append(w.plan.Activities, second)
	run := w.judged(t)
	if inv := statusOf(run, "I5"); inv.Status != rundir.StatusNotChecked || !strings.Contains(inv.Witness[0], "several activities") {
		t.Errorf("%+v", inv)
	}
}

func TestMessagesThatAreNotThereAreMissingEvidence(t *testing.T) {
	for name, spoil := range map[string]func(w *world){
		"deleted by the broker": func(w *world) { w.offsets[0].Min = 3 },
		"one removed":           func(w *world) { w.messages = slices.Delete(w.messages, 4, 5) },
		"the last removed":      func(w *world) { w.messages = w.messages[:len(w.messages)-1] },
		"one twice":             func(w *world) { w.messages = slices.Insert(w.messages, 4, w.messages[3]) },
		"no offsets":            func(w *world) { w.offsets = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := healthyWorld()
			spoil(w)
			run := w.judged(t)
			if inv := statusOf(run, "I7"); inv.Status != rundir.StatusNotChecked || run.ExitCode != ExitInconclusive || !strings.HasPrefix(inv.Witness[0], "stores/broker/") {
				t.Errorf("exit %d, %+v", run.ExitCode, inv)
			}
		})
	}
}

func TestAKeyTwiceIsNoEvidence(t *testing.T) {
	w := healthyWorld()
	w.keys = append(w.keys, w.keys[3])
	if run := w.judged(t); run.ExitCode != ExitInconclusive || run.Reasons[0] != "stores/redis/keys.jsonl: holds key "+w.keys[3].Key+" twice" {
		t.Errorf("exit %d, %q", run.ExitCode, run.Reasons)
	}
}

func TestVerifyNeedsAFolder(t *testing.T) {
	if _, err := Verify(context.Background(), "testdata/no-such-run"); err == nil {
		t.Error("judged a folder that does not exist")
	}
	if _, err := Verify(context.Background(), "verify.go"); err == nil {
		t.Error("judged a file")
	}
	dir := rundir.Dir(scratch(t))
	healthyWorld().write(t, dir)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Verify(ctx, dir); err == nil {
		t.Error("judged although the context had ended")
	}
	if _, err := Verify(context.Background(), rundir.Dir(scratch(t))); err == nil || !strings.Contains(err.Error(), "plan.json") {
		t.Errorf("an empty folder: %v", err)
	}
}

// The verdict is the folder's, wherever it lies.
func TestAVerdictIsTheSameElsewhere(t *testing.T) {
	a, b := rundir.Dir(scratch(t)), rundir.Dir(scratch(t))
	w := healthyWorld()
	lies()[0].tell(w)
	w.write(t, a)
	if err := os.CopyFS(filepath.Join(string(b), "copy"), os.DirFS(string(a))); err != nil {
		t.Fatal(err)
	}
	b = rundir.Dir(filepath.Join(string(b), "copy"))
	for _, d := range []rundir.Dir{a, b} {
		if err := rundir.WriteJSON(d.Run(), judgeDir(t, d)); err != nil {
			t.Fatal(err)
		}
	}
	x, err1 := os.ReadFile(a.Run())
	y, err2 := os.ReadFile(b.Run())
	if err1 != nil || err2 != nil || !bytes.Equal(x, y) {
		t.Errorf("two verdicts on one folder: %v %v", err1, err2)
	}
	if _, err := a.ReadRun(); err != nil {
		t.Error(err)
	}
}

// A history alone proves nothing of the stores: each of their files is named,
// and nobody is accused.
func TestAHistoryWithoutStoresIsNotChecked(t *testing.T) {
	dir := rundir.Dir(scratch(t))
	smallWorld().write(t, dir)
	if err := os.RemoveAll(dir.Stores()); err != nil {
		t.Fatal(err)
	}
	run := judgeDir(t, dir)
	if run.ExitCode != ExitInconclusive {
		t.Errorf("exit %d: %q", run.ExitCode, run.Reasons)
	}
	for _, s := range sources() {
		if want := string(s) + ": is missing"; strings.HasPrefix(string(s), "stores/") && !slices.Contains(run.Reasons, want) {
			t.Errorf("no reason says %q: %q", want, run.Reasons)
		}
	}
	for _, inv := range run.Invariants {
		if inv.Status != rundir.StatusNotChecked {
			t.Errorf("%+v", inv)
		}
	}
}
