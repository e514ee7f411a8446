//go:build !race

package loadgen_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/hotsku/hotsku/loadgen"
)

// The race detector makes a request thirty times as dear, so this test is run
// without it, by a line of its own in the Makefile.
func TestTwoMillionRequestsInFlatMemory(t *testing.T) {
	addr, _ := startBareServer(t)
	var early, late uint64 // heap in use
	sample := func(l loadgen.Live) {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if l.Completed < l.Scheduled/4 {
			early = max(early, m.HeapInuse)
		} else {
			late = max(late, m.HeapInuse)
		}
	}
	res := loadPosts(t, loadgen.Config{
		Addrs: []string{addr}, Schedule: constant(t, 500_000, 4*time.Second), HistoryDir: t.TempDir(), OnProgress: sample,
		CatchUp: 5 * time.Minute, Grace: 5 * time.Minute, Timeout: 5 * time.Minute,
	})
	if res.Completed != 2_000_000 || res.Latency.TotalCount() != 2_000_000 || res.SendLag.TotalCount() != 2_000_000 {
		t.Errorf("completed %d, samples %d, want 2000000", res.Completed, res.Latency.TotalCount())
	}
	if early == 0 || late > early+32<<20 {
		t.Errorf("heap %d MB in the first quarter, %d MB later: it grows", early>>20, late>>20)
	}
}
