package access

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/hotsku/hotsku/system/admission"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// conn is one connection: its reader parses and decides, its writer sends
// what parked requests were answered. Both write, one at a time.
type conn struct {
	s     *Server
	nc    net.Conn
	peer  netip.Addr
	codec *seckill.TokenCodec
	q     *replies
	req   fasthttp.Request
	br    *bufio.Reader
	count tally

	// The reader's clocks, looked at once a read: all that came with it came
	// then.
	readAt    time.Duration // since the server began
	nowUnix   int64         // for token expiry
	inRequest bool          // a part of the present request has been received
	requestBy time.Time     // when it must be complete; zero: not yet set
	unread    bool          // the connection ends with input nobody will parse

	writeMu sync.Mutex
	spare   output
}

func newConn(s *Server, nc net.Conn, codec *seckill.TokenCodec) *conn {
	c := &conn{s: s, nc: nc, codec: codec, q: newReplies(),
		count: tally{stats: &s.Stats, gate: s.gate, sku: &s.Stats.others}}
	if tcp, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		c.peer = tcp.AddrPort().Addr().Unmap()
	}
	c.br = bufio.NewReaderSize(readFlushed{c}, s.cfg.HeadLimitBytes)
	return c
}

// readFlushed is the connection as the parser reads it: before it may block,
// everything decided so far is counted and on its way.
type readFlushed struct{ c *conn }

func (r readFlushed) Read(p []byte) (int, error) {
	c := r.c
	c.count.flush()
	if err := c.flush(); err != nil {
		return 0, err
	}
	// A reader that always finds more would keep its processor for the
	// scheduler's ten milliseconds, and with a few dozen of them whoever waits
	// for Redis or the broker would have its turn ten times a second.
	runtime.Gosched()
	now := time.Now()
	deadline := now.Add(c.s.cfg.IdleTimeout)
	if c.inRequest {
		if c.requestBy.IsZero() {
			c.requestBy = now.Add(c.s.cfg.RequestTimeout)
		}
		deadline = c.requestBy
	}
	if err := c.nc.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	if c.s.draining.Load() && !c.inRequest { // after the deadline is set: drain's own must win
		return 0, io.EOF
	}
	n, err := c.nc.Read(p)
	c.readAt = time.Since(c.s.began)
	c.nowUnix = c.s.now().Unix()
	c.inRequest = c.inRequest || n > 0
	return n, err
}

func (c *conn) serve() {
	written := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(written)
		for {
			select {
			case <-c.q.wake:
				if c.flush() != nil {
					return
				}
			case <-stop:
				return
			}
		}
	}()
	orderly := c.read()
	c.count.flush()
	if orderly {
		_ = c.flush()
		c.q.waitForAll() // the writer takes what is still parked
		_ = c.flush()    // and has written it when this has its turn
		if c.unread {
			c.linger()
		}
	}
	c.q.kill()
	close(stop)
	_ = c.nc.Close()
	<-written
}

// read handles requests until the connection ends; it returns whether what
// was decided should still be sent.
func (c *conn) read() bool {
	for {
		c.inRequest, c.requestBy = c.br.Buffered() > 0, time.Time{}
		if !c.q.waitForRoom() {
			return false
		}
		if _, err := c.br.Peek(1); err != nil {
			return c.refuseHead(err)
		}
		in, _ := c.br.Peek(c.br.Buffered()) // what is buffered is no error
		if h, body, size, ok := fixedHead(in, c.s.cfg.BodyLimitBytes); ok {
			last := c.s.draining.Load()
			c.order(&h, body, last)
			_, _ = c.br.Discard(size)
			if last {
				return true
			}
			continue
		}
		c.req.Reset()
		if err := c.req.Header.Read(c.br); err != nil {
			return c.refuseHead(err)
		}
		if again := c.request(); !again {
			return true
		}
	}
}

// refuseHead ends the connection: what follows a bad head cannot be told from
// its body.
func (c *conn) refuseHead(err error) bool {
	var timeout net.Error
	switch {
	case !c.inRequest:
		return true // closed, or idle for too long, between requests
	case errors.As(err, &timeout) && timeout.Timeout():
		c.cutOff("request", "was not complete in time")
	case errors.Is(err, net.ErrClosed), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return true
	default:
		var small *fasthttp.ErrSmallBuffer
		if errors.As(err, &small) {
			c.cutOff("header", "is too large")
		} else {
			c.cutOff("header", "is not well-formed HTTP/1.1")
		}
	}
	return true
}

func (c *conn) cutOff(field, reason string) {
	c.unread = true
	c.refuse(admission.StageRequest, &seckill.Answer{Code: seckill.CodeInvalidRequest, Field: field, Reason: reason}, framing{last: true})
}

// refuse answers at once, in order.
func (c *conn) refuse(stage admission.Stage, a *seckill.Answer, f framing) {
	if stage == admission.StageRequest { // no order for any SKU
		c.count.at(reservation.SKU{})
	}
	c.count.refused(stage, a.Code)
	c.q.answer(a, f, c.readAt)
}

// flush writes everything ready. Safe for concurrent use.
func (c *conn) flush() error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	for {
		ready := c.q.take(c.spare)
		c.spare = ready
		if len(ready.bytes) == 0 {
			return nil
		}
		err := c.nc.SetWriteDeadline(time.Now().Add(c.s.cfg.WriteTimeout))
		if err == nil {
			_, err = c.nc.Write(ready.bytes)
		}
		if err != nil {
			c.abort()
			return err
		}
		now := time.Since(c.s.began)
		for _, m := range ready.marks {
			c.s.Stats.Durations[m.code].observe(now-m.read, m.n)
		}
	}
}

// Bounds of linger.
const (
	lingerMax  = 4 << 20 // bytes
	lingerTime = time.Second
)

// linger lets the client read its last answer: closing a connection with
// unread input resets it, and the answer with it.
func (c *conn) linger() {
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.nc.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.nc, lingerMax)
}

// drain makes the reader stop at the next request boundary.
func (c *conn) drain() { _ = c.nc.SetReadDeadline(time.Now()) }

// abort ends the connection at once.
func (c *conn) abort() {
	c.q.kill()
	_ = c.nc.Close()
}
