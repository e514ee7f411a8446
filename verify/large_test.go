package verify

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

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
		os.Exit(m.Run())
	}
	run, err := Judge(context.Background(), rundir.Dir(dir))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(ExitInconclusive)
	}
	fmt.Print(strings.Join(run.Reasons, "\n"))
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
	most := int64(0)
	for b.Loop() {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), judgeOnlyEnv+"="+string(dir))
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		if !ok {
			b.Fatal("nobody says how much memory it took")
		}
		most = max(most, usage.Maxrss<<10)
	}
	b.ReportMetric(float64(most)/(1<<20), "MiB")
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
