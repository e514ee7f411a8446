package loadgen_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotsku/hotsku/loadgen"
	"github.com/hotsku/hotsku/loadgen/wire"
)

// load runs cfg with test settings and checks what holds of every run.
func load(t *testing.T, ctx context.Context, cfg loadgen.Config) *loadgen.Result {
	t.Helper()
	cfg.HistoryDir = filepath.Join(t.TempDir(), "history")
	if cfg.NewSource == nil {
		cfg.NewSource = newPosts
	}
	cfg.Extract = numbered
	res, err := loadgen.Run(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	checkRun(t, res, cfg.HistoryDir)
	return res
}

func TestAnswersCutAnywhereReachTheirRequests(t *testing.T) {
	t.Parallel()
	addr := serve(t, func(c net.Conn) {
		rng := rand.New(rand.NewPCG(1, 2))
		r := bufio.NewReader(c)
		var out []byte
		for {
			n, err := readRequest(r)
			if err != nil {
				return
			}
			if n%3 == 0 {
				body := fmt.Sprint(n)
				out = fmt.Appendf(out, "HTTP/1.1 200 OK\r\ntransfer-ENCODING: chunked\r\n\r\n1\r\n%s\r\n", body[:1])
				if len(body) > 1 {
					out = fmt.Appendf(out, "%x\r\n%s\r\n", len(body)-1, body[1:])
				}
				out = append(out, "0\r\n\r\n"...)
			} else {
				out = append(out, answerTo(n, 200, "")...)
			}
			// Whatever is written now ends inside some answer, unless nothing
			// else is to come.
			for r.Buffered() == 0 && len(out) > 0 || len(out) > 200 {
				k := 1 + rng.IntN(min(len(out), 40))
				if _, err := c.Write(out[:k]); err != nil {
					return
				}
				out = out[k:]
			}
		}
	})
	res := load(t, t.Context(), loadgen.Config{Addrs: []string{addr}, Schedule: constant(t, 5000, time.Second), Conns: 4})
	if res.Completed != 5000 || res.Codes[2] != 5000 || res.Statuses[200] != 5000 {
		t.Errorf("%d completed, codes %v, statuses %v; want 5000 of 200", res.Completed, res.Codes, res.Statuses)
	}
}

func TestConnectionClosedMidPipelineFailsEachOutstandingOnce(t *testing.T) {
	t.Parallel()
	var s seen
	var answers atomic.Uint64
	addr := serve(t, func(c net.Conn) {
		r := bufio.NewReader(c)
		for i := 0; ; i++ {
			n, err := readRequest(r)
			if err != nil {
				return
			}
			s.add(n)
			if i >= 100 {
				return // with requests read, and others still in the socket
			}
			if _, err := io.WriteString(c, answerTo(n, 200, "")); err != nil {
				return
			}
			answers.Add(1)
		}
	})
	res := load(t, t.Context(), loadgen.Config{Addrs: []string{addr}, Schedule: constant(t, 10_000, time.Second), Conns: 4})
	if res.Failed == 0 || res.Completed == 0 || res.Dropped+res.TimedOut+res.Unfinished != 0 {
		t.Errorf("completed %d, failed %d, others %d; want only the first two", res.Completed, res.Failed, res.Scheduled-res.Completed-res.Failed)
	}
	if res.Completed > answers.Load() {
		t.Errorf("%d completed, but only %d answers were written", res.Completed, answers.Load())
	}
	if lost := res.Failures[wire.CauseClosed] + res.Failures[wire.CauseReset]; lost != res.Failed {
		t.Errorf("failures %v; want closed and reset only", res.Failures)
	}
	s.noneTwice(t)
}

func TestAnnouncedCloseIsHonoured(t *testing.T) {
	t.Parallel()
	var s seen
	addr := answering(t, &s, func(n uint64) (string, error) {
		return answerTo(n, 200, "Connection: Close\r\n"), io.EOF
	})
	res := load(t, t.Context(), loadgen.Config{Addrs: []string{addr}, Schedule: constant(t, 200, time.Second), Conns: 4, Depth: 1})
	if res.Completed != 200 {
		t.Errorf("%d of 200 completed at depth 1", res.Completed)
	}
	s.noneTwice(t)
}

func TestUnansweredRequestsTimeOutOnceAndStayInTheHistogram(t *testing.T) {
	t.Parallel()
	for _, depth := range []int{1, 8} {
		t.Run(fmt.Sprintf("depth %d", depth), func(t *testing.T) {
			t.Parallel()
			var s seen
			addr := answering(t, &s, func(n uint64) (string, error) {
				if n%10 == 3 {
					return "", nil
				}
				return answerTo(n, 200, ""), nil
			})
			const timeout = 700 * time.Millisecond
			res := load(t, t.Context(), loadgen.Config{
				Addrs: []string{addr}, Schedule: constant(t, 300, time.Second), Conns: 30, Depth: depth, Timeout: timeout,
			})
			if res.TimedOut < 30 || res.Unfinished+res.Dropped+res.Failed != 0 {
				t.Errorf("timed out %d, unfinished %d, dropped %d, failed %d; want at least 30 and nothing else",
					res.TimedOut, res.Unfinished, res.Dropped, res.Failed)
			}
			if depth == 1 && res.TimedOut != 30 {
				t.Errorf("timed out %d at depth 1, want exactly the 30 that were not answered", res.TimedOut)
			}
			if slow := countAbove(res, timeout); slow < int64(res.TimedOut) {
				t.Errorf("%d latencies of at least %v, want those of all %d that timed out", slow, timeout, res.TimedOut)
			}
			s.noneTwice(t)
		})
	}
}

// countAbove counts latencies of at least d, within the histogram's precision.
func countAbove(res *loadgen.Result, d time.Duration) (n int64) {
	for _, bar := range res.Latency.Distribution() {
		if bar.To >= int64(d) {
			n += bar.Count
		}
	}
	return n
}

func TestLateAnswersAreNotTakenForOthers(t *testing.T) {
	t.Parallel()
	var s seen
	addr := answering(t, &s, func(n uint64) (string, error) {
		if n == 50 {
			time.Sleep(400 * time.Millisecond) // beyond the timeout; what is behind it is answered in time or not
		}
		return answerTo(n, 200, ""), nil
	})
	res := load(t, t.Context(), loadgen.Config{
		Addrs: []string{addr}, Schedule: constant(t, 200, time.Second), Conns: 1, Timeout: 300 * time.Millisecond,
	})
	if res.TimedOut == 0 || res.Completed == 0 || res.Completed+res.TimedOut != 200 {
		t.Errorf("completed %d, timed out %d of 200", res.Completed, res.TimedOut)
	}
	s.noneTwice(t)
}

func TestRefusedAtTheStartSchedulesNothing(t *testing.T) {
	t.Parallel()
	ln, err := listen()
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	_ = ln.Close()
	res, err := loadgen.Run(t.Context(), loadgen.Config{
		Addrs: []string{addr}, Schedule: constant(t, 100, time.Second), NewSource: newPosts, ConnectWait: 50 * time.Millisecond,
	})
	if res != nil || !errors.Is(err, loadgen.ErrNoConnection) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("result %v, error %v; want ErrNoConnection saying refused", res, err)
	}
}

