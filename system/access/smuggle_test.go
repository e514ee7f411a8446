package access

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/hotsku/hotsku/system/seckill"
)

// A request whose length two parsers might read differently ends its
// connection: what follows it is never taken for a request, or a client behind
// a gateway could speak in another's name.
func TestNothingIsSmuggledBehindAnAmbiguousLength(t *testing.T) {
	inner := orderOf(1, "smuggled")
	n := len(inner)
	none := "0\r\n\r\n" + inner // no chunk, then the order
	whole := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", n, inner)
	for name, c := range map[string][2]string{
		"two lengths":             {fmt.Sprintf("Content-Length: 0\r\nContent-Length: %d", n), inner},
		"two lengths, long first": {fmt.Sprintf("Content-Length: %d\r\nContent-Length: 0", n), inner},
		"a list of lengths":       {"Content-Length: 0, 0", inner},
		"a signed length":         {"Content-Length: +0", inner},
		"length, then chunked":    {fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked", n+5), none},
		"chunked, then length":    {fmt.Sprintf("Transfer-Encoding: chunked\r\nContent-Length: %d", n+5), none},
		"length 0 and chunked":    {"Content-Length: 0\r\nTransfer-Encoding: chunked", whole},
		"unknown encoding":        {"Transfer-Encoding: xchunked", inner},
		"and a length":            {"Transfer-Encoding: xchunked\r\nContent-Length: 0", inner},
		"identity and a length":   {"Transfer-Encoding: identity\r\nContent-Length: 0", inner},
		"two encodings":           {"Transfer-Encoding: chunked, identity\r\nContent-Length: 0", inner},
		"space before the colon":  {"Transfer-Encoding : chunked\r\nContent-Length: 0", inner},
		"a folded encoding":       {"Transfer-Encoding:\r\n chunked\r\nContent-Length: 0", inner},
		"a chunk of 2^64 bytes":   {"Transfer-Encoding: chunked", "10000000000000000\r\n\r\n" + none},
		"a chunk of -0 bytes":     {"Transfer-Encoding: chunked", "-0\r\n\r\n" + inner},
		"lines without a return":  {"Transfer-Encoding: chunked", "2\n{}\n0\n\n" + inner},
		"a length in the trailer": {"Transfer-Encoding: chunked", "0\r\nContent-Length: 9\r\n\r\n" + inner},
	} {
		t.Run(name, func(t *testing.T) {
			sub := newHeld()
			_, addr := start(t, Config{}, sold{1: true}, sub)
			cl := dial(t, addr)
			cl.send(t, "POST "+Path+" HTTP/1.1\r\nHost: x\r\n"+c[0]+"\r\n\r\n"+c[1])
			if _, a, resp := cl.answer(t); a.Code != seckill.CodeInvalidRequest || !resp.Close {
				t.Errorf("answered %+v, close %t", a, resp.Close)
			}
			if rest, err := io.ReadAll(cl.r); len(rest) > 0 || err != nil {
				t.Errorf("then %q, %v; want the end", rest, err)
			}
		})
	}
	t.Run("the order by itself", func(t *testing.T) { // would be answered
		_, addr := start(t, Config{}, sold{1: true}, newHeld())
		cl := dial(t, addr)
		cl.send(t, strings.Repeat(inner, 2))
		for range 2 {
			if _, a, _ := cl.answer(t); a.Code != seckill.CodeSoldOut {
				t.Errorf("answered %+v", a)
			}
		}
	})
}

// A request may arrive in two parts cut anywhere, behind another and before
// one: the answers are the same.
func TestARequestCutAnywhereIsAnswered(t *testing.T) {
	_, addr := start(t, Config{}, sold{2: true, 4: true, 6: true}, newHeld())
	text := orderOf(2, "before") + orderOf(4, "cut") + orderOf(6, "after")
	first := len(orderOf(2, "before"))
	cl := dial(t, addr)
	for at := first; at < len(text); at++ {
		cl.send(t, text[:at])
		if _, a, _ := cl.answer(t); a.RequestID != "before" { // the first part has been read
			t.Fatalf("cut at %d: answered %+v", at, a)
		}
		cl.send(t, text[at:])
		for _, want := range []string{"cut", "after"} {
			if _, a, _ := cl.answer(t); a.RequestID != want || a.Code != seckill.CodeSoldOut {
				t.Fatalf("cut at %d: answered %+v, want %s", at, a, want)
			}
		}
	}
}
