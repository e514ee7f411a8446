package wire

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Filler makes requests; the sender implements it.
type Filler interface {
	// Fill appends the next request to dst and describes it in r (all but
	// Sent).
	Fill(dst []byte, r *Request) []byte
	// Sent is told each request when its first byte has been written.
	Sent(r *Request)
}

// Room is how many requests Offer would take now: 0 while the connection is
// down, holds bytes it could not write, or is waiting behind a request that
// was given up.
func (c *Conn) Room() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.sendable() || c.pos < len(c.pending) || c.expired > c.tail {
		return 0
	}
	return c.cfg.Depth - int(c.head-c.tail)
}

// Offer takes n requests from f, at most Room, and writes as much of them as
// the socket takes without blocking.
func (c *Conn) Offer(n int, f Filler) {
	c.pending, c.pos = c.pending[:0], 0
	for range n {
		r := &c.ring[c.head&c.mask]
		start := len(c.pending)
		c.pending = f.Fill(c.pending, r)
		r.start = start
		c.head++
	}
	c.mu.Lock()
	sec := c.secure
	c.mu.Unlock()
	if sec != nil {
		if err := c.seal(sec, n); err != nil {
			c.abandon()
			return
		}
	}
	c.Flush(f)
}

// abandon ends a connection that nothing can be written to any more; Reclaim
// then returns what was pending.
func (c *Conn) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sendable() {
		c.broken = true
		_ = c.conn.Close() // a TLS one; its reader reports what matters
	}
}

// Flush goes on writing what is pending, without blocking, and reports whether
// nothing is left.
func (c *Conn) Flush(f Filler) bool {
	if c.pos == len(c.pending) {
		return true
	}
	first := c.written
	c.mu.Lock()
	if c.sendable() {
		// The reader waits for the lock before it looks for the request of an
		// answer, so it finds it however quickly the answer came.
		now := c.cfg.Now()
		n, err := c.write(c.pending[c.pos:])
		c.pos += n
		for c.written < c.head && c.ring[c.written&c.mask].start < c.pos {
			c.ring[c.written&c.mask].Sent = now
			c.written++
		}
		if err != nil {
			c.broken = true
		}
	}
	last := c.written
	c.mu.Unlock()
	for ; first < last; first++ {
		f.Sent(&c.ring[first&c.mask])
	}
	return c.pos == len(c.pending)
}

// Reclaim returns to dst the requests that were offered and of which no byte
// was written before their connection was lost. It must be called before Room
// after a loss, and does nothing otherwise; calling it each time is cheap.
func (c *Conn) Reclaim(dst []Request) []Request {
	epoch := c.epoch.Load()
	if epoch == c.seenEpoch {
		return dst
	}
	c.seenEpoch = epoch
	for i := c.written; i < c.head; i++ {
		dst = append(dst, c.ring[i&c.mask])
	}
	c.head = c.written
	c.pending, c.pos = c.pending[:0], 0
	return dst
}

// sendable reports whether the connection may be written to; mu is held.
func (c *Conn) sendable() bool {
	return c.up && !c.broken && !c.closing && c.epoch.Load() == c.seenEpoch
}

// write writes what the socket takes now; mu is held. A full socket is not an
// error.
func (c *Conn) write(b []byte) (int, error) {
	if c.conn == nil {
		return writeNow(c.fd, b)
	}
	return c.out.write(b)
}

// outlet writes to a TLS connection's socket without ever blocking and without
// allocating.
type outlet struct {
	raw  syscall.RawConn
	once func(fd uintptr) bool
	call *writeCall
}

type writeCall struct {
	b   []byte
	n   int
	err error
}

func newOutlet(conn *net.TCPConn) (outlet, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return outlet{}, fmt.Errorf("get socket: %w", err)
	}
	call := new(writeCall)
	return outlet{raw: raw, call: call, once: func(fd uintptr) bool {
		for {
			call.n, call.err = syscall.Write(int(fd), call.b)
			if call.err != syscall.EINTR {
				return true // also when it would block: try later
			}
		}
	}}, nil
}

// write writes what the socket takes now. A full socket is not an error.
func (o *outlet) write(b []byte) (int, error) {
	o.call.b, o.call.n, o.call.err = b, 0, nil
	err := o.raw.Write(o.once)
	o.call.b = nil
	if err == nil {
		err = o.call.err
	}
	if errors.Is(err, syscall.EAGAIN) {
		err = nil
	}
	return max(o.call.n, 0), err
}
