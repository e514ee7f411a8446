package wire

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/bits"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Request is a request on its way. Times are nanoseconds on Config.Now.
type Request struct {
	N        uint64
	Subject  uint64
	Ordinal  uint32
	Intended int64
	Sent     int64 // just before the write that took its first byte

	start int // offset of its first byte in Conn.out
}

// Sink learns what became of each request of which at least one byte was
// written: exactly one of Answered, Failed, TimedOut and Unfinished is called
// for each. Calls come from the connection's goroutine, in batches between
// Begin and End, whose argument is the number of requests of the batch. The
// arguments must not be retained. done is on Config.Now.
type Sink interface {
	Begin()
	Answered(r *Request, done int64, resp *Response)
	Failed(r *Request, done int64, cause Cause)
	TimedOut(r *Request, done int64)
	Unfinished(r *Request, done int64)
	End(requests int)
}

// Reconnection backoff: doubled from the first to the last after each failed
// attempt in a row. A connection that answered something resets it.
const (
	BackoffMin = 5 * time.Millisecond
	BackoffMax = 250 * time.Millisecond
)

// Config is what connections share. The first five fields are required.
type Config struct {
	Depth       int           // requests in flight on one connection, at most
	Timeout     time.Duration // from a request's write until it is given up
	DialTimeout time.Duration // of one attempt, TLS handshake included
	Now         func() int64  // monotonic clock, ns; safe for concurrent use
	Poller      *Poller       // reads for plain connections; must outlive them

	// TLS makes the connections TLS ones; nil means plain TCP.
	TLS *tls.Config
	// Ports are the first and last local port to use; zero means the system's
	// range. It needs Linux 6.3.
	Ports [2]uint16
	// Hold, if set, keeps the first dial back until it is closed.
	Hold <-chan struct{}
}

// Stats counts what happened to a connection.
type Stats struct {
	Opened uint64             // successful attempts
	Failed [CauseCount]uint64 // unsuccessful attempts by cause
	Lost   [CauseCount]uint64 // established connections that ended, by cause
}

// Add adds t to s.
func (s *Stats) Add(t *Stats) {
	s.Opened += t.Opened
	for i := range s.Failed {
		s.Failed[i] += t.Failed[i]
		s.Lost[i] += t.Lost[i]
	}
}

// Conn is one connection slot: a connection and its successors. Offer, Flush
// and Reclaim belong to one sender; Sweep, Outstanding, Up, Stats and Close
// may be called by anyone.
type Conn struct {
	addr string
	cfg  Config
	sink Sink
	mask uint64

	// ring holds the requests [tail, head), by number in the slot's life.
	// [tail, written) belong to whoever reads, [written, head) to the sender.
	ring []Request

	// reading is held by whoever reads: the poller, Sweep, or the connection's
	// goroutine once the connection is over. It is taken before mu.
	reading  sync.Mutex
	over     bool // the present one was ended: nobody reads any more
	answered bool // by the present one
	ended    chan Cause

	mu      sync.Mutex
	up      bool
	fd      int           // of a plain connection; closed by the connection's goroutine
	conn    *net.TCPConn  // of a TLS connection
	secure  *secure       // of conn; nil without TLS
	out     outlet        // of conn; used by the sender under mu
	epoch   atomic.Uint64 // counts losses; moved under mu
	tail    uint64        // first request without an answer; moved by the reader
	expired uint64        // first request not given up, >= tail; moved by the reader
	written uint64        // first request without a written byte; moved by the sender
	broken  bool          // takes no more bytes; the reader has seen or will see the end
	closing bool
	stats   Stats
	dialErr error // of the last attempt

	// The sender's own.
	head      uint64
	seenEpoch uint64
	pending   []byte // requests from pending[pos:] on are not yet written
	pos       int
	sealed    []byte // reused for pending

	cancel context.CancelFunc
	done   chan struct{}
	slot   int32  // with the poller
	parser Parser // the reader's own
}

// Open starts a connection slot to addr (host:port). Dialing goes on in the
// background until Close.
func Open(addr string, cfg Config, sink Sink) (*Conn, error) {
	if cfg.Depth < 1 || cfg.Timeout <= 0 || cfg.DialTimeout <= 0 || cfg.Now == nil || cfg.Poller == nil || sink == nil {
		return nil, fmt.Errorf("open connection slot to %s: depth, timeouts, clock, poller and sink are required", addr)
	}
	size := uint64(1) << bits.Len(uint(cfg.Depth-1))
	ctx, cancel := context.WithCancel(context.Background())
	c := &Conn{
		addr: addr, cfg: cfg, sink: sink,
		ring: make([]Request, size), mask: size - 1,
		cancel: cancel, done: make(chan struct{}), ended: make(chan Cause, 1),
	}
	c.slot = cfg.Poller.register(c)
	go c.run(ctx)
	return c, nil
}

// Up reports whether the slot has a connection.
func (c *Conn) Up() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.up
}

// Outstanding is the number of requests written and neither answered nor given
// up.
func (c *Conn) Outstanding() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int(c.written - c.expired)
}

// DialError is why the last attempt to connect failed; nil if it did not.
func (c *Conn) DialError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dialErr
}

// Stats returns the counts so far.
func (c *Conn) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Sweep gives up the requests that have timed out.
func (c *Conn) Sweep(now int64) {
	c.mu.Lock()
	due := c.up && c.expired < c.written && c.overdue(&c.ring[c.expired&c.mask], now)
	if due && c.conn != nil {
		// Its goroutine does it. An error means the connection just ended, which
		// wakes it as well.
		_ = c.conn.SetReadDeadline(time.Unix(1, 0))
		due = false
	}
	c.mu.Unlock()
	if !due {
		return
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	if !c.over && c.expire(now) {
		c.end(CauseExpired)
	}
}

func (c *Conn) overdue(r *Request, now int64) bool {
	return now-r.Sent >= int64(c.cfg.Timeout)
}

// Close ends the slot: what is outstanding is reported unfinished. It returns
// when the slot's goroutine has ended; no sink is called afterwards. The sender
// may still Reclaim.
func (c *Conn) Close() {
	c.mu.Lock()
	c.closing = true
	if c.conn != nil {
		_ = c.conn.Close() // the reader reports what matters
	}
	c.mu.Unlock()
	c.reading.Lock()
	c.end(CauseNone)
	c.reading.Unlock()
	c.cancel()
	<-c.done
}

// end tells the connection's goroutine that the plain connection is over;
// reading is held.
func (c *Conn) end(cause Cause) {
	if c.over {
		return
	}
	c.over = true
	c.ended <- cause // there is room for the one of each connection
}
