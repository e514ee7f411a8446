package scenarios

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hotsku/hotsku/loadgen"
	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/scenarios/fleet"
	"github.com/hotsku/hotsku/stack"
	"github.com/hotsku/hotsku/verify/rundir"
	"github.com/hotsku/hotsku/verify/snapshot"
)

// watcher is a Progress that notes the phases and calls onLoad.
type watcher struct {
	phases []string
	onLoad func(loadgen.Live)
}

func (w *watcher) Phase(what string) { w.phases = append(w.phases, what) }
func (w *watcher) Load(l loadgen.Live) {
	if w.onLoad != nil {
		w.onLoad(l)
	}
}
func (w *watcher) Converging(snapshot.Backlog) {}

// Requests for a run that cannot be met start nothing and leave nothing.
func TestRunRefusesAndStartsNothing(t *testing.T) {
	state := stateFolder(t)
	root := t.TempDir()
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		rule   string
		change func(*Scenario, *Options)
		says   string
	}{
		{"a load that cannot be offered", func(s *Scenario, _ *Options) { s.Load.Stock = -1 }, "stock -1"},
		{"an SLO nobody can measure", func(s *Scenario, _ *Options) { s.SLOs[0].Metric = "luck" }, `metric "luck"`},
		{"an SLO mode that is none", func(_ *Scenario, o *Options) { o.SLOMode = "" }, "SLO mode"},
		{"a file for a folder", func(_ *Scenario, o *Options) { o.Dir = rundir.Dir(file) }, "is a file"},
		{"a folder that is not empty", func(_ *Scenario, o *Options) { o.Dir = rundir.Dir(root) }, "is not empty"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s, w := small(), &watcher{}
			o := Options{Dir: rundir.Dir(filepath.Join(root, "new")), Seed: 1, SLOMode: rundir.SLOEnforce, Progress: w}
			c.change(&s, &o)
			_, err := Run(t.Context(), s, o)
			if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error is %v, want ErrUsage and %q", err, c.says)
			}
			if _, err := os.Stat(filepath.Join(root, "new")); !errors.Is(err, os.ErrNotExist) || len(w.phases) > 0 {
				t.Errorf("it made a run directory (%v) or began %v", err, w.phases)
			}
		})
	}
	nothingIsLeft(t, state)
}

// stateFolder is one that the database's user can reach, for this test alone.
func stateFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hotsku-scenarios-test-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("HOTSKU_STATE", dir)
	return dir
}

// nothingIsLeft checks that no child process lives and no stack is on disk.
func nothingIsLeft(t *testing.T, state string) {
	t.Helper()
	if stacks, err := stack.List(state); err != nil || len(stacks) > 0 {
		t.Errorf("stacks are left: %+v, %v", stacks, err)
	}
	if entries, err := os.ReadDir(state); err != nil {
		t.Error(err)
	} else {
		for _, e := range entries {
			if e.IsDir() {
				t.Errorf("the folder %s is left", e.Name())
			}
		}
	}
	tasks, err := filepath.Glob("/proc/" + strconv.Itoa(os.Getpid()) + "/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range tasks {
		if children, err := os.ReadFile(path); err == nil && len(children) > 0 {
			t.Errorf("child processes are left: %s", children)
		}
	}
}

// product finds the real one.
func product(t *testing.T) fleet.Binaries {
	t.Helper()
	b, err := fleet.FindBinaries("../bin")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// listeners are the addresses a run's timeline names.
func listeners(t *testing.T, dir rundir.Dir) (addrs []string, events map[string]rundir.TimelineEvent) {
	t.Helper()
	events = map[string]rundir.TimelineEvent{}
	for e, err := range rundir.Rows[rundir.TimelineEvent](dir.Timeline()) {
		if err != nil {
			t.Fatal(err)
		}
		events[e.Event] = e
		if e.Event == "started" && e.Detail != "" {
			addrs = append(addrs, e.Detail)
		}
	}
	return addrs, events
}

func refusesAll(t *testing.T, addrs []string) {
	t.Helper()
	for _, addr := range addrs {
		if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			c.Close()
			t.Errorf("%s still answers", addr)
		}
	}
}

