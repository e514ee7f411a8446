package orders_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/hotsku/hotsku/system/lifecycle"
	"github.com/hotsku/hotsku/system/orders"
	"github.com/hotsku/hotsku/system/seckill"
)

// call sends a request straight to the handler.
func call(t *testing.T, handle fasthttp.RequestHandler, method, uri, auth, body string) (seckill.Answer, *fasthttp.RequestCtx) {
	t.Helper()
	var rc fasthttp.RequestCtx
	rc.Request.Header.SetMethod(method)
	rc.Request.SetRequestURI(uri)
	rc.Request.SetBodyString(body)
	if auth != "" {
		rc.Request.Header.Set("Authorization", auth)
	}
	handle(&rc)
	a, err := seckill.ParseAnswer(rc.Response.Body())
	if err != nil {
		t.Fatalf("%s %s: %v", method, uri, err)
	}
	if rc.Response.StatusCode() != a.Code.HTTPStatus() {
		t.Errorf("%s %s: status %d for %s", method, uri, rc.Response.StatusCode(), a.Code)
	}
	return a, &rc
}

var tokenKey = seckill.TokenKey{ID: "k1", Secret: []byte("0123456789abcdef")}

func bearer(t *testing.T, user, activity int64) string {
	t.Helper()
	codec, err := seckill.NewTokenCodec(tokenKey)
	if err != nil {
		t.Fatal(err)
	}
	return "Bearer " + string(codec.AppendSigned(nil, user, activity, time.Now().Add(time.Hour).Unix()))
}

// order takes a user to an order, and returns its id.
func (f *fixture) newOrder(user int64, request string) string {
	f.Helper()
	f.consume(f.reserve(user, request))
	var id string
	f.must(f.pool.QueryRow(f.Context(), `SELECT order_id FROM orders WHERE activity_id = $1 AND user_id = $2`, f.activityID, user).Scan(&id))
	return id
}

func TestPayAndCancelByTheContract(t *testing.T) { // R1.8
	f := setup(t, 4)
	handle, err := orders.Handler(t.Context(), f.service(), tokenKey)
	f.must(err)
	post := func(user int64, id, what, body string) seckill.Answer {
		a, _ := call(t, handle, "POST", "/v1/seckill/orders/"+id+what, bearer(t, user, f.activityID), body)
		return a
	}
	paid, cancelled, late := f.newOrder(1, "r1"), f.newOrder(2, "r2"), f.newOrder(3, "r3")
	f.exec(`UPDATE orders SET payment_due_at = now() - interval '1 second' WHERE order_id = '` + late + `'`)
	unknown := "ord_" + strings.Repeat("0", 26)
	for _, step := range []struct {
		name, id, what, body string
		user                 int64
		code                 seckill.Code
		status, field        string
		replayed             bool
	}{
		{"another user", paid, "/pay", "", 2, seckill.CodeForbidden, "", "", false},
		{"pay", paid, "/pay", "", 1, seckill.CodeFound, "PAID", "", false},
		{"pay again", paid, "/pay", "{}", 1, seckill.CodeFound, "PAID", "", true},
		{"cancel what is paid", paid, "/cancel", "", 1, seckill.CodeOrderEnded, "PAID", "", false},
		{"cancel", cancelled, "/cancel", " {} ", 2, seckill.CodeFound, "CANCELLED", "", false},
		{"cancel again", cancelled, "/cancel", "", 2, seckill.CodeFound, "CANCELLED", "", true},
		{"pay what is cancelled", cancelled, "/pay", "", 2, seckill.CodeOrderEnded, "CANCELLED", "", false},
		{"pay too late", late, "/pay", "", 3, seckill.CodeOrderEnded, "EXPIRED", "", false},
		{"cancel too late", late, "/cancel", "", 3, seckill.CodeOrderEnded, "EXPIRED", "", false},
		{"an unknown order", unknown, "/pay", "", 1, seckill.CodeProcessing, "", "", false},
		{"no order id", "12", "/pay", "", 1, seckill.CodeInvalidRequest, "", "order_id", false},
		{"a body", paid, "/pay", `{"amount":1}`, 1, seckill.CodeInvalidRequest, "", "body", false},
		{"another verb", paid, "/refund", "", 1, seckill.CodeNotFound, "", "", false},
		{"no verb", paid, "", "", 1, seckill.CodeMethodNotAllowed, "", "", false},
		{"a verb too many", paid, "/pay/cancel", "", 1, seckill.CodeNotFound, "", "", false},
	} {
		a := post(step.user, step.id, step.what, step.body)
		if a.Code != step.code || a.Status != step.status || a.Field != step.field || a.Replayed != step.replayed {
			t.Errorf("%s: %+v", step.name, a)
		}
		if step.status != "" && (a.OrderID != step.id || a.ReservationID == "" || a.RequestID == "") {
			t.Errorf("%s names no order: %+v", step.name, a)
		}
	}
	if a, rc := call(t, handle, "POST", "/v1/seckill/orders/"+paid+"/pay", "", ""); a.Code != seckill.CodeUnauthenticated || len(rc.Response.Header.Peek("WWW-Authenticate")) == 0 {
		t.Errorf("without a token: %+v", a)
	}
	if a, _ := call(t, handle, "POST", "/v1/seckill/orders/"+paid+"/pay", bearer(t, 1, f.activityID+1), ""); a.Code != seckill.CodeForbidden {
		t.Errorf("with another activity's token: %+v", a)
	}

	// What the user then sees: of the order at once, of the request when the
	// event came home.
	s := f.service()
	ends := map[int64][3]string{1: {paid, "PAID", "ORDER_CREATED"}, 2: {cancelled, "CANCELLED", "CANCELLED"}, 3: {late, "EXPIRED", "EXPIRED"}}
	shown := func(when string, compensated bool) {
		for user, end := range ends {
			if a := s.ByOrder(t.Context(), f.activityID, user, end[0]); a.Code != seckill.CodeFound || a.Status != end[1] {
				t.Errorf("%s, order of user %d: %+v", when, user, a)
			}
			want := end[2]
			if compensated && user != 1 {
				want = seckill.StatusCompensated
			}
			if a := s.ByRequest(t.Context(), f.activityID, f.skuID, user, "r"+strconv.FormatInt(user, 10)); a.Status != want || a.OrderID != end[0] {
				t.Errorf("%s, request of user %d: %+v", when, user, a)
			}
		}
	}
	shown("before the event", false)
	f.project()
	shown("after the event", true)
}

