package access

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// general reads the first request of in as the general parser does; size is
// what it took.
func general(in []byte, bodyMax int) (req *fasthttp.Request, size int, err error) {
	source := bytes.NewReader(in)
	br := bufio.NewReaderSize(source, len(in)+16)
	req = new(fasthttp.Request)
	if err := req.Header.Read(br); err != nil {
		return nil, 0, err
	}
	if err := req.ContinueReadBody(br, bodyMax, false); err != nil {
		return nil, 0, err
	}
	return req, len(in) - source.Len() - br.Buffered(), nil
}

// checkFixed holds the two parsers together. It returns whether the fixed one
// took the request.
func checkFixed(t *testing.T, in []byte) bool {
	t.Helper()
	const bodyMax = 4 << 10
	h, body, size, ok := fixedHead(in, bodyMax)
	if !ok {
		return false
	}
	req, want, err := general(in, bodyMax)
	if err != nil {
		t.Fatalf("the fixed parser takes %q, the general one says %v", in, err)
	}
	g := headOf(&req.Header)
	switch {
	case size != want || !bytes.Equal(body, req.Body()):
		t.Fatalf("%q: body %q of %d bytes in all, want %q of %d", in, body, size, req.Body(), want)
	case !bytes.Equal(h.authorization, g.authorization), !bytes.Equal(h.device, g.device), !bytes.Equal(h.user, g.user),
		(h.authorization == nil) != (g.authorization == nil), len(h.forwarded()) != len(g.forwarded()):
		t.Fatalf("%q: head %q %q %q, want %q %q %q", in, h.authorization, h.device, h.user, g.authorization, g.device, g.user)
	case !req.Header.IsPost(), string(req.Header.RequestURI()) != Path, req.Header.ConnectionClose(), req.MayContinue():
		t.Fatalf("%q is no plain order for the general parser", in)
	}
	return true
}

const fixedRequest = "POST " + Path + " HTTP/1.1\r\nHost: 127.0.0.1:80\r\nContent-Type: application/json\r\n" +
	"Authorization: Bearer k1.1.7.9.sig\r\nX-Device-Id: a phone\r\nUser-Agent: x/1 (y; z)\r\nAccept: */*\r\nContent-Length: 002\r\n\r\n{}"

// What is not in the fixed shape is for the general parser, whatever it says.
func TestOnlyTheFixedShapeIsTaken(t *testing.T) {
	if !checkFixed(t, []byte(fixedRequest)) || !checkFixed(t, []byte(fixedRequest+fixedRequest)) {
		t.Fatal("the fixed shape is not taken")
	}
	for n := range fixedRequest { // incomplete: the general parser waits for the rest
		if checkFixed(t, []byte(fixedRequest[:n])) {
			t.Fatalf("taken: %q", fixedRequest[:n])
		}
	}
	for name, change := range map[string][2]string{
		"another path":               {Path, Path + "/"},
		"another method":             {"POST", "PUT"},
		"HTTP/1.0":                   {"HTTP/1.1", "HTTP/1.0"},
		"a name in small letters":    {"Host", "host"},
		"an unknown header":          {"User-Agent", "X-Agent"},
		"a trace context":            {"User-Agent", "Traceparent"},
		"a forwarded address":        {"User-Agent", "X-Forwarded-For"},
		"a user of its own":          {"User-Agent", UserHeader},
		"a connection header":        {"User-Agent: x/1", "Connection: close"},
		"an expectation":             {"User-Agent: x/1", "Expect: 100-continue"},
		"a chunked body":             {"User-Agent: x/1", "Transfer-Encoding: chunked"},
		"a header twice":             {"Accept: */*", "Host: b"},
		"two lengths":                {"Accept: */*", "Content-Length: 002"},
		"a folded line":              {"\r\nAccept: */*", "\r\n more"},
		"a control byte":             {"a phone", "a\x01phone"},
		"DEL":                        {"a phone", "a\x7fphone"},
		"a byte above ASCII":         {"a phone", "a\xffphone"},
		"a tab":                      {"a phone", "a\tphone"},
		"a bare line feed":           {"a phone", "a\nphone"},
		"a bare carriage return":     {"a phone", "a\rphone"},
		"a space before the value":   {": a phone", ":  a phone"},
		"a space after the value":    {"a phone", "a phone "},
		"no space before the value":  {"X-Device-Id: ", "X-Device-Id:"},
		"an empty value":             {"a phone", ""},
		"another scheme":             {"Bearer", "Basic"},
		"no host":                    {"Host: 127.0.0.1:80\r\n", ""},
		"no length":                  {"Content-Length: 002\r\n", ""},
		"a negative length":          {"002", "-02"},
		"a length of five digits":    {"002", "00002"},
		"a length above the limit":   {"002", "4097"},
		"a length beyond the buffer": {"002", "003"},
	} {
		in := strings.Replace(fixedRequest, change[0], change[1], 1)
		if in == fixedRequest {
			t.Fatalf("%s: nothing was changed", name)
		}
		if _, _, _, ok := fixedHead([]byte(in), 4<<10); ok {
			t.Errorf("%s: taken: %q", name, in)
		}
	}
}

// FuzzFixedHead: whatever the fixed parser takes, the general one takes and
// reads alike.
func FuzzFixedHead(f *testing.F) {
	f.Add([]byte(fixedRequest))
	f.Add([]byte(fixedRequest + fixedRequest))
	f.Add([]byte(strings.ReplaceAll(fixedRequest, "a phone", "\x7f\x80\t")))
	f.Add([]byte("POST " + Path + " HTTP/1.1\r\nContent-Length: 0\r\n\r\n"))
	f.Add([]byte("POST " + Path + " HTTP/1.1\r\nHost: a,b;c/d\r\nContent-Length: 0001\r\n\r\nx"))
	f.Fuzz(func(t *testing.T, in []byte) { checkFixed(t, in) })
}
