package scenarios

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hotsku/hotsku/loadgen"
	"github.com/hotsku/hotsku/stack"
	"github.com/hotsku/hotsku/verify/rundir"
)

// mortal is a server without a process.
type mortal struct {
	stack.Server
	mu   sync.Mutex
	done chan struct{}
}

func (m *mortal) Done() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done
}

func (m *mortal) Kill() error {
	close(m.done)
	return nil
}

func (m *mortal) Stop(context.Context) error { return m.Kill() }

func (m *mortal) Start(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done = make(chan struct{})
	return nil
}

func TestOnlyAServerThatNoFaultBrokeHasDied(t *testing.T) {
	m := &mortal{done: make(chan struct{})}
	g := guard(m)
	end := make(chan error, 1)
	go func() { end <- g.watch(t.Context()) }()
	for _, breaks := range []func() error{g.Kill, func() error { return g.Stop(t.Context()) }} {
		if err := errors.Join(breaks(), g.Start(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-end:
		t.Fatalf("a server that faults broke and mended: %v", err)
	default:
	}
	if err := m.Kill(); err != nil { // not through its guard
		t.Fatal(err)
	}
	if err := <-end; !errors.Is(err, errServerDied) {
		t.Errorf("error is %v", err)
	}
}

// A server that dies by itself ends the run without a verdict, and the error
// names it and its log.
func TestAServerThatDiesByItselfEndsTheRun(t *testing.T) {
	state := stateFolder(t)
	dir := rundir.Dir(t.TempDir())
	var once sync.Once
	w := &watcher{}
	w.onLoad = func(l loadgen.Live) {
		if l.Completed == 0 {
			return
		}
		once.Do(func() {
			stacks, err := stack.List(state)
			if err != nil || len(stacks) != 1 {
				t.Errorf("stacks are %+v, %v", stacks, err)
				return
			}
			for _, s := range stacks[0].Servers {
				if s.Name == stack.RedisName {
					if err := syscall.Kill(s.PID, syscall.SIGKILL); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	s := small()
	s.Faults = nil
	s.Load.Duration = time.Minute // it ends by the death alone
	run, err := Run(t.Context(), s, Options{Dir: dir, Seed: 1, SLOMode: rundir.SLOReport, Progress: w, Binaries: product(t)})
	log := filepath.Join(dir.Logs(), "redis.log")
	if run != nil || !errors.Is(err, errServerDied) || !strings.Contains(err.Error(), "redis ended by itself during the run: see its log "+log) {
		t.Fatalf("run %v, error %v", run, err)
	}
	if info, err := os.Stat(log); err != nil || info.Size() == 0 {
		t.Errorf("its log: %v", err)
	}
	nothingIsLeft(t, state)
}
