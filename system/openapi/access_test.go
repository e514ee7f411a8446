package openapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/hotsku/hotsku/system/access"
	"github.com/hotsku/hotsku/system/access/submit"
	"github.com/hotsku/hotsku/system/admission"
	"github.com/hotsku/hotsku/system/openapi"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = seckill.TokenKey{ID: "k1", Secret: []byte("0123456789abcdef0123456789abcdef")}

// The users for whom the store below has a verdict of its own.
const (
	userNew = iota + 1
	userUnconfirmed
	userReplayed
	userReplayedPending
	userCompensated
	userConflict
	userDuplicate
	userNotOpen
	userSoldOut
	userRedisDown
	userLimited
	userGate
)

// store judges by the user alone.
type store struct{ submit.Store }

func (store) Reserve(_ context.Context, _, _ int64, candidates []reservation.Candidate) (reservation.Batch, error) {
	now := time.Now()
	b := reservation.Batch{ReservedAt: now, ExpiresAt: now.Add(time.Hour), ActivityVersion: 1}
	known := seckill.ReservationIDOfTag([16]byte{1})
	for _, c := range candidates {
		o := reservation.Outcome{Verdict: reservation.VerdictCreated, ReservationID: c.ReservationID}
		switch c.UserID {
		case userReplayed:
			o = reservation.Outcome{Verdict: reservation.VerdictReplayed, ReservationID: known, Status: string(seckill.StatusOrderCreated),
				OrderID: "ord_" + strings.TrimPrefix(known, "resv_")}
		case userReplayedPending:
			o = reservation.Outcome{Verdict: reservation.VerdictReplayed, ReservationID: known, Status: string(seckill.StatusPendingMessage)}
		case userCompensated:
			o = reservation.Outcome{Verdict: reservation.VerdictReplayed, ReservationID: known, Status: seckill.StatusCompensated}
		case userConflict:
			o = reservation.Outcome{Verdict: reservation.VerdictConflict}
		case userDuplicate:
			o = reservation.Outcome{Verdict: reservation.VerdictDuplicateUser, ReservationID: known}
		case userNotOpen:
			o = reservation.Outcome{Verdict: reservation.VerdictNotOpen}
		case userSoldOut:
			o = reservation.Outcome{Verdict: reservation.VerdictSoldOut}
		case userRedisDown:
			return reservation.Batch{}, errors.New("down")
		}
		b.Outcomes = append(b.Outcomes, o)
	}
	return b, nil
}

func (store) MarkSent(context.Context, int64, int64, []string) error { return nil }
func (store) NoteFailure(context.Context, int64, int64, []string, string) error {
	return nil
}

// sender confirms all but one user's message.
type sender struct{}

func (sender) SendOrderCreates(messages []seckill.OrderCreateMessage) error {
	for _, m := range messages {
		if m.UserID == userUnconfirmed {
			return errors.New("timeout")
		}
	}
	return nil
}

type gate struct{}

func (gate) Refuses(_, _, user int64) bool { return user == userGate }
func (gate) Knows(_, _ int64) bool         { return true }

// patient has time for a busy machine.
func patient() submit.Config {
	c := submit.ConfigDefault
	c.QueueWait, c.ReserveTimeout, c.CallTimeout, c.SendTimeout, c.AnswerBudget = time.Second, 10*time.Second, 10*time.Second, time.Second, time.Second
	return c
}

