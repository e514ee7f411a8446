package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// run dials, waits until the connection has ended, and again, until Close.
func (c *Conn) run(ctx context.Context) {
	defer close(c.done)
	if c.cfg.Hold != nil {
		select {
		case <-ctx.Done():
			return
		case <-c.cfg.Hold:
		}
	}
	backoff := BackoffMin
	for {
		from, err := c.dial(ctx)
		if err == nil {
			var answered bool
			var cause Cause
			if from != nil {
				answered, cause = c.serve(from)
			} else {
				answered, cause = c.polled(ctx)
			}
			c.lose(cause)
			if answered {
				backoff = BackoffMin
				if ctx.Err() == nil {
					continue
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(backoff):
		}
		backoff = min(2*backoff, BackoffMax)
	}
}

// dial makes one attempt and installs the connection. It returns what to read
// answers from, or nil if the poller does.
func (c *Conn) dial(ctx context.Context) (io.Reader, error) {
	conn, sec, out, err := c.connect(ctx)
	fd := -1
	if err == nil && sec == nil {
		fd, err = detach(conn)
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			c.stats.Failed[CauseOf(err)]++
			c.dialErr = err
		}
		return nil, err
	}
	c.stats.Opened++
	c.up, c.broken, c.dialErr = true, false, nil
	c.parser = Parser{known: c.parser.known[:0], line: c.parser.line[:0], body: c.parser.body[:0]}
	if sec == nil {
		c.fd, c.over, c.answered = fd, false, false
		select {
		case <-c.ended: // of a Close while nothing was there to end
		default:
		}
		return nil, nil
	}
	c.conn, c.secure, c.out = conn, sec, out
	if c.closing {
		_ = c.conn.Close()
	}
	return sec, nil
}

// detach takes a connection away from the runtime's poller, which would wake up
// for each of its answers as well.
func detach(conn *net.TCPConn) (fd int, err error) {
	raw, err := conn.SyscallConn()
	if err == nil {
		var dup error
		err = raw.Control(func(own uintptr) { fd, dup = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) })
		err = errors.Join(err, dup)
	}
	if err = errors.Join(err, conn.Close()); err != nil {
		return -1, fmt.Errorf("take the socket: %w", err)
	}
	return fd, nil
}

// polled waits while the poller reads.
func (c *Conn) polled(ctx context.Context) (answered bool, cause Cause) {
	if err := c.cfg.Poller.watch(c.fd, c.slot); err != nil {
		cause = CauseOf(err)
	} else {
		select {
		case cause = <-c.ended:
		case <-ctx.Done():
			cause = CauseNone
		}
		c.cfg.Poller.forget(c.fd)
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	c.over = true
	return c.answered, cause
}

// readable reads once; the poller calls it. An event of an earlier connection
// of the slot finds nothing to read.
func (c *Conn) readable(buf []byte) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.over {
		return
	}
	n, err := readNow(c.fd, buf)
	now := c.cfg.Now()
	cause := CauseNone
	switch {
	case errors.Is(err, unix.EAGAIN):
	case err != nil:
		cause = CauseOf(err)
	case n == 0:
		if resp, done := c.parser.EOF(); done {
			c.answered = c.takeLast(resp, now) || c.answered
		}
		cause = CauseClosed
	default:
		var answered bool
		answered, cause = c.take(buf[:n], now)
		c.answered = c.answered || answered
	}
	if cause != CauseNone {
		c.cfg.Poller.forget(c.fd) // or its events would go on until it is closed
		c.end(cause)
	}
}

// connect opens a connection, with TLS if asked for, within the dial timeout.
func (c *Conn) connect(ctx context.Context) (_ *net.TCPConn, sec *secure, _ outlet, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.DialTimeout)
	defer cancel()
	d := net.Dialer{KeepAlive: -1}
	if c.cfg.Ports != [2]uint16{} {
		d.Control = portRange(c.cfg.Ports)
	}
	dialed, err := d.DialContext(ctx, "tcp", c.addr)
	if err != nil {
		return nil, nil, outlet{}, err
	}
	conn := dialed.(*net.TCPConn)
	if c.cfg.TLS != nil {
		sec, err = newSecure(ctx, conn, c.cfg.TLS)
	}
	var out outlet
	if err == nil && sec != nil {
		out, err = newOutlet(conn)
	}
	if err != nil {
		_ = conn.Close()
	}
	return conn, sec, out, err
}

