package traffic

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

var key = seckill.TokenKey{ID: "k1", Secret: []byte("0123456789abcdef0123456789abcdef")}

func TestRequestsAreWellFormedAndSayWhatTheWorkloadPicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := rundir.Workload{Seed: rapid.Uint64().Draw(t, "seed"), FirstUser: 1_000_000, RepeatPermille: 300, ConflictPermille: 50, SameUserPermille: 100}
		newSource, err := Sources(Params{Workload: w, ActivityID: 10001, SKUID: 20001, Key: key, ExpiresAt: 1 << 40, Host: "edge"})
		if err != nil {
			t.Fatal(err)
		}
		n := rapid.Uint64Range(0, 1<<22).Draw(t, "n")
		out, subject, ordinal := newSource().Append(nil, n)
		pick := w.Pick(n)
		if subject != uint64(pick.User) || ordinal != pick.Ordinal {
			t.Fatalf("request %d is of user %d ordinal %d, the workload picks %+v", n, subject, ordinal, pick)
		}
		req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(out)))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		if got["request_id"] != w.RequestID(pick.Ordinal) || got["activity_id"] != 10001.0 || got["sku_id"] != 20001.0 || got["quantity"] != 1.0 {
			t.Fatalf("body is %s", body)
		}
		codec, err := seckill.NewTokenCodec(key)
		if err != nil {
			t.Fatal(err)
		}
		token := bytes.TrimPrefix([]byte(req.Header.Get("Authorization")), []byte("Bearer "))
		who, err := codec.Verify(token, 0)
		if err != nil || who.UserID != pick.User || who.ActivityID != 10001 {
			t.Fatalf("token says %+v, %v", who, err)
		}
	})
}

func TestEveryAnswerOfTheContractIsExtracted(t *testing.T) {
	ids := seckill.ReservationIDOfTag([16]byte{1, 2, 3})
	for _, code := range seckill.Codes() {
		for _, a := range []seckill.Answer{
			{Code: code, RequestID: "r-1", ReservationID: ids, Status: "PENDING_MESSAGE", Replayed: true},
			{Code: code, RequestID: "r-1", Reason: `"reservation_id" "quoted"`},
		} {
			got, tag := Extract(code.HTTPStatus(), a.AppendJSON(nil))
			want, _ := seckill.ReservationTag([]byte(a.ReservationID))
			if got != uint8(code) || tag != want {
				t.Errorf("%s: extracted %d %x, want %d %x", a.AppendJSON(nil), got, tag, code, want)
			}
		}
	}
	for _, foreign := range []string{"", "{}", `{"code":"WAT"}`, `{"code":"`, `<html>`} {
		if code, _ := Extract(200, []byte(foreign)); code != 0 {
			t.Errorf("%q: extracted code %d, want none", foreign, code)
		}
	}
}
