package loadgen_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hotsku/hotsku/loadgen"
	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/loadgen/pace"
	"github.com/hotsku/hotsku/loadgen/wire"
)

// faster is a clock that runs ahead of the machine's, so that a schedule of
// half a minute is over in a second or two.
type faster struct {
	began time.Time
	times time.Duration
}

func (f faster) Now() time.Time        { return f.began.Add(time.Since(f.began) * f.times) }
func (f faster) Sleep(d time.Duration) { time.Sleep(d / f.times) }

// The counts that a rate divided among workers and rounded would miss.
func TestCountsAreExactEveryRun(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		rate  float64
		span  time.Duration
		times time.Duration
		runs  int
		want  uint64
	}{
		{5, 10 * time.Second, 1, 1, 50},
		{5, 10 * time.Second, 20, 5, 50},
		{30, 30 * time.Second, 30, 5, 900},
		{33.3, 30 * time.Second, 30, 2, 999},
	} {
		t.Run(fmt.Sprintf("%v for %v, %d times as fast", tc.rate, tc.span, tc.times), func(t *testing.T) {
			t.Parallel()
			for range tc.runs {
				var s seen
				addr := answering(t, &s, func(n uint64) (string, error) { return answerTo(n, 200, ""), nil })
				res := load(t, t.Context(), loadgen.Config{
					Addrs: []string{addr}, Schedule: constant(t, tc.rate, tc.span), Conns: 10, Depth: 1,
					Clock: faster{time.Now(), tc.times}, Timeout: time.Hour, CatchUp: time.Hour, Grace: time.Hour, ConnectWait: time.Hour,
				})
				if res.Completed != tc.want {
					t.Errorf("%d completed, want %d", res.Completed, tc.want)
				}
				s.noneTwice(t)
			}
		})
	}
}

