package proc_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hotsku/hotsku/stack/proc"
	"go.uber.org/goleak"
)

// hang is far above what any step here takes.
const hang = 20 * time.Second

// ownerEnv makes the test binary play a parent that is killed: it starts a child, prints its identity and
// waits.
const ownerEnv = "HOTSKU_PROC_TEST_OWNER_LOG"

func TestMain(m *testing.M) {
	if log := os.Getenv(ownerEnv); log != "" {
		p, err := proc.Start(shell("child", log, "exec sleep 300"))
		if err == nil {
			err = json.NewEncoder(os.Stdout).Encode(p.Identity())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		select {}
	}
	goleak.VerifyTestMain(m)
}

func shell(name, log, script string) proc.Spec {
	return proc.Spec{Name: name, Path: "/bin/sh", Args: []string{"-c", script}, LogPath: log}
}

func start(t *testing.T, spec proc.Spec) *proc.Process {
	t.Helper()
	if spec.LogPath == "" {
		spec.LogPath = filepath.Join(t.TempDir(), "log")
	}
	p, err := proc.Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func wait(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(hang):
		t.Fatal("the process does not end")
	}
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	t.Cleanup(cancel)
	return ctx
}

// readyLine is ready at the line the product's roles print.
func readyLine(line []byte) bool {
	var r struct{ Role string }
	return json.Unmarshal(line, &r) == nil && r.Role != ""
}

func TestReadyAtTheFirstLineThatIsAccepted(t *testing.T) {
	spec := shell("role", "", `echo noise; printf '{"role":'; printf '"access"}\r\n'; echo later; exec sleep 300`)
	var seen []string
	spec.Ready = func(line []byte) bool {
		seen = append(seen, string(line))
		return readyLine(line)
	}
	p := start(t, spec)
	if err := p.WaitReady(deadline(t)); err != nil {
		t.Fatal(err)
	}
	if want := []string{"noise", `{"role":"access"}`}; fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("lines shown: %q, want %q", seen, want)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(p.LogPath())
	if err != nil || !strings.Contains(string(log), "noise\n") || !strings.Contains(string(log), `{"role":"access"}`) {
		t.Errorf("log is %q (%v), want every line of stdout", log, err)
	}
}

func TestDeathBeforeReadyCitesTheLastLogLinesOfThisStart(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("of an earlier start\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := shell("role", log, "echo 'cannot bind' >&2; exit 3")
	spec.Ready = readyLine
	err := start(t, spec).WaitReady(deadline(t))
	var exit *proc.ExitError
	if !errors.As(err, &exit) || exit.State.Code != 3 {
		t.Fatalf("got %v, want an ExitError with code 3", err)
	}
	if s := err.Error(); !strings.Contains(s, "cannot bind") || !strings.Contains(s, log) ||
		strings.Contains(s, "earlier start") || strings.Contains(s, "\n") {
		t.Errorf("error %q: want one line with the last lines and the log's path", s)
	}
}

func TestWaitReadyEndsWithItsContext(t *testing.T) {
	spec := shell("role", "", "exec sleep 300")
	spec.Ready = readyLine
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("given up")
	cancel(cause)
	if err := start(t, spec).WaitReady(ctx); !errors.Is(err, cause) {
		t.Errorf("got %v, want the context's cause", err)
	}
}

func TestExitState(t *testing.T) {
	for _, c := range []struct {
		name, script string
		code         int
		signal       syscall.Signal
	}{
		{"exit code", "exit 7", 7, 0},
		{"signal", "kill -TERM $$", -1, syscall.SIGTERM},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := start(t, shell("p", "", c.script))
			wait(t, p.Done())
			if e, ended := p.ExitState(); !ended || e.Code != c.code || e.Signal != c.signal {
				t.Errorf("got %+v %v", e, ended)
			}
		})
	}
}

func TestExitStateCountsTheCPUTimeOfChildrenToo(t *testing.T) {
	p := start(t, shell("p", "", "/bin/sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; exit 0"))
	wait(t, p.Done())
	e, _ := p.ExitState()
	if e.User <= 0 || e.MaxRSSBytes <= 0 {
		t.Errorf("got %+v, want CPU time and memory", e)
	}
	if u, err := p.Usage(); err != nil || u.User != e.User || u.System != e.System {
		t.Errorf("Usage after the end is %+v, %v; want that of %+v", u, err, e)
	}
}