// edge serves the real edge and the real way to these stores.
func edge(t *testing.T) (url string) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	path, err := submit.New(submit.Params{Config: patient(), Store: store{}, Sender: sender{},
		IDs: seckill.NewIDGenerator(time.Now, [32]byte{1}), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	cfg := access.ConfigDefault
	cfg.Limits.User = admission.Limit{PerSecond: 100_000, Burst: 1_000_000}
	cfg.Limits.Device = admission.Limit{PerSecond: 0.01, Burst: 1}
	s, err := access.New(access.Params{Config: cfg, Keys: []seckill.TokenKey{key}, Gate: gate{}, Submit: path, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	path.Start()
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := errors.Join(s.Shutdown(ctx), <-served); err != nil {
			t.Error(err)
		}
		path.Stop()
	})
	return "http://" + ln.Addr().String()
}

func bearer(user, activity int64) string {
	codec, err := seckill.NewTokenCodec(key)
	if err != nil {
		panic(err)
	}
	return "Bearer " + string(codec.AppendSigned(nil, user, activity, time.Now().Add(time.Hour).Unix()))
}

func do(t testing.TB, method, url, auth, body string, header ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if auth != "" {
		req.Header.Set("Authorization", auth)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// R9.1.2 R7.4.2: whatever becomes of an order request, the answer is one the
// document promises, with the fields and headers it promises.
func TestEveryAnswerOfAccessIsAsDocumented(t *testing.T) {
	s, url := load(t), edge(t)
	const good = `{"activity_id":7,"sku_id":8,"request_id":"r1","quantity":1}`
	do(t, "POST", url+access.Path, bearer(userLimited, 7), good, "X-Device-Id", "d")
	for _, c := range []struct {
		rule, auth, body string
		want             seckill.Code
		header           []string
	}{
		{"reserved and confirmed", bearer(userNew, 7), good, seckill.CodeQueued, nil},
		{"reserved, the send unknown", bearer(userUnconfirmed, 7), good, seckill.CodeQueuedPending, nil},
		{"sent again, ordered by now", bearer(userReplayed, 7), good, seckill.CodeQueued, nil},
		{"sent again, still pending", bearer(userReplayedPending, 7), good, seckill.CodeQueuedPending, nil},
		{"sent again, compensated by now", bearer(userCompensated, 7), good, seckill.CodeQueued, nil},
		{"another payload", bearer(userConflict, 7), good, seckill.CodeIdempotencyConflict, nil},
		{"a second order", bearer(userDuplicate, 7), good, seckill.CodeDuplicateUser, nil},
		{"not open", bearer(userNotOpen, 7), good, seckill.CodeActivityInvalid, nil},
		{"sold out by Redis", bearer(userSoldOut, 7), good, seckill.CodeSoldOut, nil},
		{"sold out by the gate", bearer(userGate, 7), good, seckill.CodeSoldOut, nil},
		{"Redis is down", bearer(userRedisDown, 7), good, seckill.CodeUnavailable, nil},
		{"over the device's limit", bearer(userLimited, 7), good, seckill.CodeRateLimited, []string{"X-Device-Id", "d"}},
		{"no token", "", good, seckill.CodeUnauthenticated, nil},
		{"a token for another activity", bearer(1, 9), good, seckill.CodeForbidden, nil},
		{"a bad field", bearer(1, 7), strings.Replace(good, "8", "-8", 1), seckill.CodeInvalidRequest, nil},
		{"no JSON", bearer(1, 7), "hello", seckill.CodeInvalidRequest, nil},
		{"a large body", bearer(1, 7), strings.Repeat("x", 5000), seckill.CodeInvalidRequest, nil},
	} {
		t.Run(c.rule, func(t *testing.T) {
			resp := do(t, "POST", url+access.Path, c.auth, c.body, c.header...)
			a, err := seckill.ParseAnswer(s.check(t, "POST", access.Path, resp))
			if err != nil || a.Code != c.want {
				t.Errorf("answered %+v, %v; want %s", a, err, c.want)
			}
		})
	}
}

func TestMethodsThatAreNotDocumentedAreNotAllowed(t *testing.T) {
	s, url := load(t), edge(t)
	for path, allow := range map[string]string{access.Path: "POST", access.DocumentPath: "GET"} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"} {
			if method == allow {
				continue
			}
			resp := do(t, method, url+path, "", "")
			if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != allow {
				t.Errorf("%s %s: status %d, Allow %q", method, path, resp.StatusCode, resp.Header.Get("Allow"))
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if method == "HEAD" {
				if len(body) > 0 {
					t.Errorf("HEAD %s is answered with a body", path)
				}
				continue
			}
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(body)))
			if err == nil {
				err = s.schema(t, "MethodNotAllowed").Validate(value)
			}
			if err != nil {
				t.Errorf("%s %s: %s: %v", method, path, body, err)
			}
		}
	}
}

func TestTheDocumentIsServed(t *testing.T) {
	s, url := load(t), edge(t)
	for range 2 { // on one connection
		if body := s.check(t, "GET", access.DocumentPath, do(t, "GET", url+access.DocumentPath, "", "")); string(body) != string(openapi.Document) {
			t.Errorf("%d bytes served, the document has %d", len(body), len(openapi.Document))
		}
	}
}

// R9.1.1: a body is INVALID_REQUEST exactly when the document's schema says
// so; the field it names is one of the body's.
func TestABodyIsInvalidExactlyWhenTheDocumentSaysSo(t *testing.T) {
	s, url := load(t), edge(t)
	order := s.schema(t, "Order")
	auth := bearer(userSoldOut, 7)
	// Mostly good, so that a body often has one thing wrong with it.
	mostly := func(good string, others *rapid.Generator[string]) *rapid.Generator[string] {
		return rapid.OneOf(rapid.Just(good), rapid.Just(good), rapid.Just(good), rapid.Just(good), others)
	}
	number := rapid.SampledFrom([]string{"1", "0", "-1", "2", "999999999999999999", "1000000000000000000", "9223372036854775808",
		"123456789012345678901234567890", `"7"`, "null", "true", "[]", "{}", "1.5"})
	text := rapid.OneOf(rapid.StringMatching(`"[A-Za-z0-9_.-]{60,66}"`), rapid.SampledFrom([]string{`"a b"`, `"\u00e9"`, `"\u0061"`, `7`, `null`, `"é"`, `""`}))
	rapid.Check(t, func(t *rapid.T) {
		parts := []string{`"activity_id":` + mostly("7", number).Draw(t, "activity"), `"sku_id":` + mostly("8", number).Draw(t, "sku"),
			`"request_id":` + mostly(`"r1"`, text).Draw(t, "request"), `"quantity":` + mostly("1", number).Draw(t, "quantity")}
		switch rapid.IntRange(0, 5).Draw(t, "fields") {
		case 0:
			missing := rapid.IntRange(0, 3).Draw(t, "missing")
			parts = append(parts[:missing], parts[missing+1:]...)
		case 1:
			parts = append(parts, `"user_id":5`)
		}
		body := "{" + strings.Join(parts, ",") + "}"
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		valid := order.Validate(value) == nil
		a, err := post(url+access.Path, auth, body)
		if err != nil {
			t.Fatal(err)
		}
		if (a.Code != seckill.CodeInvalidRequest) != valid {
			t.Fatalf("%s: valid for the document: %v, answered %+v", body, valid, a)
		}
		if !valid && (!strings.Contains(body, `"`+a.Field+`"`) && !strings.Contains(a.Reason, "required") || a.Reason == "") {
			t.Fatalf("%s: answered %+v, want a field of it and a reason", body, a)
		}
	})
}

func post(url, auth, body string) (seckill.Answer, error) {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return seckill.Answer{}, err
	}
	req.Header.Set("Authorization", auth)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return seckill.Answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return seckill.Answer{}, err
	}
	a, err := seckill.ParseAnswer(text)
	if err != nil {
		return a, fmt.Errorf("status %d: %w", resp.StatusCode, err)
	}
	return a, nil
}