func TestAServerStoppedForFourSecondsIsFeltInFull(t *testing.T) {
	t.Parallel()
	addr, pid := startBareServer(t)
	base := time.Now()
	var stopped, went time.Time
	signalled := make(chan error, 1)
	cfg := loadgen.Config{
		Addrs: []string{addr}, Schedule: constant(t, 500, 10*time.Second), Conns: 16, NewSource: newPosts, HistoryDir: t.TempDir(), Timeout: time.Minute,
		CatchUp: time.Minute, Grace: time.Minute,
		OnReady: func() {
			time.AfterFunc(3*time.Second, func() {
				err := syscall.Kill(pid, syscall.SIGSTOP)
				for err == nil && !standsStill(pid) {
					time.Sleep(time.Millisecond)
				}
				stopped = time.Now()
				time.Sleep(4 * time.Second)
				went = time.Now()
				if cont := syscall.Kill(pid, syscall.SIGCONT); err == nil {
					err = cont
				}
				signalled <- err
			})
		},
	}
	res, err := loadgen.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-signalled; err != nil {
		t.Fatal(err)
	}
	if res.Completed != 5000 || res.Latency.TotalCount() != 5000 {
		t.Fatalf("%d completed, %d samples; want 5000", res.Completed, res.Latency.TotalCount())
	}
	// Every request due while it stood still waits for its end. Those before
	// the last moment were due in turn, so the percentiles follow: of 10 s 40 %
	// wait from 0 to 4 s, and the 80th of 100 half of that.
	from, until := stopped.Sub(res.Started), went.Sub(res.Started)
	d, err := history.OpenDir(cfg.HistoryDir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	waited := 0
	var rec history.Record
	for err = d.Next(&rec); err == nil; err = d.Next(&rec) {
		if at := time.Duration(rec.Intended); at > from && at < until {
			waited++
			if rec.Done < int64(until) {
				t.Fatalf("request %d was due at %v and answered at %v, while the server stood still from %v to %v", rec.N, at, time.Duration(rec.Done), from, until)
			}
		}
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	stood := until - from
	p80, longest := time.Duration(res.Latency.ValueAtQuantile(80)), time.Duration(res.Latency.Max())
	if waited < 1900 || p80 < stood*45/100 || p80 > stood*75/100 || longest < stood*98/100 {
		t.Errorf("%d waited, P80 %v, max %v, the server stood still for %v of %v", waited, p80, longest, stood, time.Since(base))
	}
}

// standsStill says that every thread of a process has been stopped: the signal
// is taken when each of them would run again.
func standsStill(pid int) bool {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		if _, after, found := strings.Cut(string(stat), ") "); !found || after[0] != 'T' {
			return false
		}
	}
	return len(stats) > 0
}

func TestSubMillisecondPacingIsExactAndItsLagExplained(t *testing.T) {
	addr, _ := startBareServer(t)
	res := loadPosts(t, loadgen.Config{Addrs: []string{addr}, Schedule: constant(t, 30_000, 2*time.Second)})
	if res.Completed != 60_000 {
		t.Errorf("completed %d of %d, want 60000", res.Completed, res.Scheduled)
	}
	// A request waits at most for one wake-up, and for its turn in it: whatever
	// the machine does, the lag cannot be longer than two gaps between them.
	if lag, bound := time.Duration(res.SendLag.Max()), 2*res.Strain.Gap+res.ConnsFull+time.Millisecond; lag > bound {
		t.Errorf("send lag %v, but the sender was away for at most %v and connections were full for %v", lag, res.Strain.Gap, res.ConnsFull)
	}
}

// loadPosts runs against a server that does not know request numbers.
func loadPosts(t *testing.T, cfg loadgen.Config) *loadgen.Result {
	t.Helper()
	cfg.NewSource = newPosts
	res, err := loadgen.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestPortExhaustionIsNamed(t *testing.T) {
	t.Parallel()
	var s seen
	addr := answering(t, &s, func(n uint64) (string, error) { return answerTo(n, 200, ""), nil })
	first := uint16(40_000 + rand.IntN(20_000))
	res := load(t, t.Context(), loadgen.Config{
		Addrs: []string{addr}, Schedule: constant(t, 200, time.Second), Conns: 20, LocalPorts: [2]uint16{first, first + 5}, ConnectWait: 200 * time.Millisecond,
	})
	if res.Connections.Opened == 0 || res.Connections.Opened > 6 || res.Connections.Failed[wire.CausePorts] == 0 || res.Completed != 200 {
		t.Errorf("completed %d of 200 with six ports, connections %+v; want some connections, and %v", res.Completed, res.Connections, wire.CausePorts)
	}
}

func TestConnectionsOpenAlongTheRamp(t *testing.T) {
	t.Parallel()
	var s seen
	opened := make(chan time.Time, 100)
	addr := serve(t, func(c net.Conn) {
		opened <- time.Now()
		answer(c, &s)
	})
	res := load(t, t.Context(), loadgen.Config{
		Addrs: []string{addr}, Schedule: constant(t, 200, time.Second), Conns: 5, ConnRamp: time.Second,
	})
	if res.Completed != 200 || res.Connections.Opened != 5 {
		t.Errorf("completed %d of 200 on %d connections, want 5", res.Completed, res.Connections.Opened)
	}
	<-opened // before the start
	for i := 1; i < 5; i++ {
		if at := (<-opened).Sub(res.Started); at < time.Duration(i)*200*time.Millisecond {
			t.Errorf("connection %d opened at %v, before its turn", i, at)
		}
	}
}

func TestAShardOffersItsShareUnderTheWholesNumbers(t *testing.T) {
	t.Parallel()
	whole := constant(t, 301, time.Second)
	var s seen
	addr := answering(t, &s, func(n uint64) (string, error) { return answerTo(n, 200, ""), nil })
	for i := range 3 {
		shard, err := pace.NewShard(whole, i, 3)
		if err != nil {
			t.Fatal(err)
		}
		res := loadShard(t, loadgen.Config{Addrs: []string{addr}, Schedule: shard, Conns: 2, Extract: numbered})
		if res.Completed != shard.Total() {
			t.Errorf("shard %d: %d of %d completed", i, res.Completed, shard.Total())
		}
	}
	s.noneTwice(t)
	if len(s.times) != 301 {
		t.Errorf("%d requests were seen, want 301", len(s.times))
	}
}

func loadShard(t *testing.T, cfg loadgen.Config) *loadgen.Result {
	t.Helper()
	cfg.HistoryDir = t.TempDir()
	res := loadPosts(t, cfg)
	d, err := history.OpenDir(cfg.HistoryDir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var rec history.Record
	for err = d.Next(&rec); err == nil; err = d.Next(&rec) {
		if err := checkRecord(rec); err != nil {
			t.Errorf("request %d: %v", rec.N, err)
		}
	}
	return res
}

func TestEveryShapeIsOfferedExactly(t *testing.T) {
	t.Parallel()
	for _, shape := range []string{"ramp:0:2000:1s", "step:100:900:5:1s", "burst:1500:500ms:1s", "poisson:1000:1s", "sine:1000:1000:300ms:1s",
		"constant:500:500ms+burst:400:100ms:300ms,ramp:1000:0:500ms"} {
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			s, err := pace.Parse(shape, pace.Defaults{})
			if err != nil {
				t.Fatal(err)
			}
			var seen seen
			addr := answering(t, &seen, func(n uint64) (string, error) { return answerTo(n, 200, ""), nil })
			res := load(t, t.Context(), loadgen.Config{Addrs: []string{addr}, Schedule: s, Conns: 4, CatchUp: time.Minute})
			if res.Completed != s.Total() {
				t.Errorf("%d of %d completed", res.Completed, s.Total())
			}
			seen.noneTwice(t)
		})
	}
}

func TestFasthttpsClientIsCountedAlike(t *testing.T) {
	t.Parallel()
	var s seen
	addr := answering(t, &s, func(n uint64) (string, error) {
		switch n % 100 {
		case 3:
			return "", nil // never
		case 7:
			return "", io.EOF // closed instead of answered
		}
		return answerTo(n, 200, ""), nil
	})
	res := load(t, t.Context(), loadgen.Config{
		Addrs: []string{addr}, Schedule: constant(t, 500, time.Second), Conns: 20, Depth: 1, Client: loadgen.ClientFast, Timeout: 500 * time.Millisecond, Grace: time.Minute,
	})
	if res.Completed != 490 || res.TimedOut != 5 || res.Failed != 5 || res.Failures[wire.CauseClosed] != 5 {
		t.Errorf("completed %d, timed out %d, failed %d by %v; want 490, 5 and 5 closed", res.Completed, res.TimedOut, res.Failed, res.Failures)
	}
	s.noneTwice(t)
}