func TestStopGivesGraceThenKills(t *testing.T) {
	t.Run("one that obeys", func(t *testing.T) {
		spec := shell("p", "", `trap 'exit 5' TERM; echo '{"role":"x"}'; while :; do sleep 0.01; done`)
		spec.Ready = readyLine
		p := start(t, spec)
		if err := p.WaitReady(deadline(t)); err != nil {
			t.Fatal(err)
		}
		if err := p.Stop(t.Context(), hang); err != nil {
			t.Fatal(err)
		}
		if e, _ := p.ExitState(); e.Code != 5 {
			t.Errorf("ended by %v, want its own handler", e)
		}
		if err := p.Stop(t.Context(), hang); err != nil {
			t.Errorf("second Stop: %v", err)
		}
	})
	t.Run("one that is paused obeys too", func(t *testing.T) {
		p := start(t, shell("p", "", "exec sleep 300"))
		if err := p.Pause(); err != nil {
			t.Fatal(err)
		}
		if err := p.Stop(t.Context(), hang); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("one that does not", func(t *testing.T) {
		spec := shell("p", "", `trap '' TERM; echo '{"role":"x"}'; while :; do sleep 0.01; done`)
		spec.Ready = readyLine
		p := start(t, spec)
		if err := p.WaitReady(deadline(t)); err != nil {
			t.Fatal(err)
		}
		if err := p.Stop(t.Context(), time.Millisecond); err == nil {
			t.Error("no error for a process that had to be killed")
		}
		if e, _ := p.ExitState(); e.Signal != syscall.SIGKILL {
			t.Errorf("ended by %v, want SIGKILL", e)
		}
	})
}

// family starts a parent with a child that leads its own process group, as PostgreSQL's backends do.
func family(t *testing.T) (*proc.Process, proc.Identity) {
	t.Helper()
	spec := shell("parent", "", "setsid sh -c 'echo {\\\"role\\\":\\\"$$\\\"}; exec sleep 300' & wait")
	var child int
	spec.Ready = func(line []byte) bool {
		_, err := fmt.Sscanf(string(line), `{"role":"%d"}`, &child)
		return err == nil
	}
	p := start(t, spec)
	if err := p.WaitReady(deadline(t)); err != nil {
		t.Fatal(err)
	}
	id, err := proc.Identify(child)
	if err != nil {
		t.Fatal(err)
	}
	return p, id
}

func TestKillTakesDescendantsOfOtherProcessGroupsAlong(t *testing.T) {
	p, child := family(t)
	c, err := proc.Attach("child", child, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	wait(t, c.Done())
	if e, _ := p.ExitState(); e.Signal != syscall.SIGKILL {
		t.Errorf("parent ended by %v", e)
	}
}

func TestPauseFreezesDescendantsUntilResume(t *testing.T) {
	p, child := family(t)
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{p.PID(), child.PID} {
		if s := state(t, pid); s != "T" {
			t.Errorf("state of %d after Pause is %s, want T", pid, s)
		}
	}
	if err := p.Resume(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{p.PID(), child.PID} {
		if s := state(t, pid); s == "T" {
			t.Errorf("%d is still frozen after Resume", pid)
		}
	}
}

func state(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))[0]
}

func TestEndedProcessRefusesSignals(t *testing.T) {
	p := start(t, shell("p", "", "exit 0"))
	wait(t, p.Done())
	for name, f := range map[string]func() error{
		"Pause": p.Pause, "Resume": p.Resume,
		"Signal": func() error { return p.Signal(syscall.SIGUSR1) },
	} {
		if err := f(); !errors.Is(err, proc.ErrGone) {
			t.Errorf("%s: got %v, want ErrGone", name, err)
		}
	}
	if err := p.Kill(); err != nil {
		t.Errorf("Kill: %v", err)
	}
	if _, err := proc.Attach("p", p.Identity(), ""); !errors.Is(err, proc.ErrGone) {
		t.Errorf("Attach: got %v, want ErrGone", err)
	}
}

func TestAnotherProcessWithTheSamePIDIsNotMeant(t *testing.T) {
	p := start(t, shell("p", "", "exec sleep 300"))
	for name, change := range map[string]func(*proc.Identity){
		"start time": func(id *proc.Identity) { id.Start++ },
		"boot":       func(id *proc.Identity) { id.Boot = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			id := p.Identity()
			change(&id)
			if id.Alive() {
				t.Error("taken for alive")
			}
			if err := id.Kill(); err != nil {
				t.Error(err)
			}
			if _, err := proc.Attach("p", id, ""); !errors.Is(err, proc.ErrGone) {
				t.Errorf("Attach: got %v, want ErrGone", err)
			}
		})
	}
	if !p.Identity().Alive() {
		t.Error("the process was harmed")
	}
}

func TestReleasedProcessGoesOnUnwatched(t *testing.T) {
	p := start(t, shell("p", "", "exec sleep 300"))
	for range 3 {
		a, err := proc.Attach("p", p.Identity(), p.LogPath())
		if err != nil {
			t.Fatal(err)
		}
		a.Release()
		a.Release()
	}
	if !p.Identity().Alive() {
		t.Error("it ended")
	}
}

func TestChildDiesWithAKilledParent(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), ownerEnv+"="+filepath.Join(t.TempDir(), "log"))
	parent.Stderr = os.Stderr
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var id proc.Identity
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &id)
	}
	if err != nil {
		t.Fatal(err)
	}
	child, err := proc.Attach("child", id, "")
	if err != nil {
		t.Fatal(err)
	}
	defer child.Release()
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	wait(t, child.Done())
	_ = parent.Wait() // it was killed
}

func TestStartRefuses(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	for _, c := range []struct {
		name string
		spec proc.Spec
	}{
		{"no name", proc.Spec{Path: "/bin/true", LogPath: log}},
		{"no path", proc.Spec{Name: "p", LogPath: log}},
		{"no log", proc.Spec{Name: "p", Path: "/bin/true"}},
		{"no such binary", proc.Spec{Name: "p", Path: "/nonexistent", LogPath: log}},
		{"no such log folder", proc.Spec{Name: "p", Path: "/bin/true", LogPath: "/nonexistent/log"}},
		{"ready line of a detached process", proc.Spec{Name: "p", Path: "/bin/true", LogPath: log, Detached: true, Ready: readyLine}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if p, err := proc.Start(c.spec); err == nil {
				_ = p.Kill()
				t.Error("started")
			}
		})
	}
}
