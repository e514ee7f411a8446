package access

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/hotsku/hotsku/system/admission"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// once lets one request through for a long time.
var once = admission.Limit{PerSecond: 0.01, Burst: 1}

var anHour = time.Now().Add(time.Hour).Unix()

// orderWith is a good order with more headers.
func orderWith(user int64, headers string) string {
	return post(headers+bearerOf(user, 7, anHour), `{"activity_id":7,"sku_id":8,"request_id":"r","quantity":1}`)
}

// R7.4.2 R10.1: each stage turns away what it is there for, says so, changes
// nothing, and lets it through when it is switched off.
func TestEachStageOfTheFunnelCanBeSwitchedOff(t *testing.T) {
	forwarded := func(addr string) string { return "X-Forwarded-For: " + addr + "\r\n" }
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	for stage, c := range map[admission.Stage]struct {
		limits        admission.LimitsConfig
		gate          sold
		first, second string
		code          seckill.Code
	}{
		admission.StageProcessLimit: {admission.LimitsConfig{Process: once}, nil, orderWith(1, ""), orderWith(2, ""), seckill.CodeRateLimited},
		admission.StageUserLimit:    {admission.LimitsConfig{User: once}, nil, orderWith(1, ""), orderWith(1, ""), seckill.CodeRateLimited},
		admission.StageIPLimit:      {admission.LimitsConfig{IP: once}, nil, orderWith(1, ""), orderWith(2, forwarded("192.0.2.1")), seckill.CodeRateLimited},
		admission.StageDeviceLimit: {admission.LimitsConfig{Device: once}, nil, orderWith(1, "x-device-id: d\r\n"),
			orderWith(2, "X-Device-Id: d\r\n"), seckill.CodeRateLimited},
		admission.StageGate:  {admission.LimitsConfig{}, sold{2: true}, orderWith(1, ""), orderWith(2, ""), seckill.CodeSoldOut},
		admission.StageToken: {admission.LimitsConfig{}, nil, orderWith(1, "X-User-Id: 1\r\n"), post("X-User-Id: 2\r\n", `{"activity_id":7,"sku_id":8,"request_id":"r","quantity":1}`), seckill.CodeUnauthenticated},
	} {
		t.Run(stage.String(), func(t *testing.T) {
			sub := newHeld()
			_, addr := start(t, Config{Limits: c.limits}, c.gate, sub)
			cl := dial(t, addr)
			cl.send(t, c.first+c.second)
			sub.next(t).queued()
			if _, a, _ := cl.answer(t); a.Code != seckill.CodeQueued {
				t.Fatalf("the first is answered %+v", a)
			}
			status, a, resp := cl.answer(t)
			if a.Code != c.code || status != c.code.HTTPStatus() {
				t.Errorf("the second is answered %d %+v, want %s", status, a, c.code)
			}
			if c.code == seckill.CodeRateLimited {
				if a.Reason != stage.String() || a.RetryAfterMS <= 99_000 || a.RetryAfterMS > 100_000 || resp.Header.Get("Retry-After") != "100" {
					t.Errorf("answered %+v with Retry-After %q, want %s and about 100 s", a, resp.Header.Get("Retry-After"), stage)
				}
			}
			if len(sub.tickets) > 0 {
				t.Error("the second was submitted")
			}

			sub = newHeld()
			_, addr = start(t, Config{Limits: c.limits, Without: admission.StageSet(0).With(stage)}, c.gate, sub)
			cl = dial(t, addr)
			cl.send(t, c.first+c.second)
			for range 2 {
				sub.next(t).queued()
			}
			for range 2 {
				if _, a, _ := cl.answer(t); a.Code != seckill.CodeQueued {
					t.Errorf("without the stage: answered %+v", a)
				}
			}
		})
	}
	t.Run("trusted peers", func(t *testing.T) {
		sub := newHeld()
		_, addr := start(t, Config{Limits: admission.LimitsConfig{IP: once, TrustedPeers: loopback}}, sold{}, sub)
		cl := dial(t, addr)
		cl.send(t, orderWith(1, forwarded("192.0.2.1"))+orderWith(2, forwarded("192.0.2.2"))+orderWith(3, forwarded("192.0.2.9, 192.0.2.1")))
		for range 2 {
			sub.next(t).queued()
		}
		for i, want := range []seckill.Code{seckill.CodeQueued, seckill.CodeQueued, seckill.CodeRateLimited} {
			if _, a, _ := cl.answer(t); a.Code != want {
				t.Errorf("request %d is answered %+v, want %s", i, a, want)
			}
		}
	})
}

