// Package template makes requests for any URL from prebuilt bytes with fields
// that are patched as they are sent. Every field is a function of the seed and
// the request's number, so that a run can be repeated and shared out among
// generators. It imports nothing of the generator and satisfies its Source.
package template

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// ErrRequest is in the chain of every error of New.
var ErrRequest = errors.New("bad request template")

// Params say what to send.
type Params struct {
	Method  string // empty: GET, or POST if there is a body
	URL     string // http or https; the path and query may hold fields
	Headers []string
	Body    []byte
	Literal bool   // leaves {{ }} as it is
	Users   uint64 // requests are made on behalf of users 0 to Users-1; 0: each of its own
	Seed    uint64
}

// Template is a parsed request. It is immutable.
type Template struct {
	addr, server string
	secure       bool
	head, body   []part
	sized        bool // the head needs a Content-Length
	bodyBytes    int  // of the literal parts
	fields       int
	users        uint64
	step, shift  uint64 // of the users' permutation
	seed         uint64
}

// Headers that the generator sets: they say where a request ends.
var ours = []string{"content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect"}

// New checks and builds a template. Errors say in one line what to change.
func New(p Params) (*Template, error) {
	u, err := url.Parse(p.URL)
	bad := func(format string, args ...any) (*Template, error) {
		return nil, fmt.Errorf("%w: "+format, append([]any{ErrRequest}, args...)...)
	}
	switch {
	case err != nil:
		return bad("%q is no URL: %w", p.URL, err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return bad("%q: give a URL such as http://127.0.0.1:8080/path", p.URL)
	case u.User != nil:
		return bad("give the user as a header: --header 'Authorization: Basic …'")
	}
	t := &Template{users: p.Users, seed: p.Seed, secure: u.Scheme == "https", server: u.Hostname()}
	port := u.Port()
	if port == "" {
		port = map[bool]string{false: "80", true: "443"}[t.secure]
	}
	t.addr = net.JoinHostPort(t.server, port)
	t.step, t.shift = permutation(p.Users, p.Seed)

	method := strings.ToUpper(p.Method)
	if method == "" {
		if method = "GET"; len(p.Body) > 0 {
			method = "POST"
		}
	}
	if !httpguts.ValidHeaderFieldName(method) || method == "HEAD" || method == "CONNECT" {
		return bad("method %q: give GET, POST, PUT, PATCH, DELETE or OPTIONS", p.Method)
	}
	t.sized = len(p.Body) > 0 || method == "POST" || method == "PUT" || method == "PATCH"
	head := method + " " + target(p.URL) + " HTTP/1.1\r\n"
	given := map[string]bool{}
	for _, h := range p.Headers {
		name, value, ok := strings.Cut(h, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return bad("header %q: give 'Name: value'", h)
		}
		for _, n := range ours {
			if strings.EqualFold(name, n) {
				return bad("header %q is the generator's: it says where a request ends", name)
			}
		}
		given[strings.ToLower(name)] = true
		head += name + ": " + value + "\r\n"
	}
	for _, d := range [][2]string{{"Host", u.Host}, {"User-Agent", "hotsku-load"}, {"Accept", "*/*"}} {
		if !given[strings.ToLower(d[0])] {
			head += d[0] + ": " + d[1] + "\r\n"
		}
	}
	for _, b := range []byte(target(p.URL)) {
		if b <= ' ' || b == 0x7f {
			return bad("%q: the path holds a blank or a control character; escape it", p.URL)
		}
	}
	if t.head, err = t.parse(head, p.Literal); err != nil {
		return nil, err
	}
	if t.body, err = t.parse(string(p.Body), p.Literal); err != nil {
		return nil, err
	}
	for _, b := range t.body {
		t.bodyBytes += len(b.literal)
	}
	return t, nil
}

// target is the path and query of a URL as it was written, fields and all.
func target(raw string) string {
	_, rest, _ := strings.Cut(raw, "://")
	rest, _, _ = strings.Cut(rest, "#")
	i := strings.IndexAny(rest, "/?")
	switch {
	case i < 0:
		return "/"
	case rest[i] == '?':
		return "/" + rest[i:]
	}
	return rest[i:]
}

// Addr is the server's host:port.
func (t *Template) Addr() string { return t.addr }

// Secure reports whether the URL is an https one, of which host.
func (t *Template) Secure() (host string, ok bool) { return t.server, t.secure }

// Append makes request n: the generator's Source.
func (t *Template) Append(dst []byte, n uint64) (out []byte, subject uint64, ordinal uint32) {
	user := t.user(n)
	dst = t.appendParts(dst, t.head, n, user)
	if t.sized {
		size := t.bodyBytes
		for i := range t.body {
			size += t.width(&t.body[i], n, user)
		}
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, int64(size), 10)
		dst = append(dst, "\r\n"...)
	}
	dst = append(dst, "\r\n"...)
	return t.appendParts(dst, t.body, n, user), user, uint32(n)
}

// user is on whose behalf request n is made. Users take turns in an order that
// the seed gives; of S generators that share a run each has users of its own
// if S divides their number.
func (t *Template) user(n uint64) uint64 {
	if t.users == 0 {
		return n
	}
	return permute(n%t.users, t.users, t.step, t.shift)
}
