package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/hotsku/hotsku/stack"
)

// mainEnv makes the test binary be hotsku, for tests that send it signals.
const mainEnv = "HOTSKU_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		main()
	}
	os.Exit(m.Run())
}

// hotsku runs a command line within the test.
func hotsku(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errs)
	code = run(ctx, root)
	return code, out.String(), errs.String()
}

// process is hotsku as a process of its own, to be started.
func process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), mainEnv+"=1")
	return cmd
}

// binDir is where `make build` leaves the product.
func binDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// stateFolder is one that the database's user can reach, for this test alone.
func stateFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hotsku-cmd-test-")
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

// nothingIsLeft checks that this process has no child and state no stack.
func nothingIsLeft(t *testing.T, state string) {
	t.Helper()
	if stacks, err := stack.List(state); err != nil || len(stacks) > 0 {
		t.Errorf("stacks are left: %+v, %v", stacks, err)
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
