package fleet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hotsku/hotsku/stack/proc"
)

func TestAMemberWorksWhileItSaysSo(t *testing.T) {
	f := newFleet(t, nil)
	fine := add(t, f, Role{Name: "access-1", Kind: "access", Env: []string{"SECKILL_REDIS=127.0.0.9:9"}})
	broken := add(t, f, Role{Name: "access-2", Kind: "access", Args: []string{"--play", "broken"}})
	if fine.Works(t.Context()) == nil || !errors.Is(fine.Pause(), proc.ErrGone) || !errors.Is(fine.Resume(), proc.ErrGone) {
		t.Error("a process that never ran works, or was frozen")
	}
	start(t, f)
	if err := fine.Works(t.Context()); err != nil {
		t.Error(err)
	}
	if err := broken.Works(t.Context()); err == nil || !strings.Contains(err.Error(), "ask access-2: status 500") {
		t.Errorf("one that is not ready: %v", err)
	}
	if err := fine.Pause(); err != nil {
		t.Fatal(err)
	}
	frozen, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := fine.Works(frozen); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a frozen process: %v", err)
	}
	if err := errors.Join(fine.Resume(), fine.Works(t.Context())); err != nil {
		t.Errorf("after it was resumed: %v", err)
	}
	if log := logOf(t, fine); !strings.Contains(log, "127.0.0.9:9") || strings.Contains(logOf(t, broken), "127.0.0.9:9") {
		t.Error("a role's own environment is not its alone")
	}
}

// A process that finds no server ends, and whoever runs it starts it again.
func TestAProcessIsStartedAgainUntilItIsReady(t *testing.T) {
	need := filepath.Join(t.TempDir(), "need")
	if err := os.WriteFile(need, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := newFleet(t, nil)
	m := add(t, f, Role{Name: "scanner", Kind: "scanner", Args: []string{"--play", "needs:" + need}})
	start(t, f)
	if err := errors.Join(m.Kill(), os.Remove(need)); err != nil {
		t.Fatal(err)
	}
	ready := make(chan error, 1)
	go func() { ready <- m.Restart(t.Context()) }()
	for strings.Count(logOf(t, m), "started") < 3 {
		select {
		case err := <-ready:
			t.Fatalf("it gave up: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err := os.WriteFile(need, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-ready; err != nil {
		t.Error(err)
	}
}
