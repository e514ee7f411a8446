package wire

import (
	"bufio"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ends is a Sink that tells a test what happened, in order.
type ends struct {
	mu     sync.Mutex
	events chan string
}

func (e *ends) Begin()  { e.mu.Lock() }
func (e *ends) End(int) { e.mu.Unlock() }
func (e *ends) Answered(r *Request, _ int64, resp *Response) {
	e.events <- fmt.Sprintf("%d answered %d", r.N, resp.Status)
}
func (e *ends) Failed(r *Request, _ int64, c Cause) { e.events <- fmt.Sprintf("%d failed %v", r.N, c) }
func (e *ends) TimedOut(r *Request, _ int64)        { e.events <- fmt.Sprintf("%d timed out", r.N) }
func (e *ends) Unfinished(r *Request, _ int64)      { e.events <- fmt.Sprintf("%d unfinished", r.N) }

func (e *ends) want(t *testing.T, events ...string) {
	t.Helper()
	for _, want := range events {
		select {
		case got := <-e.events:
			if got != want {
				t.Errorf("%q happened, want %q", got, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%q did not happen", want)
		}
	}
}

// gets fills in requests numbered from 0.
type gets struct{ next uint64 }

func (g *gets) Sent(*Request) {}
func (g *gets) Fill(dst []byte, r *Request) []byte {
	r.N = g.next
	g.next++
	return append(dst, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"...)
}

// bundle is a slot on a manual clock with the server's end of its connection.
type bundle struct {
	*Conn
	ends   *ends
	fill   *gets
	clock  *atomic.Int64
	server net.Conn
	accept func() net.Conn
}

func setup(t *testing.T) bundle {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := bundle{ends: &ends{events: make(chan string, 100)}, fill: &gets{}, clock: new(atomic.Int64)}
	b.accept = func() net.Conn {
		c, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	poller, err := NewPoller()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := poller.Close(); err != nil {
			t.Error(err)
		}
	})
	cfg := Config{Depth: 4, Timeout: time.Second, DialTimeout: time.Second, Now: b.clock.Load, Poller: poller}
	if b.Conn, err = Open(ln.Addr().String(), cfg, b.ends); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close(); _ = ln.Close() })
	b.server = b.accept()
	b.until(t, "up", b.Up)
	return b
}

// until waits for a state that no event announces.
func (b *bundle) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the connection is not %s", what)
		}
	}
}

func (b *bundle) write(t *testing.T, s string) {
	t.Helper()
	if _, err := b.server.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

func TestAConnectionBehindATimedOutRequestTakesNoMoreUntilItsAnswerCame(t *testing.T) {
	b := setup(t)
	b.Offer(1, b.fill)
	b.clock.Store(int64(500 * time.Millisecond))
	b.Offer(1, b.fill)
	if got := b.Room(); got != 2 {
		t.Fatalf("room for %d behind two requests, want 2", got)
	}
	b.clock.Store(int64(1200 * time.Millisecond))
	b.Sweep(b.clock.Load())
	b.ends.want(t, "0 timed out")
	b.until(t, "blocked", func() bool { return b.Room() == 0 })
	if got := b.Outstanding(); got != 1 {
		t.Errorf("%d outstanding, want 1", got)
	}
	b.write(t, ok+ok) // the first too late
	b.ends.want(t, "1 answered 200")
	b.until(t, "free again", func() bool { return b.Room() == 4 })
}

func TestAConnectionWhoseRequestsAllTimedOutIsReplaced(t *testing.T) {
	b := setup(t)
	b.Offer(2, b.fill)
	b.clock.Store(int64(time.Second))
	b.Sweep(b.clock.Load())
	b.ends.want(t, "0 timed out", "1 timed out")
	b.server = b.accept()
	b.until(t, "up again", func() bool { b.Reclaim(nil); return b.Room() == 4 })
	if st := b.Stats(); st.Opened != 2 || st.Lost[CauseExpired] != 1 {
		t.Errorf("stats %+v, want 2 opened and 1 expired", st)
	}
}

func TestAnAnswerNobodyAskedForEndsTheConnection(t *testing.T) {
	b := setup(t)
	b.Offer(1, b.fill)
	b.write(t, ok+ok)
	b.ends.want(t, "0 answered 200")
	b.until(t, "ended", func() bool { return b.Stats().Lost[CauseMalformed] == 1 })
}

func TestCausesOfLostRequestsAreToldApart(t *testing.T) {
	for _, tc := range []struct {
		name string
		end  func(*bundle)
		want string
	}{
		{"closed", func(b *bundle) {
			_, _ = bufio.NewReader(b.server).ReadString('\n')
			_ = b.server.(*net.TCPConn).CloseWrite()
		}, "0 failed closed"},
		{"reset", func(b *bundle) {
			_ = b.server.(*net.TCPConn).SetLinger(0)
			_ = b.server.Close()
		}, "0 failed reset"},
		{"unfinished", func(b *bundle) { b.Close() }, "0 unfinished"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := setup(t)
			b.Offer(1, b.fill)
			tc.end(&b)
			b.ends.want(t, tc.want)
		})
	}
}

// The end of a stream is seen although nothing follows it: a request sent
// after it would be lost.
func TestAnEndThatComesWithAnAnswerIsNoticed(t *testing.T) {
	b := setup(t)
	b.Offer(1, b.fill)
	if _, err := bufio.NewReader(b.server).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	b.write(t, ok)
	_ = b.server.Close()
	b.ends.want(t, "0 answered 200")
	b.server = b.accept()
	b.until(t, "up again", func() bool { b.Reclaim(nil); return b.Room() == 4 })
	st := b.Stats()
	if lost := st.Lost[CauseClosed] + st.Lost[CauseReset]; lost != 1 { // reset: the rest of the request was not read
		t.Errorf("stats %+v, want 1 closed", st)
	}
}

// An event of a connection that is gone is not taken for its successor's end.
func TestEventsOfAnEarlierConnectionDoNoHarm(t *testing.T) {
	b := setup(t)
	_ = b.server.Close()
	b.server = b.accept()
	b.until(t, "up again", func() bool { b.Reclaim(nil); return b.Room() == 4 })
	b.Offer(1, b.fill)
	b.write(t, ok)
	b.ends.want(t, "0 answered 200")
	b.readable(make([]byte, 10)) // an event of the first connection
	if st := b.Stats(); st.Lost[CauseClosed] != 1 || !b.Up() {
		t.Errorf("stats %+v, want one connection lost and its successor up", st)
	}
}
