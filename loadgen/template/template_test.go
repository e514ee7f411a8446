package template_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/hotsku/hotsku/loadgen"
	"github.com/hotsku/hotsku/loadgen/template"
	"pgregory.net/rapid"
)

var _ loadgen.Source = (*template.Template)(nil)

func request(t *testing.T, p template.Params, n uint64) string {
	t.Helper()
	tpl, err := template.New(p)
	if err != nil {
		t.Fatal(err)
	}
	b, _, _ := tpl.Append(nil, n)
	return string(b)
}

func TestRequestsAreWhole(t *testing.T) {
	for _, tc := range []struct {
		p    template.Params
		want string
	}{
		{template.Params{URL: "http://127.0.0.1:8080"},
			"GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: hotsku-load\r\nAccept: */*\r\n\r\n"},
		{template.Params{URL: "https://example.test?q={{n}}#part"},
			"GET /?q=7 HTTP/1.1\r\nHost: example.test\r\nUser-Agent: hotsku-load\r\nAccept: */*\r\n\r\n"},
		{template.Params{URL: "http://h/items/{{n:4}}", Method: "delete", Headers: []string{"host: other", "X-User: u{{user}}", "user-agent:x", "accept: a"}},
			"DELETE /items/0007 HTTP/1.1\r\nhost: other\r\nX-User: u7\r\nuser-agent: x\r\naccept: a\r\n\r\n"},
		{template.Params{URL: "http://h/", Body: []byte(`{"n":{{n}}}`), Headers: []string{"Accept: a", "User-Agent: u"}},
			"POST / HTTP/1.1\r\nAccept: a\r\nUser-Agent: u\r\nHost: h\r\nContent-Length: 7\r\n\r\n{\"n\":7}"},
		{template.Params{URL: "http://h/", Method: "PUT", Headers: []string{"Accept: a", "User-Agent: u"}},
			"PUT / HTTP/1.1\r\nAccept: a\r\nUser-Agent: u\r\nHost: h\r\nContent-Length: 0\r\n\r\n"},
		{template.Params{URL: "http://h/", Body: []byte(`{{x}}{{`), Literal: true, Headers: []string{"Accept: a", "User-Agent: u"}},
			"POST / HTTP/1.1\r\nAccept: a\r\nUser-Agent: u\r\nHost: h\r\nContent-Length: 7\r\n\r\n{{x}}{{"},
	} {
		if got := request(t, tc.p, 7); got != tc.want {
			t.Errorf("%+v: got %q, want %q", tc.p, got, tc.want)
		}
	}
}

func TestWhatCannotBeSentIsRefused(t *testing.T) {
	for _, p := range []template.Params{
		{}, {URL: "127.0.0.1:80"}, {URL: "ftp://h/"}, {URL: "http:///x"}, {URL: "http://u:p@h/"}, {URL: "http://h/a b"}, {URL: "http://h/\r\nX: y"},
		{URL: "http://h/", Method: "HEAD"}, {URL: "http://h/", Method: "CONNECT"}, {URL: "http://h/", Method: "G ET"},
		{URL: "http://h/", Headers: []string{"x"}}, {URL: "http://h/", Headers: []string{"X: a\r\nY: b"}}, {URL: "http://h/", Headers: []string{"Content-Length: 3"}},
		{URL: "http://h/", Headers: []string{"connection: close"}}, {URL: "http://h/", Body: []byte("{{what}}")}, {URL: "http://h/{{n"},
		{URL: "http://h/", Body: []byte("{{rand:5}}")}, {URL: "http://h/", Body: []byte("{{rand:5:4}}")}, {URL: "http://h/", Body: []byte("{{n:99}}")},
		{URL: "http://h/", Body: []byte("{{uuid:1}}")},
	} {
		if _, err := template.New(p); !errors.Is(err, template.ErrRequest) {
			t.Errorf("%+v: error %v, want ErrRequest", p, err)
		}
	}
}

var uuidForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// Whatever the numbers, the length is the body's, and the same number gives
// the same request.
func TestFieldsFitTheirRequest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		users := rapid.Uint64Range(0, 1e12).Draw(t, "users")
		tpl, err := template.New(template.Params{URL: "http://h/{{uuid}}", Users: users, Seed: rapid.Uint64().Draw(t, "seed"),
			Headers: []string{"X-R: {{rand:10:12}}"}, Body: []byte("{{n}} {{n:12}} {{user}} {{uuid}} {{uuid}} {{rand:0:9223372036854775807}}")})
		if err != nil {
			t.Fatal(err)
		}
		n := rapid.Uint64().Draw(t, "n")
		raw, subject, ordinal := tpl.Append(nil, n)
		again, _, _ := tpl.Append(nil, n)
		if !bytes.Equal(raw, again) {
			t.Fatalf("%q, then %q", raw, again)
		}
		r := bufio.NewReader(bytes.NewReader(raw))
		req, err := http.ReadRequest(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(req.Body)
		if err != nil || r.Buffered() > 0 {
			t.Fatalf("body %q, error %v, %d bytes behind it", body, err, r.Buffered())
		}
		words := strings.Fields(string(body))
		switch rnd := req.Header.Get("X-R"); {
		case words[0] != strconv.FormatUint(n, 10) || ordinal != uint32(n), len(words[1]) < 12 || strings.TrimLeft(words[1], "0") != strings.TrimLeft(words[0], "0"),
			words[2] != strconv.FormatUint(subject, 10) || users > 0 && subject >= users || users == 0 && subject != n:
			t.Fatalf("request %d for user %d: %q", n, subject, words)
		case !uuidForm.MatchString(words[3]) || !uuidForm.MatchString(words[4]) || words[3] == words[4] || !uuidForm.MatchString(req.URL.Path[1:]):
			t.Fatalf("UUIDs %s, %s and %s", words[3], words[4], req.URL.Path)
		case rnd != "10" && rnd != "11" && rnd != "12":
			t.Fatalf("%s is not between 10 and 12", rnd)
		}
	})
}

func TestShardsHaveUsersOfTheirOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shards := rapid.Uint64Range(1, 5).Draw(t, "shards")
		users := shards * rapid.Uint64Range(1, 50).Draw(t, "users of each")
		tpl, err := template.New(template.Params{URL: "http://h/", Users: users, Seed: rapid.Uint64().Draw(t, "seed")})
		if err != nil {
			t.Fatal(err)
		}
		owner := map[uint64]uint64{}
		for n := range 2 * users {
			_, user, _ := tpl.Append(nil, n)
			if of, known := owner[user]; known && of != n%shards {
				t.Fatalf("user %d is of shards %d and %d", user, of, n%shards)
			}
			owner[user] = n % shards
		}
		if uint64(len(owner)) != users {
			t.Fatalf("%d users of %d had a turn", len(owner), users)
		}
	})
}

func TestAppendDoesNotAllocate(t *testing.T) {
	tpl, err := template.New(template.Params{URL: "http://h/{{n}}", Users: 1000, Body: []byte("{{user}} {{uuid}} {{rand:1:100}}")})
	if err != nil {
		t.Fatal(err)
	}
	var n uint64
	buf := make([]byte, 0, 1024)
	if got := testing.AllocsPerRun(100, func() { buf, _, _ = tpl.Append(buf[:0], n); n++ }); got != 0 {
		t.Errorf("%v allocations a request, want none", got)
	}
}

func BenchmarkAppend(b *testing.B) {
	tpl, err := template.New(template.Params{URL: "http://h/", Users: 1000, Body: []byte(`{"user":{{user}},"id":"{{uuid}}"}`)})
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 0, 1024)
	for n := uint64(0); b.Loop(); n++ {
		buf, _, _ = tpl.Append(buf[:0], n)
	}
}
