package systest

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// run starts a server that end ends with the test, and waits until it
// answers. Its log is shown if the test fails.
func run(t testing.TB, name string, cmd *exec.Cmd, end syscall.Signal, answers func() error) {
	t.Helper()
	log := filepath.Join(t.TempDir(), name+".log")
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v: run make setup", name, err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(end)
		<-ended
		if t.Failed() {
			text, _ := os.ReadFile(log)
			if i := max(0, len(text)-3000); i > 0 {
				text = text[i:]
			}
			t.Logf("%s said:\n%s", name, bytes.TrimSpace(text))
		}
	})
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		err := answers()
		if err == nil {
			return
		}
		select {
		case <-ended:
			t.Fatalf("%s ended: %v", name, cmd.ProcessState)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not answer: %v", name, err)
		}
	}
}

// port is one that nobody listens on now.
func port(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, p, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func writeFile(t testing.TB, path string, lines ...string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}
