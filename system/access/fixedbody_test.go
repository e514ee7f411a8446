package access

import (
	"bytes"
	"strings"
	"testing"
)

const fixedBody = `{"activity_id":7,"sku_id":8,"request_id":"r7-1","quantity":1}`

// checkFixedOrder holds the two parsers of the body together. It returns
// whether the fixed one took it.
func checkFixedOrder(t *testing.T, body []byte) bool {
	t.Helper()
	got, ok := fixedOrder(body)
	if !ok {
		return false
	}
	p := orderParser{in: body}
	want, err := p.parse()
	if err != nil || got.activityID != want.activityID || got.skuID != want.skuID || got.quantity != want.quantity ||
		!bytes.Equal(got.requestID, want.requestID) {
		t.Fatalf("%q: %+v, want %+v, %v", body, got, want, err)
	}
	return true
}

func TestOnlyTheFixedBodyIsTaken(t *testing.T) {
	for _, body := range []string{fixedBody, strings.ReplaceAll(fixedBody, "7,", "999999999999999999,")} {
		if !checkFixedOrder(t, []byte(body)) {
			t.Errorf("not taken: %s", body)
		}
	}
	for n := range fixedBody {
		if checkFixedOrder(t, []byte(fixedBody[:n])) {
			t.Errorf("taken: %s", fixedBody[:n])
		}
	}
	for name, change := range map[string][2]string{
		"a space": {`,"sku`, `, "sku`}, "a negative number": {"7,", "-7,"}, "zero": {"7,", "0,"}, "a leading zero": {"7,", "07,"},
		"no number": {"7,", ","}, "19 digits": {"7,", "1000000000000000000,"}, "a fraction": {"7,", "7.0,"}, "an escape": {"r7", `\u0072`},
		"a quote inside": {"r7", `r"`}, "a control byte": {"r7", "r\x01"}, "a byte above ASCII": {"r7", "r\xff"},
		"another quantity": {":1}", ":2}"}, "a field more": {":1}", `:1,"x":1}`}, "something after it": {"}", "} "},
	} {
		body := strings.Replace(fixedBody, change[0], change[1], 1)
		if body == fixedBody {
			t.Fatalf("%s: nothing was changed", name)
		}
		if checkFixedOrder(t, []byte(body)) {
			t.Errorf("%s: taken: %s", name, body)
		}
	}
}

// FuzzFixedOrder: whatever the fixed parser takes, the general one takes and
// reads alike.
func FuzzFixedOrder(f *testing.F) {
	f.Add([]byte(fixedBody))
	f.Add([]byte(strings.ReplaceAll(fixedBody, "r7", "\x7f\\")))
	f.Fuzz(func(t *testing.T, body []byte) { checkFixedOrder(t, body) })
}