// portRange makes sockets take their local port from a range of their own.
func portRange(ports [2]uint16) func(network, address string, raw syscall.RawConn) error {
	const ipLocalPortRange = 51 // IP_LOCAL_PORT_RANGE, Linux 6.3
	return func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) {
			failed = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, ipLocalPortRange, int(ports[1])<<16|int(ports[0]))
		})
		return errors.Join(err, failed)
	}
}

// serve reads the answers of a TLS connection until it ends. answered reports
// that there was at least one.
func (c *Conn) serve(from io.Reader) (answered bool, cause Cause) {
	buf := make([]byte, readBytes)
	for {
		n, err := from.Read(buf)
		now := c.cfg.Now()
		if n > 0 {
			got, cause := c.take(buf[:n], now)
			answered = answered || got
			if cause != CauseNone {
				return answered, cause
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			// Cleared first: a Sweep from here on must not be lost.
			if err := c.conn.SetReadDeadline(time.Time{}); err != nil { // set and cleared by this goroutine alone
				return answered, CauseOf(err)
			}
			if c.expire(now) {
				return answered, CauseExpired
			}
		case errors.Is(err, io.EOF):
			if resp, done := c.parser.EOF(); done {
				answered = c.takeLast(resp, now) || answered
			}
			return answered, CauseClosed
		default:
			return answered, CauseOf(err)
		}
	}
}

// take parses b and reports the answers in it.
func (c *Conn) take(b []byte, now int64) (answered bool, cause Cause) {
	c.mu.Lock()
	limit := c.written
	c.mu.Unlock()
	tail, count := c.tail, 0
	c.sink.Begin()
	for len(b) > 0 && cause == CauseNone {
		resp, used, done, err := c.parser.Feed(b)
		b = b[used:]
		switch {
		case err != nil, done && tail == limit:
			cause = CauseMalformed
		case done:
			if tail >= c.expired { // else a late answer to one given up
				c.sink.Answered(&c.ring[tail&c.mask], now, resp)
				count++
			}
			tail++
			if resp.Close {
				cause = CauseClosed
			}
		}
	}
	c.sink.End(count)
	c.advance(tail, cause != CauseNone)
	return count > 0, cause
}

// takeLast reports an answer that was completed by the connection's end.
func (c *Conn) takeLast(resp *Response, now int64) bool {
	c.mu.Lock()
	limit := c.written
	c.mu.Unlock()
	if c.tail == limit {
		return false
	}
	late := c.tail < c.expired
	if !late {
		c.sink.Begin()
		c.sink.Answered(&c.ring[c.tail&c.mask], now, resp)
		c.sink.End(1)
	}
	c.advance(c.tail+1, true)
	return !late
}

// advance frees the places before tail. ended tells the sender, with the same
// step, that the connection takes no more requests.
func (c *Conn) advance(tail uint64, ended bool) {
	c.mu.Lock()
	c.tail, c.expired = tail, max(c.expired, tail)
	c.broken = c.broken || ended
	c.mu.Unlock()
}

// expire gives up the requests whose time is over, and reports whether no
// other is left on the connection.
func (c *Conn) expire(now int64) (all bool) {
	c.mu.Lock()
	limit := c.written
	c.mu.Unlock()
	i := c.expired
	if i == limit || !c.overdue(&c.ring[i&c.mask], now) {
		return false
	}
	c.sink.Begin()
	for ; i < limit && c.overdue(&c.ring[i&c.mask], now); i++ {
		c.sink.TimedOut(&c.ring[i&c.mask], now)
	}
	c.sink.End(int(i - c.expired))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expired = i
	return i == c.written
}

// lose takes the connection away and ends what it carried. Requests of which
// nothing was written stay in [written, head) for Reclaim.
func (c *Conn) lose(cause Cause) {
	c.mu.Lock()
	c.up = false
	if c.conn != nil {
		_ = c.conn.Close() // it is lost already
		c.conn, c.secure = nil, nil
	} else {
		_ = unix.Close(c.fd)
		c.fd = -1
	}
	c.epoch.Add(1)
	closing, limit := c.closing, c.written
	if closing {
		cause = CauseNone
	} else if cause == CauseNone {
		cause = CauseOther
	}
	c.stats.Lost[cause]++
	c.mu.Unlock()

	if c.expired < limit {
		now := c.cfg.Now()
		c.sink.Begin()
		for i := c.expired; i < limit; i++ {
			if closing {
				c.sink.Unfinished(&c.ring[i&c.mask], now)
			} else {
				c.sink.Failed(&c.ring[i&c.mask], now, cause)
			}
		}
		c.sink.End(int(limit - c.expired))
	}
	c.advance(limit, true)
}
