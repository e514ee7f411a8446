package app_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// servers is a stack of this test's own, whose servers it may kill.
type servers struct {
	t    *testing.T
	name string
}

const hotsku = "../../bin/hotsku"

// ownServers starts a stack and points the environment to it; it ends with
// the test.
func ownServers(t *testing.T) *servers {
	t.Helper()
	if _, err := os.Stat(hotsku); err != nil {
		t.Fatalf("%v: run make build", err)
	}
	s := &servers{t: t, name: fmt.Sprintf("app-test-%08x", rand.Uint32())}
	t.Cleanup(func() { s.hotsku("down", "--stack", s.name) })
	for line := range strings.Lines(s.hotsku("up", "--stack", s.name, "--env")) {
		name, value, ok := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "export ")), "=")
		if !ok {
			t.Fatalf("hotsku up printed %q", line)
		}
		t.Setenv(name, strings.Trim(value, "'"))
	}
	return s
}

// kill ends a server at once.
func (s *servers) kill(server string) {
	s.t.Helper()
	var stacks []struct {
		Name    string
		Servers []struct {
			Name string
			PID  int
		}
	}
	if err := json.Unmarshal([]byte(s.hotsku("status", "--json")), &stacks); err != nil {
		s.t.Fatal(err)
	}
	for _, stack := range stacks {
		for _, found := range stack.Servers {
			if stack.Name != s.name || found.Name != server {
				continue
			}
			if err := syscall.Kill(found.PID, syscall.SIGKILL); err != nil {
				s.t.Fatalf("kill %s: %v", server, err)
			}
			eventually(s.t, server+" is gone", 10*time.Second, func() bool { return syscall.Kill(found.PID, 0) != nil })
			s.t.Logf("%s killed", server)
			return
		}
	}
	s.t.Fatalf("stack %s has no %s", s.name, server)
}

// restart starts again what was killed, with its data.
func (s *servers) restart() {
	s.t.Helper()
	s.hotsku("up", "--stack", s.name)
	s.t.Log("restarted")
}

func (s *servers) hotsku(args ...string) string {
	s.t.Helper()
	var errs strings.Builder
	cmd := exec.Command(hotsku, args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("hotsku %s: %v\n%s", strings.Join(args, " "), err, &errs)
	}
	return string(out)
}