// Contracts 1: only INVALID_REQUEST and the process-wide RATE_LIMITED come
// before the token is looked at.
func TestTheTokenIsVerifiedBeforeAnyOtherLimit(t *testing.T) {
	all := admission.LimitsConfig{User: once, IP: once, Device: once}
	_, addr := start(t, Config{Limits: all}, sold{1: true}, newHeld())
	c := dial(t, addr)
	const bad = `{"activity_id":7,"sku_id":8,"request_id":"r","quantity":1}`
	c.send(t, orderWith(1, "X-Device-Id: d\r\n")) // uses every limit up
	c.answer(t)
	c.send(t, post("X-Device-Id: d\r\n", bad))
	if _, a, _ := c.answer(t); a.Code != seckill.CodeUnauthenticated {
		t.Errorf("answered %+v", a)
	}
	all.Process = once
	_, addr = start(t, Config{Limits: all}, sold{}, newHeld())
	c = dial(t, addr)
	c.send(t, post("", bad)+post("", bad)+post("", `{}`))
	for i, want := range []seckill.Code{seckill.CodeUnauthenticated, seckill.CodeRateLimited, seckill.CodeInvalidRequest} {
		if _, a, _ := c.answer(t); a.Code != want {
			t.Errorf("request %d is answered %+v, want %s", i, a, want)
		}
	}
}

func TestWithoutTheTokenStageTheUserIsWhoTheHeaderSays(t *testing.T) {
	sub := newHeld()
	_, addr := start(t, Config{Without: admission.StageSet(0).With(admission.StageToken)}, sold{}, sub)
	c := dial(t, addr)
	const good = `{"activity_id":7,"sku_id":8,"request_id":"r","quantity":1}`
	c.send(t, post("X-User-Id: 30001\r\n", good))
	k := sub.next(t)
	k.queued()
	if k.cmd.UserID != 30001 {
		t.Errorf("user %d was submitted", k.cmd.UserID)
	}
	c.answer(t)
	for _, header := range []string{"", "X-User-Id: x\r\n", "X-User-Id: -1\r\n", "X-User-Id: 0\r\n", bearerOf(1, 7, anHour)} {
		c.send(t, post(header, good))
		if _, a, _ := c.answer(t); a.Code != seckill.CodeUnauthenticated {
			t.Errorf("%q: answered %+v", header, a)
		}
	}
}