func TestRefusedThroughoutDropsEverything(t *testing.T) {
	t.Parallel()
	ln, err := listen()
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	_ = ln.Close()
	res := load(t, t.Context(), loadgen.Config{
		Addrs: []string{addr}, Schedule: constant(t, 1000, 300*time.Millisecond), ConnectWait: -1, CatchUp: -1,
	})
	if res.Dropped != 300 || res.Connections.Failed[wire.CauseRefused] == 0 {
		t.Errorf("dropped %d of 300, connections %+v", res.Dropped, res.Connections)
	}
}

func TestServerGoneMidRunKeepsTheTotals(t *testing.T) {
	t.Parallel()
	ln, err := listen()
	if err != nil {
		t.Fatal(err)
	}
	var s seen
	gone := make(chan struct{})
	ended := make(chan struct{}, 2)
	for range 2 {
		go func() {
			defer func() { ended <- struct{}{} }()
			c, err := ln.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			go func() { <-gone; _ = c.Close() }()
			for r := bufio.NewReader(c); ; {
				n, err := readRequest(r)
				if err != nil {
					return
				}
				s.add(n)
				if n == 500 {
					_ = ln.Close()
					close(gone)
				}
				if _, err := io.WriteString(c, answerTo(n, 200, "")); err != nil {
					return
				}
			}
		}()
	}
	res := load(t, t.Context(), loadgen.Config{
		Addrs: []string{ln.Addr().String()}, Schedule: constant(t, 1000, time.Second), Conns: 2, CatchUp: 50 * time.Millisecond,
	})
	<-ended
	<-ended
	if res.Completed == 0 || res.Dropped == 0 || res.Connections.Failed[wire.CauseRefused] == 0 {
		t.Errorf("completed %d, dropped %d, connections %+v; want some of each", res.Completed, res.Dropped, res.Connections)
	}
	s.noneTwice(t)
}

