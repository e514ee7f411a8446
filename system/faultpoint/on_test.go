//go:build chaos

package faultpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hotsku/hotsku/system/seckill"
)

// The points act in a process of their own: this test binary, told by the
// environment what to arm and how often to reach a point.
const (
	envSpecs = "FAULTPOINT_TEST_SPECS"
	envFile  = "FAULTPOINT_TEST_FILE"
	envHits  = "FAULTPOINT_TEST_HITS"
)

func TestMain(m *testing.M) {
	if specs, ok := os.LookupEnv(envSpecs); ok {
		if err := reach(strings.Fields(specs), os.Getenv(envFile), os.Getenv(envHits)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// reach arms, then reaches access.after-reserve as often as told, from
// several goroutines, and another point beside it.
func reach(specs []string, file, hits string) error {
	n, err := strconv.Atoi(hits)
	if err != nil {
		return err
	}
	if err := Arm(specs, file); err != nil {
		return err
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range n / 4 {
				Hit(seckill.FaultAccessBeforeReserve)
				Hit(seckill.FaultAccessAfterReserve)
			}
		})
	}
	wg.Wait()
	return nil
}

func run(t *testing.T, specs string, hits int) (state *os.ProcessState, pid int, noted []seckill.FaultHit, stderr string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hits")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envSpecs+"="+specs, envFile+"="+file, envHits+"="+strconv.Itoa(hits))
	var errs strings.Builder
	cmd.Stderr = &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	body, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(body)) {
		var h seckill.FaultHit
		if err := json.Unmarshal([]byte(line), &h); err != nil || !strings.HasSuffix(line, "\n") {
			t.Fatalf("hit file line %q: %v", line, err)
		}
		noted = append(noted, h)
	}
	return cmd.ProcessState, cmd.Process.Pid, noted, errs.String()
}

func killed(s *os.ProcessState) bool {
	return s.Sys().(syscall.WaitStatus).Signaled() && s.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

// R7.10: the process is killed by SIGKILL at the N-th hit, and the file holds
// the line, whole, although nobody lived to close it.
func TestAKillLeavesItsLine(t *testing.T) {
	state, pid, noted, stderr := run(t, "access.after-reserve=kill@17", 400)
	if !killed(state) {
		t.Fatalf("ended by %v: %s", state, stderr)
	}
	if len(noted) != 1 {
		t.Fatalf("noted %+v, want one hit", noted)
	}
	h := noted[0]
	if h.Point != seckill.FaultAccessAfterReserve || h.Count != 17 || h.Action != "kill" || h.PID != pid {
		t.Errorf("noted %+v of process %d", h, pid)
	}
	if at, err := time.Parse(time.RFC3339Nano, h.At); err != nil || time.Since(at).Abs() > time.Minute {
		t.Errorf("at %q", h.At)
	}
}

func TestAPointThatIsNotReachedOftenEnoughDoesNothing(t *testing.T) {
	state, _, noted, stderr := run(t, "access.after-reserve=kill@401", 400)
	if !state.Success() || len(noted) != 0 {
		t.Errorf("ended by %v with %+v: %s", state, noted, stderr)
	}
}

func TestADelayIsNotedOnce(t *testing.T) {
	state, _, noted, stderr := run(t, "access.after-reserve=delay:1ms@5", 40)
	if !state.Success() || len(noted) != 1 || noted[0].Action != "delay" || noted[0].Count != 5 {
		t.Errorf("ended by %v with %+v: %s", state, noted, stderr)
	}
}

func TestSeveralPointsAreCountedApart(t *testing.T) {
	state, _, noted, stderr := run(t, "access.before-reserve=delay:1ns@2 access.after-reserve=kill@30", 400)
	if !killed(state) || len(noted) != 2 || noted[0].Point != seckill.FaultAccessBeforeReserve || noted[0].Count != 2 || noted[1].Count != 30 {
		t.Errorf("ended by %v with %+v: %s", state, noted, stderr)
	}
}

func TestArmRefuses(t *testing.T) {
	for specs, hint := range map[string]string{
		"access.after-reserve=kill access.after-reserve=delay:1s": "armed twice",
		"access.after-reserve=sleep":                              "must be kill or delay",
	} {
		if state, _, noted, stderr := run(t, specs, 4); state.ExitCode() != 3 || !strings.Contains(stderr, hint) || len(noted) > 0 {
			t.Errorf("%q: ended by %v: %s", specs, state, stderr)
		}
	}
	if err := Arm([]string{"access.after-reserve=kill"}, ""); err == nil || !strings.Contains(err.Error(), "--faultpoint-file") {
		t.Errorf("armed without a file: %v", err)
	}
	if err := Arm([]string{"access.after-reserve=kill"}, t.TempDir()); err == nil {
		t.Error("armed with a folder for a file")
	}
	if err := Arm(nil, ""); err != nil {
		t.Errorf("nothing to arm: %v", err)
	}
	if !Enabled {
		t.Error("not Enabled in a chaos build")
	}
	Hit(seckill.FaultAccessAfterReserve) // not armed: nothing happens
}