// R10.1 R12.1: every request is counted once where it ended, and passed
// every stage before; every answer once under its SKU and code, and once in
// the durations.
func TestRequestsAreCountedWhereTheyEnd(t *testing.T) {
	sub := newHeld()
	s, addr := start(t, Config{Limits: admission.LimitsConfig{User: once}}, sold{3: true}, sub)
	c := dial(t, addr)
	c.send(t, post("", `{}`)+ // not well-formed
		post("", `{"activity_id":7,"sku_id":8,"request_id":"r","quantity":1}`)+ // no token
		orderWith(1, "")+orderWith(1, "")+ // reserved; over the user's limit
		orderWith(2, "")+ // repeated
		orderWith(3, "")+ // sold out
		post(bearerOf(5, 9, anHour), `{"activity_id":9,"sku_id":8,"request_id":"r","quantity":1}`)) // not on sale
	for range 3 {
		k := sub.next(t)
		switch k.cmd.UserID {
		case 1:
			k.queued()
		case 2:
			k.to.Reply(&seckill.Answer{Code: seckill.CodeQueued, Replayed: true})
		default:
			k.to.Reply(&seckill.Answer{Code: seckill.CodeActivityInvalid})
		}
	}
	for range 7 {
		c.answer(t)
	}
	c.Close()
	ended(t, s) // counted by now

	for stage, want := range map[admission.Stage][2]int64{admission.StageRequest: {6, 1}, admission.StageProcessLimit: {6, 0}, admission.StageToken: {5, 1},
		admission.StageUserLimit: {4, 1}, admission.StageIPLimit: {4, 0}, admission.StageDeviceLimit: {4, 0}, admission.StageGate: {3, 1}, admission.StageInFlightCap: {3, 0}} {
		if got := [2]int64{s.Stats.Passed[stage].Load(), s.Stats.Rejected[stage].Load()}; got != want {
			t.Errorf("%s: passed and rejected %v, want %v", stage, got, want)
		}
	}
	skus := s.Stats.SKUs()
	sku, others := skus[reservation.SKU{ActivityID: 7, SKUID: 8}], skus[reservation.SKU{}]
	if len(skus) != 2 || sku == nil {
		t.Fatalf("counted apart: %v", skus)
	}
	if r, a, d, o := sku.Requests.Load(), sku.Accepted.Load(), sku.Repeated.Load(), others.Requests.Load(); r != 5 || a != 1 || d != 1 || o != 2 {
		t.Errorf("%d requests, %d accepted, %d repeated, %d others, want 5 1 1 2", r, a, d, o)
	}
	for code, want := range map[seckill.Code]int64{seckill.CodeQueued: 2, seckill.CodeUnauthenticated: 1, seckill.CodeRateLimited: 1, seckill.CodeSoldOut: 1} {
		if got := sku.Answers[code].Load(); got != want {
			t.Errorf("%d answers %s, want %d", got, code, want)
		}
		if n, total, _ := s.Stats.Durations[code].Read(); n != want || total <= 0 {
			t.Errorf("%d durations of %s, %v in all, want %d", n, code, total, want)
		}
	}
	for code, want := range map[seckill.Code]int64{seckill.CodeInvalidRequest: 1, seckill.CodeActivityInvalid: 1} {
		if got := others.Answers[code].Load(); got != want {
			t.Errorf("%d other answers %s, want %d", got, code, want)
		}
	}
}

// every is a gate that knows every SKU.
type every struct{ sold }

func (every) Knows(_, _ int64) bool { return true }

// R12.7: however many SKUs are asked for, the labels are bounded.
func TestTheNumberOfSKUsCountedApartIsBounded(t *testing.T) {
	s, addr := start(t, Config{}, every{sold{1: true}}, newHeld())
	c := dial(t, addr)
	const skus = 3 * skusMax
	var text strings.Builder
	for sku := range skus {
		text.WriteString(post(bearerOf(1, 7, anHour), fmt.Sprintf(`{"activity_id":7,"sku_id":%d,"request_id":"r","quantity":1}`, sku+1)))
	}
	c.send(t, text.String())
	for range skus {
		c.answer(t)
	}
	c.Close()
	ended(t, s)
	total := int64(0)
	for _, sku := range s.Stats.SKUs() {
		total += sku.Requests.Load()
	}
	if n := len(s.Stats.SKUs()); n != skusMax+1 || total != skus {
		t.Errorf("%d SKUs with %d requests, want %d with %d", n, total, skusMax+1, skus)
	}
}

func TestEveryCodeHasItsCounters(t *testing.T) {
	for _, c := range seckill.Codes() {
		if int(c) >= codes {
			t.Errorf("%s is %d: raise codes", c, c)
		}
	}
}

func TestConfigIsValidated(t *testing.T) {
	if err := ConfigDefault.Validate(); err != nil {
		t.Error(err)
	}
	for field, bad := range map[string]Config{
		"connections": {Connections: -1}, "head limit": {HeadLimitBytes: 10}, "body limit": {BodyLimitBytes: 10}, "timeout": {IdleTimeout: -1},
		"ip-limit": {Limits: admission.LimitsConfig{IP: admission.Limit{PerSecond: 1e6, Burst: 1}}}, "slots": {Limits: admission.LimitsConfig{User: once, Slots: -1}},
	} {
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: error is %v", field, err)
		}
	}
}
