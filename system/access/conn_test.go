package access

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hotsku/hotsku/system/access/submit"
	"github.com/hotsku/hotsku/system/seckill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = seckill.TokenKey{ID: "k1", Secret: []byte("0123456789abcdef0123456789abcdef")}

// sold refuses the users it holds.
type sold map[int64]bool

func (s sold) Refuses(_, _, user int64) bool  { return s[user] }
func (s sold) Knows(activity, sku int64) bool { return activity == 7 && sku == 8 }

// held keeps what was submitted until the test answers it.
type held struct {
	full    bool
	tickets chan ticketHeld
}

type ticketHeld struct {
	cmd seckill.SubmitCommand
	to  submit.Replier
}

func newHeld() *held { return &held{tickets: make(chan ticketHeld, 1024)} }

func (h *held) TryAcquire() bool { return !h.full }
func (h *held) Submit(cmd seckill.SubmitCommand, to submit.Replier) {
	h.tickets <- ticketHeld{cmd, to}
}

func (h *held) next(t *testing.T) ticketHeld {
	t.Helper()
	select {
	case k := <-h.tickets:
		return k
	case <-time.After(10 * time.Second):
		t.Fatal("nothing was submitted in 10s")
		panic("unreachable")
	}
}

// queued is the answer of a reservation.
func (k ticketHeld) queued() {
	k.to.Reply(&seckill.Answer{Code: seckill.CodeQueued, RequestID: k.cmd.RequestID})
}

func start(t *testing.T, cfg Config, gate Gate, sub Submitter) (*Server, string) {
	t.Helper()
	return startParams(t, Params{Config: cfg, Gate: gate, Submit: sub})
}

// startParams starts a server, with the test's key unless others are given.
func startParams(t *testing.T, p Params) (*Server, string) {
	t.Helper()
	p.Log = slog.New(slog.DiscardHandler)
	if p.Keys == nil {
		p.Keys = []seckill.TokenKey{key}
	}
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return s, ln.Addr().String()
}

// ended shuts s down and returns when no connection is left.
func ended(t *testing.T, s *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
}

// client is a connection that pipelines by hand.
type client struct {
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, addr string) *client {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &client{nc, bufio.NewReader(nc)}
}

