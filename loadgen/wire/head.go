package wire

import (
	"bytes"
	"fmt"
	"math"
)

// statusLine reads "HTTP/1.x NNN reason".
func (h *head) statusLine(line []byte) error {
	if len(line) < 12 || string(line[:7]) != "HTTP/1." || line[8] != ' ' || (len(line) > 12 && line[12] != ' ') {
		return fmt.Errorf("%w: status line %q", ErrMalformed, clip(line))
	}
	switch line[7] {
	case '0':
		h.http10 = true
	case '1':
	default:
		return fmt.Errorf("%w: version in %q", ErrMalformed, clip(line))
	}
	var s uint16
	for _, c := range line[9:12] {
		if c < '0' || c > '9' {
			return fmt.Errorf("%w: status in %q", ErrMalformed, clip(line))
		}
		s = s*10 + uint16(c-'0')
	}
	if s < 100 {
		return fmt.Errorf("%w: status %d", ErrMalformed, s)
	}
	h.status = s
	return nil
}

// headerLine reads "Name: value" and keeps what concerns the framing. Other
// lines are not looked into.
func (h *head) headerLine(line []byte) error {
	// A blank before the colon, or a folded line, could hide a framing header
	// from one reader and show it to another.
	if i := bytes.IndexByte(line, ':'); i < 1 || blank(line[0]) || blank(line[i-1]) {
		return fmt.Errorf("%w: header line %q", ErrMalformed, clip(line))
	}
	switch line[0] | 0x20 {
	case 'c':
		if v, ok := value(line, "content-length"); ok {
			return h.contentLength(v)
		}
		if v, ok := value(line, "connection"); ok {
			h.connection(v)
		}
	case 't':
		if v, ok := value(line, "transfer-encoding"); ok {
			return h.transferEncoding(v)
		}
	}
	return nil
}

func (h *head) contentLength(v []byte) error {
	if len(v) == 0 {
		return fmt.Errorf("%w: empty Content-Length", ErrMalformed)
	}
	var n int64
	for _, c := range v {
		if c < '0' || c > '9' || n > (math.MaxInt64-9)/10 {
			return fmt.Errorf("%w: Content-Length %q", ErrMalformed, clip(v))
		}
		n = n*10 + int64(c-'0')
	}
	if h.length >= 0 && h.length != n {
		return fmt.Errorf("%w: Content-Length both %d and %d", ErrMalformed, h.length, n)
	}
	h.length = n
	return nil
}

// transferEncoding accepts chunked alone; compressions inside the transfer are
// never asked for.
func (h *head) transferEncoding(v []byte) error {
	if h.encoded || !equalFold(v, "chunked") {
		return fmt.Errorf("%w: Transfer-Encoding %q is not supported", ErrMalformed, clip(v))
	}
	h.encoded, h.chunked = true, true
	return nil
}

// connection reads a comma-separated list of options.
func (h *head) connection(v []byte) {
	for len(v) > 0 {
		end := 0
		for end < len(v) && v[end] != ',' {
			end++
		}
		switch option := trimSpace(v[:end]); {
		case equalFold(option, "close"):
			h.close = true
		case equalFold(option, "keep-alive"):
			h.keepAlive = true
		}
		v = v[min(end+1, len(v)):]
	}
}

// value returns the value of a header line if its name is name, which is in
// lower case.
func value(line []byte, name string) ([]byte, bool) {
	if len(line) <= len(name) || line[len(name)] != ':' || !equalFold(line[:len(name)], name) {
		return nil, false
	}
	return trimSpace(line[len(name)+1:]), true
}

// equalFold compares b with lower, which holds lower-case letters and '-'.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

func trimSpace(b []byte) []byte {
	for len(b) > 0 && blank(b[0]) {
		b = b[1:]
	}
	for n := len(b); n > 0 && blank(b[n-1]); n = len(b) {
		b = b[:n-1]
	}
	return b
}

// chunkSize reads the hexadecimal size of a chunk, up to an extension.
func chunkSize(line []byte) (int64, error) {
	var n int64
	i := 0
	for ; i < len(line); i++ {
		var d byte
		switch c := line[i]; {
		case '0' <= c && c <= '9':
			d = c - '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			d = c | 0x20 - 'a' + 10
		default:
			d = 0xff
		}
		if d == 0xff {
			break
		}
		if n > math.MaxInt64>>4 {
			return 0, fmt.Errorf("%w: chunk size %q", ErrMalformed, clip(line))
		}
		n = n<<4 | int64(d)
	}
	if rest := trimSpace(line[i:]); i == 0 || len(rest) > 0 && rest[0] != ';' {
		return 0, fmt.Errorf("%w: chunk size %q", ErrMalformed, clip(line))
	}
	return n, nil
}

// clip shortens what an error quotes.
func clip(b []byte) []byte { return b[:min(len(b), 64)] }
