package seckill

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAnswerKeepsItsFormat(t *testing.T) {
	var lines []string
	for _, a := range []Answer{
		{Code: CodeQueued, RequestID: "r7-1", ReservationID: "resv_01HZZZZZZZZZZZZZZZZZZZZZZZ", Status: "MESSAGE_SENT"},
		{Code: CodeQueuedPending, RequestID: "r7-1", ReservationID: "resv_01HZZZZZZZZZZZZZZZZZZZZZZZ", Status: "PENDING_MESSAGE", Replayed: true},
		{Code: CodeSoldOut, RequestID: "r7-2"},
		{Code: CodeDuplicateUser, RequestID: "r7-3", ReservationID: "resv_01HZZZZZZZZZZZZZZZZZZZZZZZ"},
		{Code: CodeInvalidRequest, Field: "quantity", Reason: "must be 1"},
		{Code: CodeRateLimited, RetryAfterMS: 50},
		{Code: CodeFound, ReservationID: "resv_01HZZZZZZZZZZZZZZZZZZZZZZZ", Status: "ORDER_CREATED", OrderID: "ord_01HZZZZZZZZZZZZZZZZZZZZZZZ"},
	} {
		lines = append(lines, string(a.AppendJSON(nil)))
	}
	want, err := os.ReadFile("testdata/answers.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(lines, "\n") + "\n"; got != string(want) {
		t.Errorf("answers are now\n%swant\n%s", got, want)
	}
}

func drawAnswer(t *rapid.T) Answer {
	text := rapid.OneOf(rapid.Just(""), rapid.String(), rapid.StringMatching(`[a-z0-9_<>&"\\-]{1,30}`))
	return Answer{
		Code:          rapid.SampledFrom(Codes()).Draw(t, "code"),
		RequestID:     text.Draw(t, "request id"),
		ReservationID: text.Draw(t, "reservation id"),
		Status:        text.Draw(t, "status"),
		OrderID:       text.Draw(t, "order id"),
		Replayed:      rapid.Bool().Draw(t, "replayed"),
		Field:         text.Draw(t, "field"),
		Reason:        text.Draw(t, "reason"),
		RetryAfterMS:  rapid.Int64().Draw(t, "retry after"),
	}
}

func TestAppendJSONIsWhatEncodingJSONWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawAnswer(t)
		want, err := json.Marshal(&a)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.AppendJSON([]byte("x")); string(got) != "x"+string(want) {
			t.Fatalf("AppendJSON wrote %s\nencoding/json %s", got[1:], want)
		}
	})
}

func TestParseAnswerReadsWhatAppendJSONWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawAnswer(t)
		got, err := ParseAnswer(a.AppendJSON(nil))
		if err != nil || got != a {
			t.Fatalf("%+v came back as %+v, %v", a, got, err)
		}
	})
}

func TestParseAnswerRefusesWhatNoEdgeAnswers(t *testing.T) { // R9.1.2
	for name, body := range map[string]string{
		"no JSON": "<html>", "no code": `{"request_id":"r"}`, "empty code": `{"code":""}`, "unknown code": `{"code":"MAYBE"}`, "empty": "",
	} {
		if a, err := ParseAnswer([]byte(body)); err == nil {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if a, err := ParseAnswer([]byte(`{"code":"QUEUED","newer":1}`)); err != nil || a.Code != CodeQueued {
		t.Errorf("a newer field: %+v, %v", a, err)
	}
}

func TestAppendJSONDoesNotAllocate(t *testing.T) {
	a := Answer{Code: CodeSoldOut, RequestID: "r7-123", RetryAfterMS: 7}
	buf := make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() { buf = a.AppendJSON(buf[:0]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