func (c *client) answer(t *testing.T) (int, seckill.Answer, *http.Response) {
	t.Helper()
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	a, err := seckill.ParseAnswer(body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, a, resp
}

func (c *client) send(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

func bearerOf(user, activity, expiresAt int64) string {
	codec, err := seckill.NewTokenCodec(key)
	if err != nil {
		panic(err)
	}
	return "Authorization: Bearer " + string(codec.AppendSigned(nil, user, activity, expiresAt)) + "\r\n"
}

func post(headers, body string) string {
	return fmt.Sprintf("POST /v1/seckill/orders HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n%s", headers, len(body), body)
}

func orderOf(user int64, requestID string) string {
	return post(bearerOf(user, 7, time.Now().Add(time.Hour).Unix()),
		fmt.Sprintf(`{"activity_id":7,"sku_id":8,"request_id":%q,"quantity":1}`, requestID))
}

// R10.1, architecture 3: a connection's requests are decided concurrently
// and answered in order, whichever reservation is answered first.
func TestAnswersKeepTheOrderOfRequests(t *testing.T) {
	sub := newHeld()
	_, addr := start(t, Config{}, sold{2: true, 4: true, 6: true}, sub)
	c := dial(t, addr)
	// Users 2, 4 and 6 are refused inline; 1, 3 and 5 are parked.
	c.send(t, orderOf(1, "r1")+orderOf(2, "r2")+orderOf(3, "r3")+orderOf(4, "r4")+orderOf(5, "r5")+orderOf(6, "r6"))
	var parked []ticketHeld
	for range 3 {
		parked = append(parked, sub.next(t))
	}
	for _, i := range []int{2, 0, 1} {
		parked[i].queued()
	}
	for i := 1; i <= 6; i++ {
		want := seckill.CodeQueued
		if i%2 == 0 {
			want = seckill.CodeSoldOut
		}
		status, a, _ := c.answer(t)
		if a.RequestID != fmt.Sprintf("r%d", i) || a.Code != want || status != want.HTTPStatus() {
			t.Errorf("answer %d is %d %+v, want %s", i, status, a, want)
		}
	}
}

func TestRefusalsInFrontOfAParkedRequestDoNotWaitForIt(t *testing.T) {
	sub := newHeld()
	_, addr := start(t, Config{}, sold{1: true}, sub)
	c := dial(t, addr)
	c.send(t, orderOf(1, "refused")+orderOf(2, "parked"))
	if _, a, _ := c.answer(t); a.RequestID != "refused" {
		t.Errorf("first answer is %+v", a)
	}
	sub.next(t).queued()
	if _, a, _ := c.answer(t); a.RequestID != "parked" {
		t.Errorf("second answer is %+v", a)
	}
}

// Many connections, random completion: every request is answered once, in
// its connection's order.
func TestManyConnectionsUnderRace(t *testing.T) {
	sub := newHeld()
	_, addr := start(t, Config{}, sold{}, sub)
	const conns, each = 8, 200
	stop := make(chan struct{})
	var answering sync.WaitGroup
	for range 4 {
		answering.Go(func() {
			for {
				select {
				case k := <-sub.tickets:
					k.queued()
				case <-stop:
					return
				}
			}
		})
	}
	var wg sync.WaitGroup
	for n := range conns {
		c := dial(t, addr)
		wg.Go(func() {
			for i := range each {
				if _, err := io.WriteString(c, orderOf(int64(n*each+i+1), fmt.Sprintf("c%d-%d", n, i))); err != nil {
					t.Error(err)
					return
				}
			}
		})
		wg.Go(func() {
			for i := range each {
				resp, err := http.ReadResponse(c.r, nil)
				if err != nil {
					t.Error(err)
					return
				}
				body, _ := io.ReadAll(resp.Body)
				if !strings.Contains(string(body), fmt.Sprintf(`"c%d-%d"`, n, i)) {
					t.Errorf("connection %d, answer %d: %s", n, i, body)
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	answering.Wait()
}

// R7.4.2 R9.1.1: whatever is wrong, the answer says what, and nothing
// reaches the path to Redis.
func TestRefusals(t *testing.T) {
	good := `{"activity_id":7,"sku_id":8,"request_id":"r","quantity":1}`
	valid := bearerOf(1, 7, time.Now().Add(time.Hour).Unix())
	for rule, c := range map[string]struct {
		give  string
		code  seckill.Code
		field string
	}{
		"no token":                          {post("", good), seckill.CodeUnauthenticated, ""},
		"a token that is none":              {post("Authorization: Bearer x\r\n", good), seckill.CodeUnauthenticated, ""},
		"a token of another scheme":         {post("Authorization: Basic eDp5\r\n", good), seckill.CodeUnauthenticated, ""},
		"an expired token":                  {post(bearerOf(1, 7, 1), good), seckill.CodeUnauthenticated, ""},
		"a forged token":                    {post(strings.Replace(valid, ".7.", ".8.", 1), good), seckill.CodeUnauthenticated, ""},
		"a token for another activity":      {post(bearerOf(1, 9, time.Now().Add(time.Hour).Unix()), good), seckill.CodeForbidden, ""},
		"a body that is no JSON":            {post(valid, `hello`), seckill.CodeInvalidRequest, "body"},
		"an empty body":                     {post(valid, ``), seckill.CodeInvalidRequest, "body"},
		"a missing field":                   {post(valid, `{"activity_id":7,"sku_id":8,"quantity":1}`), seckill.CodeInvalidRequest, "request_id"},
		"quantity 2":                        {post(valid, `{"activity_id":7,"sku_id":8,"request_id":"r","quantity":2}`), seckill.CodeInvalidRequest, "quantity"},
		"a body is judged before a token":   {post("", `{}`), seckill.CodeInvalidRequest, "activity_id"},
		"a user in the body":                {post(valid, `{"activity_id":7,"sku_id":8,"request_id":"r","quantity":1,"user_id":5}`), seckill.CodeInvalidRequest, "user_id"},
		"a body over the limit":             {post(valid, strings.Repeat("x", 5000)), seckill.CodeInvalidRequest, "body"},
		"a chunked body over the limit":     {"POST /v1/seckill/orders HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1400\r\n" + strings.Repeat("x", 0x1400) + "\r\n0\r\n\r\n", seckill.CodeInvalidRequest, "body"},
		"a header over the limit":           {"POST /v1/seckill/orders HTTP/1.1\r\nHost: x\r\nX-Big: " + strings.Repeat("x", 20000), seckill.CodeInvalidRequest, "header"},
		"another path":                      {"GET /v1/seckill/orders/5 HTTP/1.1\r\nHost: x\r\n\r\n", seckill.CodeNotFound, ""},
		"Expect":                            {post("Expect: 100-continue\r\n"+valid, good), seckill.CodeInvalidRequest, "header"},
		"something that is not HTTP at all": {"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", seckill.CodeInvalidRequest, "header"},
	} {
		t.Run(rule, func(t *testing.T) {
			sub := newHeld()
			_, addr := start(t, Config{}, sold{}, sub)
			cl := dial(t, addr)
			cl.send(t, c.give)
			status, a, _ := cl.answer(t)
			if a.Code != c.code || a.Field != c.field || status != c.code.HTTPStatus() {
				t.Errorf("answered %d %+v, want %s about %q", status, a, c.code, c.field)
			}
			if a.Reason == "" {
				t.Error("the answer gives no reason")
			}
			if len(sub.tickets) > 0 {
				t.Error("the request was submitted")
			}
		})
	}
}

func TestTooManyInFlightIsRateLimitedWithRetryAfter(t *testing.T) {
	sub := newHeld()
	sub.full = true
	_, addr := start(t, Config{}, sold{}, sub)
	c := dial(t, addr)
	c.send(t, orderOf(1, "r"))
	status, a, resp := c.answer(t)
	if status != 429 || a.Code != seckill.CodeRateLimited || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("answered %d %+v, Retry-After %q", status, a, resp.Header.Get("Retry-After"))
	}
}

func TestConnectionCloseIsHonouredAfterTheAnswer(t *testing.T) {
	sub := newHeld()
	_, addr := start(t, Config{}, sold{}, sub)
	c := dial(t, addr)
	c.send(t, strings.Replace(orderOf(1, "r"), "Host: x", "Host: x\r\nConnection: close", 1))
	sub.next(t).queued()
	if _, a, resp := c.answer(t); a.Code != seckill.CodeQueued || !resp.Close {
		t.Errorf("answered %+v, close %v", a, resp.Close)
	}
	if _, err := c.r.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after the answer: %v, want EOF", err)
	}
}

// A connection is closed only when its last answer is written, not when it
// was merely taken to be written.
func TestTheLastAnswerIsWrittenBeforeTheConnectionCloses(t *testing.T) {
	sub := newHeld()
	_, addr := start(t, Config{}, sold{}, sub)
	order := strings.Replace(orderOf(1, "r"), "Host: x", "Host: x\r\nConnection: close", 1)
	for range 200 {
		c := dial(t, addr)
		c.send(t, order)
		sub.next(t).queued()
		if _, a, _ := c.answer(t); a.Code != seckill.CodeQueued {
			t.Fatalf("answered %+v", a)
		}
		c.Close()
	}
}

func TestARequestThatDribblesIsCutOff(t *testing.T) {
	_, addr := start(t, Config{RequestTimeout: 50 * time.Millisecond}, sold{}, newHeld())
	c := dial(t, addr)
	c.send(t, "POST /v1/seckill/orders HTTP/1.1\r\nHost:")
	if _, a, _ := c.answer(t); a.Code != seckill.CodeInvalidRequest || a.Field != "request" {
		t.Errorf("answered %+v", a)
	}
}

func TestARequestSplitAtEveryByteIsOneRequest(t *testing.T) {
	_, addr := start(t, Config{}, sold{1: true}, newHeld())
	c := dial(t, addr)
	for _, b := range []byte(orderOf(1, "split")) {
		if _, err := c.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	if _, a, _ := c.answer(t); a.Code != seckill.CodeSoldOut || a.RequestID != "split" {
		t.Errorf("answered %+v", a)
	}
}

// R11.3: a drain loses no answer of what was received.
func TestShutdownAnswersWhatWasReceived(t *testing.T) {
	sub := newHeld()
	s, addr := start(t, Config{}, sold{}, sub)
	c := dial(t, addr)
	c.send(t, orderOf(1, "r"))
	k := sub.next(t)
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		done <- s.Shutdown(ctx)
	}()
	k.queued()
	if _, a, _ := c.answer(t); a.Code != seckill.CodeQueued {
		t.Errorf("answered %+v", a)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
		t.Error("a connection was accepted after Shutdown")
	}
}

func TestAClientThatGoesAwayLeavesNothingBehind(t *testing.T) {
	sub := newHeld()
	s, addr := start(t, Config{}, sold{}, sub)
	c := dial(t, addr)
	c.send(t, orderOf(1, "r"))
	k := sub.next(t)
	c.Close()
	k.queued() // to nobody; must not block
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}
