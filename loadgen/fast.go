package loadgen

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/hotsku/hotsku/loadgen/wire"
)

// fastLink is one connection of fasthttp's client, with one request in flight.
// A goroutine of its own makes the blocking call. It exists to compare: the
// schedule, the accounting and the histograms around it are the same.
type fastLink struct {
	cfg    wire.Config
	sink   wire.Sink
	client *fasthttp.HostClient
	work   chan struct{} // a request is in req; closed at the end
	done   chan struct{}
	cancel context.CancelFunc

	mu      sync.Mutex
	up      bool
	busy    bool
	closing bool
	conn    net.Conn // the last one dialed
	ready   net.Conn // dialed ahead, for the first request
	stats   wire.Stats
	dialErr error

	r    wire.Request // while busy the goroutine's, else the sender's
	raw  []byte
	src  bytes.Reader
	buf  *bufio.Reader
	req  fasthttp.Request
	resp fasthttp.Response
}

func openFast(addr string, cfg wire.Config, sink wire.Sink) *fastLink {
	ctx, cancel := context.WithCancel(context.Background())
	l := &fastLink{cfg: cfg, sink: sink, work: make(chan struct{}, 1), done: make(chan struct{}), cancel: cancel}
	l.buf = bufio.NewReader(&l.src)
	l.client = &fasthttp.HostClient{
		Addr: addr, IsTLS: cfg.TLS != nil, TLSConfig: cfg.TLS, MaxConns: 1,
		NoDefaultUserAgentHeader: true, DisableHeaderNamesNormalizing: true, DisablePathNormalizing: true,
		// Nothing is sent twice.
		MaxIdemponentCallAttempts: 1,
		RetryIfErr:                func(*fasthttp.Request, int, error) (bool, bool) { return false, false },
		Dial:                      func(addr string) (net.Conn, error) { return l.dial(ctx, addr) },
	}
	go l.run(ctx, addr)
	return l
}

// run opens a connection ahead of the first request, then sends what it is
// given.
func (l *fastLink) run(ctx context.Context, addr string) {
	defer close(l.done)
	if l.cfg.Hold != nil {
		select {
		case <-ctx.Done():
		case <-l.cfg.Hold:
		}
	}
	for backoff := wire.BackoffMin; ctx.Err() == nil; backoff = min(2*backoff, wire.BackoffMax) {
		conn, err := l.dial(ctx, addr)
		if err == nil {
			l.mu.Lock()
			l.ready, l.up = conn, true
			l.mu.Unlock()
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(backoff):
		}
	}
	for range l.work {
		err := l.client.DoTimeout(&l.req, &l.resp, l.cfg.Timeout)
		l.end(err)
	}
	l.client.CloseIdleConnections()
}

// dial opens a connection, or hands out the one opened ahead.
func (l *fastLink) dial(ctx context.Context, addr string) (net.Conn, error) {
	l.mu.Lock()
	if conn := l.ready; conn != nil {
		l.ready = nil
		l.mu.Unlock()
		return conn, nil
	}
	l.mu.Unlock()
	d := net.Dialer{Timeout: l.cfg.DialTimeout, KeepAlive: -1}
	conn, err := d.DialContext(ctx, "tcp", addr)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dialErr = err
	if err != nil {
		if !l.closing {
			l.stats.Failed[wire.CauseOf(err)]++
		}
		return nil, err
	}
	l.stats.Opened++
	l.conn = conn
	if l.closing {
		_ = conn.Close()
	}
	return conn, nil
}

// end reports what became of the request.
func (l *fastLink) end(err error) {
	now := l.cfg.Now()
	l.mu.Lock()
	closing := l.closing
	l.mu.Unlock()
	l.sink.Begin()
	switch {
	case err == nil:
		l.sink.Answered(&l.r, now, &wire.Response{Status: uint16(l.resp.StatusCode()), Body: l.resp.Body(), Length: int64(len(l.resp.Body()))})
	case closing:
		l.sink.Unfinished(&l.r, now)
	case errors.Is(err, fasthttp.ErrTimeout):
		l.sink.TimedOut(&l.r, now)
	case errors.Is(err, fasthttp.ErrConnectionClosed):
		l.sink.Failed(&l.r, now, wire.CauseClosed)
	default:
		l.sink.Failed(&l.r, now, wire.CauseOf(err))
	}
	l.sink.End(1)
	l.mu.Lock()
	l.busy = false
	l.mu.Unlock()
}

// Room implements link.
func (l *fastLink) Room() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.up || l.busy || l.closing {
		return 0
	}
	return 1
}

// Offer implements link. n is 1.
func (l *fastLink) Offer(_ int, f wire.Filler) {
	l.raw = f.Fill(l.raw[:0], &l.r)
	l.src.Reset(l.raw)
	l.buf.Reset(&l.src)
	l.req.Reset()
	l.resp.Reset()
	// A source makes whole requests; one that fasthttp cannot read is sent as
	// far as it was read, and the server will say so.
	_ = l.req.Read(l.buf)
	if l.client.IsTLS {
		l.req.URI().SetScheme("https")
	}
	l.r.Sent = l.cfg.Now()
	f.Sent(&l.r)
	l.mu.Lock()
	l.busy = true
	l.mu.Unlock()
	l.work <- struct{}{}
}

// Flush implements link.
func (l *fastLink) Flush(wire.Filler) bool { return true }

// Reclaim implements link.
func (l *fastLink) Reclaim(dst []wire.Request) []wire.Request { return dst }

// Sweep implements link: fasthttp keeps the timeout.
func (l *fastLink) Sweep(int64) {}

// Outstanding implements link.
func (l *fastLink) Outstanding() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy {
		return 1
	}
	return 0
}

// Up implements link.
func (l *fastLink) Up() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.up
}

// DialError implements link.
func (l *fastLink) DialError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dialErr
}

// Stats implements link.
func (l *fastLink) Stats() wire.Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats
}

// Close implements link.
func (l *fastLink) Close() {
	l.mu.Lock()
	if l.closing {
		l.mu.Unlock()
		<-l.done
		return
	}
	l.closing = true
	if l.conn != nil {
		_ = l.conn.Close() // ends a call that is waiting
	}
	l.mu.Unlock()
	l.cancel()
	close(l.work)
	<-l.done
}
