package proc_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A child that begins a session of its own, as PostgreSQL's backends do, gives
// way as much as the program does.
func TestSessionsOfChildrenGetTheNiceness(t *testing.T) {
	on, err := os.ReadFile("/proc/sys/kernel/sched_autogroup_enabled")
	if err != nil || strings.TrimSpace(string(on)) != "1" {
		t.Skip("this kernel does not share processors out among sessions: niceness counts by itself")
	}
	file := filepath.Join(t.TempDir(), "pid")
	spec := shell("sessions", "", "setsid sh -c 'echo $$ > "+file+"; exec sleep 300' & wait")
	spec.Nice = 7
	start(t, spec)
	var said string
	for deadline := time.Now().Add(hang); !strings.HasSuffix(said, " nice 7\n"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the session's niceness is %q, want 7", said)
		}
		pid, err := os.ReadFile(file)
		if err != nil || len(pid) == 0 {
			continue // not yet
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%s/autogroup", strings.TrimSpace(string(pid))))
		if err != nil {
			t.Fatal(err)
		}
		said = string(text)
	}
}
