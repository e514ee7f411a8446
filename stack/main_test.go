package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hotsku/hotsku/stack/proc"
	"go.uber.org/goleak"
)

// hang is far above what any step here takes, even on busy cores.
const hang = 2 * time.Minute

// The test binary plays another process of hotsku: helperEnv names what it does, baseEnv where.
const (
	helperEnv  = "HOTSKU_STACK_TEST_HELPER"
	baseEnv    = "HOTSKU_STACK_TEST_BASE"
	helperOwn  = "own"  // brings an owned stack up, prints its Info and waits to be killed
	helperKeep = "keep" // brings the kept stack "kept" up, prints its Info and ends
)

func TestMain(m *testing.M) {
	if role := os.Getenv(helperEnv); role != "" {
		if err := helper(role, os.Getenv(baseEnv)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func helper(role, base string) error {
	var err error
	switch role {
	case helperOwn:
		_, err = Up(context.Background(), Options{Base: base})
	case helperKeep:
		_, _, err = UpKept(context.Background(), Options{Base: base, Name: "kept"})
	default:
		err = fmt.Errorf("no helper %q", role)
	}
	if err != nil {
		return err
	}
	infos, err := List(base)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(infos[0]); err != nil {
		return err
	}
	if role == helperOwn {
		select {}
	}
	return nil
}

// runHelper starts the helper and returns what it prints when its stack is up. It is killed at the end.
func runHelper(t *testing.T, role, base string) (*exec.Cmd, Info) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"="+role, baseEnv+"="+base)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	var info Info
	if err := json.NewDecoder(out).Decode(&info); err != nil {
		t.Fatalf("helper %s: %v", role, err)
	}
	return cmd, info
}

// testBase is a state folder that PostgreSQL's user can reach, which t.TempDir is not for root. Whatever
// a failed test leaves in it is ended.
func testBase(t *testing.T) string {
	t.Helper()
	base, err := os.MkdirTemp("", "hotsku-stack-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		locks, err := readLocks(base)
		for _, l := range locks {
			t.Errorf("stack %s is left", l.Name)
			err = errors.Join(err, demolish(base+"/"+l.Name, l))
		}
		if err := errors.Join(err, os.RemoveAll(base)); err != nil {
			t.Error(err)
		}
	})
	return base
}

func needServers(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts servers")
	}
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	t.Cleanup(cancel)
	return ctx
}

func up(t *testing.T, o Options) *Stack {
	t.Helper()
	needServers(t)
	s, err := Up(deadline(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { down(t, s) })
	return s
}

func down(t *testing.T, s *Stack) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	if err := s.Down(ctx); err != nil {
		t.Error(err)
	}
}

// wantNothingLeft checks that a stack that is gone left no process, listener, folder or shared memory.
func wantNothingLeft(t *testing.T, base string, l lock) {
	t.Helper()
	for name, id := range l.Children {
		if id.Alive() {
			t.Errorf("%s (pid %d) still runs", name, id.PID)
		}
	}
	if err := checkBlock(l.Ports); err != nil {
		t.Error(err)
	}
	wantEmpty(t, base)
	if segments := sharedMemory(t, l.Children); len(segments) > 0 {
		t.Errorf("shared memory is left: %q", segments)
	}
}

func wantEmpty(t *testing.T, base string) {
	t.Helper()
	entries, err := os.ReadDir(base)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != guardFile {
			t.Errorf("%s is left in the state folder", e.Name())
		}
	}
}

// sharedMemory returns the System V segments that one of these processes created.
func sharedMemory(t *testing.T, by map[string]proc.Identity) (lines []string) {
	t.Helper()
	b, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line) // key shmid perms size cpid ...
		for _, id := range by {
			if f[4] == strconv.Itoa(id.PID) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

func accepts(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, probeTimeout)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
