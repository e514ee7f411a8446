package verify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// Issue 7: a run of 3 million records is verified in under 20 s and 1 GiB.
const (
	largeRecords    = 3_000_000
	memoryMostBytes = 1 << 30
)

// judgeOnlyEnv names a folder that this program judges, in place of its tests:
// so that its memory is that of judging, and not of making the folder.
const judgeOnlyEnv = "HOTSKU_JUDGE_ONLY"

func TestMain(m *testing.M) {
	dir := os.Getenv(judgeOnlyEnv)
	if dir == "" {
		debug.SetGCPercent(400) // hundreds of folders are made and judged, and each is soon forgotten
		os.Exit(m.Run())
	}
	run, err := Judge(context.Background(), rundir.Dir(dir))
	status, serr := os.ReadFile("/proc/self/status")
	if err := errors.Join(err, serr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(ExitInconclusive)
	}
	fmt.Fprintln(os.Stderr, strings.Join(run.Reasons, "\n"))
	_, peak, _ := strings.Cut(string(status), "VmHWM:") // the usage that a parent is told has the parent's in it
	fmt.Println(strings.Fields(peak)[0])
	os.Exit(run.ExitCode)
}

// BenchmarkVerifyThreeMillion judges a sale of 10,000 units under 3 million
// requests, in a process of its own, whose memory must stay below 1 GiB.
func BenchmarkVerifyThreeMillion(b *testing.B) {
	dir := rundir.Dir(b.TempDir())
	w := simulate(options{seed: 3, stock: 10_000, requests: 60_000, repeat: 100, conflict: 5, sameUser: 10, step: 3_333})
	w.grow(largeRecords)
	w.write(b, dir)
	w = nil
	most, cpu := int64(0), time.Duration(0)
	for b.Loop() {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), judgeOnlyEnv+"="+string(dir))
		out, err := cmd.Output()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			b.Fatalf("%v: %s", err, exit.Stderr)
		}
		kib, perr := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
		if err := errors.Join(err, perr); err != nil {
			b.Fatal(err)
		}
		most, cpu = max(most, kib<<10), cpu+cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()
	}
	b.ReportMetric(float64(most)/(1<<20), "MiB")
	b.ReportMetric(cpu.Seconds()/float64(b.N), "cpu-s/op")
	if most > memoryMostBytes {
		b.Errorf("judging took %d bytes, must be %d at most", most, memoryMostBytes)
	}
}

// grow adds requests that come after the sale: refused, or told again.
func (w *world) grow(to int64) {
	rng := rand.New(rand.NewPCG(9, 9))
	step := int64(3_333)
	for n := uint64(w.plan.Load.Scheduled); n < uint64(to); n++ {
		pick := w.plan.Workload.Pick(n)
		r := history.Record{N: n, Subject: uint64(pick.User), Ordinal: pick.Ordinal, Intended: int64(n) * step, Outcome: history.Completed}
		r.Sent = r.Intended + rng.Int64N(100_000)
		r.Done = r.Sent + 100_000 + rng.Int64N(5_000_000)
		code, id := seckill.CodeSoldOut, ""
		if held := w.byReq[pick.Ordinal]; held != nil && held.user == pick.User {
			code, id = seckill.CodeQueued, held.id
		} else if held != nil {
			code = seckill.CodeIdempotencyConflict
		} else if held := w.byUser[pick.User]; held != nil {
			code, id = seckill.CodeDuplicateUser, held.id
		}
		if tag, ok := seckill.ReservationTag([]byte(id)); ok {
			r.Tag = tag
		}
		r.Code, r.Status = uint8(code), uint16(code.HTTPStatus())
		w.records = append(w.records, r)
	}
	w.plan.Load.Scheduled = to
}
