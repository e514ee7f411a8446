package access

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"

	"github.com/hotsku/hotsku/system/access/submit"
	"github.com/hotsku/hotsku/system/admission"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// The paths served, and the headers read beside Authorization.
const (
	Path         = "/v1/seckill/orders"
	DocumentPath = "/openapi.yaml"

	DeviceHeader    = "X-Device-Id"
	ForwardedHeader = "X-Forwarded-For"
	TraceHeader     = "Traceparent"
	UserHeader      = "X-User-Id" // only without the token stage
)

var (
	pathBytes     = []byte(Path)
	documentBytes = []byte(DocumentPath)
	authorization = []byte("Authorization")
	bearer        = []byte("Bearer ")
	device        = []byte(DeviceHeader)
	traceparent   = []byte(TraceHeader)
	user          = []byte(UserHeader)
)

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
	path, _, _ := bytes.Cut(h.RequestURI(), []byte{'?'})
	if !h.IsPost() || !bytes.Equal(path, pathBytes) {
		return c.other(path)
	}
	if err := c.req.ContinueReadBody(c.br, c.s.cfg.BodyLimitBytes, false); err != nil {
		if errors.Is(err, fasthttp.ErrBodyTooLarge) {
			c.cutOff("body", "is too large")
		} else {
			c.cutOff("body", "is not complete")
		}
		return false
	}
	last := h.ConnectionClose() || c.s.draining.Load()
	read := headOf(h)
	c.order(&read, c.req.Body(), last)
	return !last
}

// other answers what is no order. The connection ends after it unless it was
// a plain GET of the description: bodies of other methods are not read.
func (c *conn) other(path []byte) (again bool) {
	h := &c.req.Header
	f := framing{last: true, bare: h.IsHead()}
	c.unread = true
	switch {
	case bytes.Equal(path, documentBytes) && h.IsGet():
		c.q.raw(c.s.document)
		c.unread = false
		return !h.ConnectionClose() && !c.s.draining.Load() && len(h.Peek(fasthttp.HeaderContentLength)) == 0 && len(h.Peek(fasthttp.HeaderTransferEncoding)) == 0
	case bytes.Equal(path, documentBytes):
		f.allow = fasthttp.MethodGet
	case bytes.Equal(path, pathBytes):
		f.allow = fasthttp.MethodPost
	default:
		c.refuse(admission.StageRequest, &seckill.Answer{Code: seckill.CodeNotFound, Reason: "only POST " + Path + " is served here"}, f)
		return false
	}
	c.refuse(admission.StageRequest, &seckill.Answer{Code: seckill.CodeMethodNotAllowed, Reason: "only " + f.allow + " is served here"}, f)
	return false
}

// order judges one order request as far as this process can, stage by stage
// (10.1), and parks it if Redis must be asked.
func (c *conn) order(h *head, body []byte, last bool) {
	var cmd seckill.SubmitCommand
	f := framing{last: last}
	o, err := parseOrder(body)
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
		c.refuse(admission.StageRequest, &a, f)
		return
	}
	c.count.at(reservation.SKU{ActivityID: cmd.ActivityID, SKUID: cmd.SKUID})
	if wait := c.s.limits.Process.Take(c.readAt); wait > 0 {
		c.limited(admission.StageProcessLimit, cmd.RequestID, wait, f)
		return
	}
	var code seckill.Code
	var reason string
	if cmd.UserID, code, reason = c.who(h, cmd.ActivityID); code != seckill.CodeNone {
		c.refuse(admission.StageToken, &seckill.Answer{Code: code, RequestID: cmd.RequestID, Reason: reason}, f)
		return
	}
	if stage, wait := c.overLimit(h, cmd.UserID); wait > 0 {
		c.limited(stage, cmd.RequestID, wait, f)
		return
	}
	if !c.s.cfg.Without.Has(admission.StageGate) && c.s.gate.Refuses(cmd.ActivityID, cmd.SKUID, cmd.UserID) {
		c.refuse(admission.StageGate, &seckill.Answer{Code: seckill.CodeSoldOut, RequestID: cmd.RequestID}, f)
		return
	}
	if !c.s.cfg.Without.Has(admission.StageValves) {
		if reason := c.s.submit.Refuses(); reason != "" {
			c.refuse(admission.StageValves, &seckill.Answer{Code: seckill.CodeUnavailable, RequestID: cmd.RequestID, Reason: reason,
				RetryAfterMS: submit.RetryAfterMS}, f)
			return
		}
	}
	if !c.s.submit.TryAcquire() {
		c.refuse(admission.StageInFlightCap, submit.RateLimited(cmd.RequestID), f)
		return
	}
	c.count.admitted()
	cmd.RequestID = strings.Clone(cmd.RequestID)
	cmd.Traceparent = c.trace(h)
	c.s.submit.Submit(cmd, c.q.park(c.count.sku, last, c.readAt))
}

// trace is the trace context that a trusted peer gave the request: nobody
// else may say what is traced.
func (c *conn) trace(h *head) string {
	if given := h.traceparent(); len(given) > 0 && admission.Trusted(c.peer, c.s.cfg.Limits.TrustedPeers) {
		return string(seckill.ParseTraceparent(string(given)))
	}
	return ""
}

// who is the user of a request for an activity. A code other than CodeNone
// says that it is nobody.
func (c *conn) who(h *head, activityID int64) (userID int64, code seckill.Code, reason string) {
	if c.s.cfg.Without.Has(admission.StageToken) {
		if id, err := strconv.ParseInt(unsafe.String(unsafe.SliceData(h.user), len(h.user)), 10, 64); err == nil && id > 0 {
			return id, seckill.CodeNone, ""
		}
		return 0, seckill.CodeUnauthenticated, UserHeader + " with a positive integer is required: the token stage is switched off"
	}
	if h.authorization == nil {
		return 0, seckill.CodeUnauthenticated, "Authorization: Bearer with an eligibility token is required"
	}
	who, err := c.codec.Verify(h.authorization, c.nowUnix)
	if err != nil {
		return 0, seckill.CodeUnauthenticated, err.Error()
	}
	if who.ActivityID != activityID {
		return 0, seckill.CodeForbidden, "the token is for another activity"
	}
	return who.UserID, seckill.CodeNone, ""
}

// overLimit is the first limit that an eligible request meets, and how long
// it must wait for it; none if that is 0. What earlier limits counted stays
// counted.
func (c *conn) overLimit(h *head, userID int64) (admission.Stage, time.Duration) {
	l := c.s.limits
	if wait := l.User.TakeUser(userID, c.readAt); wait > 0 {
		return admission.StageUserLimit, wait
	}
	if l.IP != nil {
		client, trusted := c.peer, c.s.cfg.Limits.TrustedPeers
		if len(trusted) > 0 {
			client = admission.ClientAddr(c.peer, trusted, h.forwarded())
		}
		if wait := l.IP.TakeAddr(client, c.readAt); wait > 0 {
			return admission.StageIPLimit, wait
		}
	}
	if l.Device != nil {
		if len(h.device) > 0 {
			if wait := l.Device.TakeName(h.device, c.readAt); wait > 0 {
				return admission.StageDeviceLimit, wait
			}
		}
	}
	return 0, 0
}

// limited answers RATE_LIMITED with the time after which a token is there,
// unless another request takes it.
func (c *conn) limited(stage admission.Stage, requestID string, wait time.Duration, f framing) {
	ms := (wait + time.Millisecond - 1) / time.Millisecond
	c.refuse(stage, &seckill.Answer{Code: seckill.CodeRateLimited, RequestID: requestID, Reason: stage.String(), RetryAfterMS: int64(ms)}, f)
}