// R15.11 R7.4.7: who was told that his order is cancelled, or expired, is not told by
// his request that it lives, while the compensation is still on its way. The
// unit waits for that.
func TestAnEndIsShownBeforeItsEventComes(t *testing.T) {
	f := setup(t, 4)
	s := f.service()
	cancelled, late := f.newOrder(1, "r1"), f.newOrder(2, "r2")
	f.project()
	stock, err := f.redis.Stock(t.Context(), f.activityID, f.skuID)
	f.must(err)
	f.exec(`UPDATE orders SET payment_due_at = now() - interval '1 second' WHERE order_id = '` + late + `'`)
	if a := s.Cancel(t.Context(), f.activityID, 1, cancelled); a.Status != "CANCELLED" {
		t.Fatalf("%+v", a)
	}
	if a := s.Pay(t.Context(), f.activityID, 2, late); a.Status != "EXPIRED" {
		t.Fatalf("%+v", a)
	}
	for user, want := range map[int64]string{1: "CANCELLED", 2: "EXPIRED"} {
		if a := s.ByRequest(t.Context(), f.activityID, f.skuID, user, "r"+strconv.FormatInt(user, 10)); a.Code != seckill.CodeFound || a.Status != want || a.OrderID == "" {
			t.Errorf("user %d is told %+v", user, a)
		}
	}
	if now, err := f.redis.Stock(t.Context(), f.activityID, f.skuID); err != nil || now != stock {
		t.Errorf("stock went from %d to %d, %v", stock, now, err)
	}
	f.project() // all again, the creations too
	for user := int64(1); user <= 2; user++ {
		if a := s.ByRequest(t.Context(), f.activityID, f.skuID, user, "r"+strconv.FormatInt(user, 10)); a.Status != seckill.StatusCompensated {
			t.Errorf("after the event user %d is told %+v", user, a)
		}
	}
}

// stuck is an ender that answers as told.
type stuck struct {
	entered chan struct{}
	leave   chan struct{}
	err     error
}

func (s *stuck) Pay(context.Context, lifecycle.Claim) (lifecycle.Outcome, error) {
	s.entered <- struct{}{}
	<-s.leave
	return lifecycle.Outcome{Status: seckill.OrderPaid, Changed: true}, s.err
}

func (s *stuck) Cancel(ctx context.Context, c lifecycle.Claim) (lifecycle.Outcome, error) {
	return s.Pay(ctx, c)
}

// A call too many is turned away with nothing changed; an outcome nobody
// knows is said to be that.
func TestEndsAreBoundedAndHonest(t *testing.T) { // R7.11.7
	f := setup(t, 1)
	e := &stuck{make(chan struct{}), make(chan struct{}), errors.New("commit: connection reset")}
	s := f.service(func(c *orders.Config) { c.Ender, c.EndLimit, c.EndWait = e, 1, time.Millisecond })
	first := make(chan seckill.Answer)
	go func() { first <- s.Pay(t.Context(), f.activityID, 1, "ord_1") }()
	<-e.entered
	if a := s.Cancel(t.Context(), f.activityID, 1, "ord_1"); a.Code != seckill.CodeRateLimited || a.RetryAfterMS == 0 {
		t.Errorf("the second: %+v", a)
	}
	close(e.leave)
	if a := <-first; a.Code != seckill.CodeUnavailable || a.Status != "" || a.RetryAfterMS == 0 || !strings.Contains(a.Reason, "again") {
		t.Errorf("the first: %+v", a)
	}
	if s.Stats().EndFails.Load() != 1 || s.Stats().RateLimited.Load() != 1 {
		t.Error("not counted")
	}
}

func TestAnOrdersServiceNeedsItsParts(t *testing.T) {
	f := setup(t, 1)
	for name, mend := range map[string]func(*orders.Config){
		"no ender": func(c *orders.Config) { c.Ender = nil }, "a negative wait": func(c *orders.Config) { c.EndWait = -1 },
		"too many at once": func(c *orders.Config) { c.EndLimit = 1001 },
	} {
		c := orders.Config{Cache: f.cache, Pool: f.pool, Ender: &stuck{}}
		mend(&c)
		if _, err := orders.New(c); err == nil {
			t.Error(name)
		}
	}
}
