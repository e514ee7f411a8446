package loadgen_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotsku/hotsku/loadgen"
	"github.com/hotsku/hotsku/loadgen/history"
)

// bulky makes requests that fill socket buffers.
type bulky struct{}

func (b bulky) Append(dst []byte, n uint64) ([]byte, uint64, uint32) {
	dst = fmt.Appendf(dst, "POST / HTTP/1.1\r\nHost: x\r\nX-N: %d\r\nContent-Length: %d\r\n\r\n", n, 1<<20)
	return append(dst, make([]byte, 1<<20)...), n * 7, uint32(n)
}

func TestRequestsThatFindNoRoomInFullSocketsAreDropped(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	addr := serve(t, func(net.Conn) { <-release }) // reads nothing
	t.Cleanup(func() { close(release) })
	res := load(t, t.Context(), loadgen.Config{
		Addrs: []string{addr}, Schedule: constant(t, 500, 200*time.Millisecond), Conns: 2, NewSource: func() loadgen.Source { return bulky{} },
		CatchUp: 50 * time.Millisecond, Grace: 50 * time.Millisecond,
	})
	if res.Dropped == 0 || res.Unfinished == 0 || res.Dropped+res.Unfinished != 100 {
		t.Errorf("dropped %d, unfinished %d of 100; want some of each and nothing else", res.Dropped, res.Unfinished)
	}
}

func TestOverloadWaitsIsReportedAndIsDroppedAtItsLimit(t *testing.T) {
	t.Parallel()
	var s seen
	addr := answering(t, &s, func(n uint64) (string, error) {
		time.Sleep(100 * time.Millisecond) // the service time
		return answerTo(n, 200, ""), nil
	})
	res := load(t, t.Context(), loadgen.Config{
		Addrs: []string{addr}, Schedule: constant(t, 50, time.Second), Conns: 1, Depth: 1, CatchUp: 100 * time.Millisecond,
	})
	if res.Completed == 0 || res.Completed > 13 || res.Dropped != 50-res.Completed {
		t.Errorf("completed %d, dropped %d of 50; want 10 a second served and the rest dropped", res.Completed, res.Dropped)
	}
	if res.BacklogMax < 30 {
		t.Errorf("backlog %d, want about 40", res.BacklogMax)
	}
	if lag := loadgen.Summarize(res.SendLag); lag.Max < 500*time.Millisecond || res.ConnsFull < 800*time.Millisecond {
		t.Errorf("send lag %v, connections full %v; want the wait for the connection in both", lag.Max, res.ConnsFull)
	}
}

func TestInterruptedRunsAccountForEverything(t *testing.T) {
	t.Parallel()
	var s seen
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	addr := answering(t, &s, func(n uint64) (string, error) {
		if n == 300 {
			cancel(stop)
		}
		return answerTo(n, 200, ""), nil
	})
	res := load(t, ctx, loadgen.Config{Addrs: []string{addr}, Schedule: constant(t, 1000, time.Hour), Conns: 4})
	if !errors.Is(res.Interrupted, stop) {
		t.Errorf("interrupted: %v, want the cause of the context", res.Interrupted)
	}
	if res.Completed < 300 || res.Unrecorded == 0 || res.Completed+res.Dropped != res.Scheduled {
		t.Errorf("completed %d, dropped %d (%d unrecorded) of %d", res.Completed, res.Dropped, res.Unrecorded, res.Scheduled)
	}
}

func TestHistoryIsNeverOverwritten(t *testing.T) {
	t.Parallel()
	var s seen
	addr := answering(t, &s, func(n uint64) (string, error) { return answerTo(n, 200, ""), nil })
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, history.Name(0)), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := loadgen.Run(t.Context(), loadgen.Config{
		Addrs: []string{addr}, Schedule: constant(t, 100, time.Second), NewSource: newPosts, HistoryDir: dir,
	})
	if !errors.Is(err, os.ErrExist) || len(s.times) != 0 {
		t.Errorf("error %v, %d requests sent", err, len(s.times))
	}
}

// stalling is a clock whose sleeper oversleeps once.
type stalling struct {
	left  atomic.Int32
	stall time.Duration
}

func (*stalling) Now() time.Time { return time.Now() }
func (c *stalling) Sleep(d time.Duration) {
	if c.left.Add(-1) == 0 {
		d += c.stall
	}
	time.Sleep(d)
}

func TestAStalledGeneratorCatchesUpAndSaysSo(t *testing.T) {
	t.Parallel()
	var s seen
	addr := answering(t, &s, func(n uint64) (string, error) { return answerTo(n, 200, ""), nil })
	clock := &stalling{stall: 300 * time.Millisecond}
	res := load(t, t.Context(), loadgen.Config{
		Addrs: []string{addr}, Schedule: constant(t, 2000, time.Second), Conns: 4, Clock: clock,
		OnReady: func() { clock.left.Store(20) },
	})
	if res.Completed != 2000 {
		t.Errorf("completed %d of 2000", res.Completed)
	}
	if lag := loadgen.Summarize(res.SendLag); lag.Max < 295*time.Millisecond || res.BacklogMax < 500 {
		t.Errorf("send lag %v, backlog %d; want the stall in both", lag.Max, res.BacklogMax)
	}
	if all := loadgen.Summarize(res.Latency); all.Max < 295*time.Millisecond {
		t.Errorf("latency at most %v; it must run from the intended time", all.Max)
	}
	if res.ConnsFull > 0 {
		t.Errorf("connections full for %v; the stall was the generator's own", res.ConnsFull)
	}
	s.noneTwice(t)
}

func TestInterruptedBacklogIsDescribed(t *testing.T) {
	t.Parallel()
	var s seen
	ctx, cancel := context.WithCancel(t.Context())
	addr := answering(t, &s, func(n uint64) (string, error) {
		if n == 2 {
			cancel()
		}
		time.Sleep(50 * time.Millisecond) // while others become due
		return answerTo(n, 200, ""), nil
	})
	res := load(t, ctx, loadgen.Config{Addrs: []string{addr}, Schedule: constant(t, 1000, time.Hour), Conns: 1, Depth: 1})
	if described := res.Dropped - res.Unrecorded; described < 50 || described > 10_000 {
		t.Errorf("%d dropped requests are described; want those that were due, about 100", described)
	}
}
