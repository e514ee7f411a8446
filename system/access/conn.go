package access

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"

	"github.com/hotsku/hotsku/system/access/submit"
	"github.com/hotsku/hotsku/system/seckill"
)

// conn is one connection: its reader parses and decides, its writer sends
// what parked requests were answered. Both write, one at a time.
type conn struct {
	s     *Server
	nc    net.Conn
	codec *seckill.TokenCodec
	q     *replies
	req   fasthttp.Request
	br    *bufio.Reader

	// The reader's clock: the time of the last read, good enough for expiry.
	nowUnix   int64
	inRequest bool      // a part of the present request has been received
	requestBy time.Time // when it must be complete; zero: not yet set

	writeMu sync.Mutex
	spare   []byte
}

func newConn(s *Server, nc net.Conn, codec *seckill.TokenCodec) *conn {
	c := &conn{s: s, nc: nc, codec: codec, q: newReplies()}
	c.br = bufio.NewReaderSize(readFlushed{c}, s.cfg.HeadLimitBytes)
	return c
}

// readFlushed is the connection as the parser reads it: before it may block,
// everything decided so far is on its way.
type readFlushed struct{ c *conn }

func (r readFlushed) Read(p []byte) (int, error) {
	c := r.c
	if err := c.flush(); err != nil {
		return 0, err
	}
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
	c.nowUnix = time.Now().Unix()
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
	if c.read() {
		_ = c.flush()
		c.q.waitForAll() // the writer sends what is still parked
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
	c.s.Stats.Requests.Add(1)
	c.refuse(&seckill.Answer{Code: seckill.CodeInvalidRequest, Field: field, Reason: reason}, true)
}

// refuse answers at once, in order.
func (c *conn) refuse(a *seckill.Answer, last bool) {
	c.s.Stats.Answers[a.Code].Add(1)
	c.q.answer(a, last)
}

// request handles the request whose head was read. It returns false if the
// connection ends after it.
func (c *conn) request() (again bool) {
	h := &c.req.Header
	if h.ContentLength() > c.s.cfg.BodyLimitBytes {
		c.cutOff("body", "is too large")
		return false
	}
	if c.req.MayContinue() { // no body as small as ours needs asking first
		c.cutOff("header", "Expect is not supported")
		return false
	}
	if !h.IsPost() || !bytes.Equal(h.RequestURI(), pathBytes) {
		c.s.Stats.Requests.Add(1)
		c.refuse(&seckill.Answer{Code: seckill.CodeNotFound, Reason: "only POST " + Path + " is served here"}, true)
		return false
	}
	if err := c.req.ContinueReadBody(c.br, c.s.cfg.BodyLimitBytes, false); err != nil {
		if errors.Is(err, fasthttp.ErrBodyTooLarge) {
			c.cutOff("body", "is too large")
		} else {
			c.cutOff("body", "is not complete")
		}
		return false
	}
	c.s.Stats.Requests.Add(1)
	last := h.ConnectionClose() || c.s.draining.Load()
	c.order(last)
	return !last
}

var pathBytes = []byte(Path)

// order judges one order request as far as this process can, and parks it if
// Redis must be asked.
func (c *conn) order(last bool) {
	var cmd seckill.SubmitCommand
	o, err := parseOrder(c.req.Body())
	if err == nil {
		cmd = seckill.SubmitCommand{ActivityID: o.activityID, SKUID: o.skuID, Quantity: o.quantity,
			RequestID: unsafe.String(unsafe.SliceData(o.requestID), len(o.requestID))} // valid until the next read
		err = cmd.Validate()
	}
	if err != nil {
		a := seckill.Answer{Code: seckill.CodeInvalidRequest, Field: "body", Reason: err.Error()}
		var field *seckill.FieldError
		if errors.As(err, &field) {
			a.Field, a.Reason = field.Field, field.Reason
		}
		c.refuse(&a, last)
		return
	}
	token, ok := bytes.CutPrefix(c.req.Header.PeekBytes(authorization), bearer)
	if !ok {
		c.refuse(&seckill.Answer{Code: seckill.CodeUnauthenticated, RequestID: cmd.RequestID,
			Reason: "Authorization: Bearer with an eligibility token is required"}, last)
		return
	}
	who, err := c.codec.Verify(token, c.nowUnix)
	if err != nil {
		c.refuse(&seckill.Answer{Code: seckill.CodeUnauthenticated, RequestID: cmd.RequestID, Reason: err.Error()}, last)
		return
	}
	if who.ActivityID != cmd.ActivityID {
		c.refuse(&seckill.Answer{Code: seckill.CodeForbidden, RequestID: cmd.RequestID,
			Reason: "the token is for another activity"}, last)
		return
	}
	c.s.Stats.Authenticated.Add(1)
	cmd.UserID = who.UserID
	if c.s.gate.Refuses(cmd.ActivityID, cmd.SKUID, cmd.UserID) {
		c.refuse(&seckill.Answer{Code: seckill.CodeSoldOut, RequestID: cmd.RequestID}, last)
		return
	}
	c.s.Stats.PastGate.Add(1)
	if !c.s.submit.TryAcquire() {
		c.refuse(submit.RateLimited(cmd.RequestID), last)
		return
	}
	cmd.RequestID = strings.Clone(cmd.RequestID)
	c.s.submit.Submit(cmd, c.q.park(&c.s.Stats, last))
}

var (
	authorization = []byte("Authorization")
	bearer        = []byte("Bearer ")
)

// flush writes everything ready. Safe for concurrent use.
func (c *conn) flush() error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	for {
		ready := c.q.take(c.spare)
		if len(ready) == 0 {
			c.spare = ready
			return nil
		}
		err := c.nc.SetWriteDeadline(time.Now().Add(c.s.cfg.WriteTimeout))
		if err == nil {
			_, err = c.nc.Write(ready)
		}
		c.spare = ready[:0]
		if err != nil {
			c.abort()
			return err
		}
	}
}

// drain makes the reader stop at the next request boundary.
func (c *conn) drain() { _ = c.nc.SetReadDeadline(time.Now()) }

// abort ends the connection at once.
func (c *conn) abort() {
	c.q.kill()
	_ = c.nc.Close()
}