// A product that cannot run fails the run, and nothing is left of the servers
// but their logs.
func TestRunWithAProductThatExitsLeavesNothingRunning(t *testing.T) {
	state := stateFolder(t)
	dir := rundir.Dir(t.TempDir())
	stub := filepath.Join(t.TempDir(), "seckill")
	if err := os.WriteFile(stub, []byte("#!/bin/sh\necho 'seckill: out of luck' >&2\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	w := &watcher{}
	run, err := Run(t.Context(), small(), Options{Dir: dir, Seed: 1, SLOMode: rundir.SLOReport, Progress: w, Binaries: fleet.Binaries{Plain: stub, Chaos: stub}})
	if run != nil || err == nil || errors.Is(err, ErrUsage) || errors.Is(err, ErrLeft) {
		t.Fatalf("run %v, error %v; want an error of the environment", run, err)
	}
	if !strings.Contains(err.Error(), "seckill migrate: exit status 3: seckill: out of luck") {
		t.Errorf("error is %v, want the command and its last line", err)
	}
	addrs, events := listeners(t, dir)
	if len(addrs) != 4 || !strings.Contains(events["ended early"].Detail, "out of luck") {
		t.Errorf("timeline names %v and %+v", addrs, events["ended early"])
	}
	refusesAll(t, addrs)
	nothingIsLeft(t, state)
	for _, server := range []string{stack.RedisName, stack.PostgresName, stack.BrokerName} {
		if info, err := os.Stat(filepath.Join(dir.Logs(), server+".log")); err != nil || info.Size() == 0 {
			t.Errorf("the log of %s was not kept: %v", server, err)
		}
	}
}

// Ctrl-C in the middle of a load: all is stopped in order, and the evidence
// so far is kept and whole.
func TestRunCancelledDuringTheLoad(t *testing.T) {
	state := stateFolder(t)
	dir := rundir.Dir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	var once sync.Once
	w := &watcher{}
	w.onLoad = func(l loadgen.Live) {
		if l.Completed > 0 {
			once.Do(cancel)
		}
	}
	s := small()
	s.Load.Duration = time.Minute // it ends by the cancellation alone
	s.Faults[0].Limits.Bite = time.Minute
	change(&s, func(k *KillPoint) { k.At = 1 << 40 }) // it waits for its bite until then
	run, err := Run(ctx, s, Options{Dir: dir, Seed: 1, SLOMode: rundir.SLOReport, Progress: w, Binaries: product(t)})
	if run != nil || !errors.Is(err, context.Canceled) || errors.Is(err, ErrLeft) || strings.Contains(err.Error(), "was killed") {
		t.Fatalf("run %v, error %v; want that it was cancelled and ended in order", run, err)
	}
	if last := w.phases[len(w.phases)-1]; last != "load; kill@access.after-send: access-2" {
		t.Errorf("the last phase was %q", last)
	}
	addrs, events := listeners(t, dir)
	if len(addrs) != 6 { // four servers, two access processes
		t.Errorf("timeline names %v", addrs)
	}
	refusesAll(t, addrs)
	nothingIsLeft(t, state)

	if !strings.Contains(events["ended early"].Detail, "cancel") || events["healed"].Target != "access-2" {
		t.Errorf("timeline says %+v and %+v", events["ended early"], events["healed"])
	}
	if _, err := dir.ReadPlan(); err != nil {
		t.Error(err)
	}
	h, err := history.OpenDir(dir.History())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	var rec history.Record
	for err = h.Next(&rec); err == nil; err = h.Next(&rec) {
	}
	if total := h.Totals(); err != io.EOF || total.Records == 0 || total.Records+total.Unrecorded != 500*60 {
		t.Errorf("history ends with %v and %+v; want all 30000 requests accounted for, and those answered recorded", err, total)
	}
}