func TestErrorAnswersAreCompleted(t *testing.T) {
	t.Parallel()
	var s seen
	addr := answering(t, &s, func(n uint64) (string, error) { return answerTo(n, 503, "Retry-After: 1\r\n"), nil })
	res := load(t, t.Context(), loadgen.Config{
		Addrs: []string{addr}, Schedule: constant(t, 1000, 500*time.Millisecond), Conns: 4, Accepted: []uint8{2},
	})
	if res.Completed != 500 || res.Statuses[503] != 500 || res.Codes[5] != 500 || res.Accepted.TotalCount() != 0 {
		t.Errorf("completed %d, statuses %v, codes %v, accepted %d", res.Completed, res.Statuses, res.Codes, res.Accepted.TotalCount())
	}
}

func TestNonsenseFailsAsMalformed(t *testing.T) {
	t.Parallel()
	var s seen
	addr := answering(t, &s, func(n uint64) (string, error) { return "220 smtp ready\r\n", nil })
	res := load(t, t.Context(), loadgen.Config{Addrs: []string{addr}, Schedule: constant(t, 100, 200*time.Millisecond), Conns: 2})
	if res.Failures[wire.CauseMalformed] == 0 || res.Completed != 0 {
		t.Errorf("completed %d, failures %v; want malformed", res.Completed, res.Failures)
	}
	s.noneTwice(t)
}

func TestAServerThatNeverAnswersLeavesUnfinished(t *testing.T) {
	t.Parallel()
	var s seen
	addr := answering(t, &s, func(uint64) (string, error) { return "", nil })
	res := load(t, t.Context(), loadgen.Config{
		Addrs: []string{addr}, Schedule: constant(t, 200, 200*time.Millisecond), Conns: 2, Grace: 50 * time.Millisecond,
	})
	if res.Unfinished != 40 {
		t.Errorf("unfinished %d, want all 40", res.Unfinished)
	}
}

func TestConnectionLostWithSomeGivenUpEndsTheOthersOnce(t *testing.T) {
	t.Parallel()
	var s seen
	addr := serve(t, func(c net.Conn) {
		r := bufio.NewReader(c)
		for first := true; ; first = false {
			n, err := readRequest(r)
			if err != nil {
				return
			}
			s.add(n)
			if first {
				time.AfterFunc(450*time.Millisecond, func() { _ = c.Close() })
			}
		}
	})
	res := load(t, t.Context(), loadgen.Config{
		Addrs: []string{addr}, Schedule: constant(t, 20, time.Second), Conns: 1, Timeout: 300 * time.Millisecond,
	})
	if res.TimedOut == 0 || res.Failed == 0 || res.TimedOut+res.Failed != 20 {
		t.Errorf("timed out %d, failed %d of 20; want some of each", res.TimedOut, res.Failed)
	}
	s.noneTwice(t)
}
