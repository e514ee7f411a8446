package verify

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// BenchmarkVerifyThreeMillion judges a sale of 10,000 units under 3 million
// requests. Target: under 10 s and 1 GiB.
func BenchmarkVerifyThreeMillion(b *testing.B) {
	dir := rundir.Dir(b.TempDir())
	w := simulate(options{seed: 3, stock: 10_000, requests: 60_000, repeat: 100, conflict: 5, sameUser: 10, step: 3_333})
	w.grow(3_000_000)
	w.write(b, dir)
	w.records = nil
	b.ReportAllocs()
	for b.Loop() {
		run := judgeDir(b, dir)
		if run.ExitCode != ExitPass || run.Load.Scheduled != 3_000_000 {
			b.Fatalf("%q", run.Reasons)
		}
	}
	b.StopTimer()
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		b.Logf("%s", grep(status, "VmHWM"))
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

func grep(text []byte, word string) string {
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, word) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
