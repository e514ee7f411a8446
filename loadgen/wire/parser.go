package wire

import (
	"bytes"
	"errors"
	"fmt"
)

// ErrMalformed is in the chain of every parsing error: the connection's framing
// is lost and nothing more can be read from it.
var ErrMalformed = errors.New("malformed HTTP response")

// Limits of the parser.
const (
	// lineMax bounds a status, header, chunk-size or trailer line.
	lineMax = 16 << 10
	// headLinesMax bounds the header and trailer lines of one response.
	headLinesMax = 256
	// BodyKeptMax is how much of a body is kept for the extractor; the rest of
	// a longer one is counted and thrown away.
	BodyKeptMax = 1 << 20
)

// Response is one parsed answer.
type Response struct {
	Status uint16
	Body   []byte // decoded; at most BodyKeptMax bytes; valid until the next Feed
	Length int64  // of the whole decoded body
	Close  bool   // the server ends the connection after this answer
}

type parserState uint8

const (
	atStatus parserState = iota
	atHeader
	atBody       // remaining bytes of identity body or chunk
	atBodyToEOF  // identity body ended by the connection
	atChunkSize  // a chunk-size line
	atChunkBreak // the line break behind a chunk
	atTrailer    // trailer lines behind the last chunk
)

// Parser reads the answers of one connection from its bytes, however they are
// cut. It does not allocate once its buffers have grown. The zero value is
// ready; it is not safe for concurrent use. Informational (1xx) answers are
// skipped. Requests are assumed not to be HEAD or CONNECT.
type Parser struct {
	state     parserState
	resp      Response
	line      []byte // start of a line that was cut, completed by later bytes
	body      []byte // a body that was cut or chunked
	remaining int64  // of the identity body or the chunk
	head      head
	lines     int

	// The last complete head and what it said: servers repeat themselves
	// byte for byte, and comparing is cheaper than parsing.
	known     []byte
	knownHead head
}

// head is what the header lines of a response say about its framing.
type head struct {
	status    uint16
	length    int64 // Content-Length, or -1
	chunked   bool
	encoded   bool // Transfer-Encoding was given
	close     bool
	keepAlive bool
	http10    bool
}

// Idle reports whether the parser is between two answers.
func (p *Parser) Idle() bool { return p.state == atStatus && len(p.line) == 0 }

// Feed reads from b. It stops behind the first complete answer (done) or at
// the end of b, and returns how many bytes it used. The response is valid
// until the next call; its body may share memory with b. An error wraps
// ErrMalformed and is final.
func (p *Parser) Feed(b []byte) (r *Response, n int, done bool, err error) {
	if p.state == atStatus && len(p.line) == 0 {
		p.reset()
		if n = p.wholeHead(b); n > 0 {
			if done, err = p.endHead(); done || err != nil {
				return &p.resp, n, done, err
			}
		}
	}
	for n < len(b) {
		var used int
		switch p.state {
		case atBody:
			used, done = p.bodyBytes(b[n:])
		case atBodyToEOF:
			used = len(b) - n
			p.keep(b[n:])
		default:
			var line []byte
			line, used, err = p.takeLine(b[n:])
			if err == nil && line != nil {
				done, err = p.takeHeadLine(line)
				p.line = p.line[:0]
			}
		}
		n += used
		if done || err != nil {
			return &p.resp, n, done, err
		}
	}
	return &p.resp, n, false, nil
}

// EOF tells the parser that the connection ended. done reports that this
// completed an answer whose length only the end of the connection says.
func (p *Parser) EOF() (r *Response, done bool) {
	if p.state != atBodyToEOF {
		return nil, false
	}
	p.resp.Body, p.resp.Close = p.body, true
	p.state = atStatus
	return &p.resp, true
}

func (p *Parser) reset() {
	p.resp = Response{}
	p.body = p.body[:0]
	p.head = head{length: -1}
	p.lines = 0
}

// wholeHead takes the head at the start of b at once if it is there whole and
// equal to the last one, and returns its length, else 0.
func (p *Parser) wholeHead(b []byte) int {
	if len(p.known) > 0 && bytes.HasPrefix(b, p.known) {
		p.head = p.knownHead
		p.state = atHeader
		return len(p.known)
	}
	// Remember the head for the next time if it has the plain form; the line
	// by line way parses it now.
	p.known = p.known[:0]
	if i := bytes.Index(b, crlfcrlf); i >= 0 && i+4 <= lineMax {
		h := head{length: -1}
		rest, lines := b[:i+2], 0
		for len(rest) > 0 {
			j := bytes.IndexByte(rest, '\n')
			line := trimBreak(rest[:j+1])
			rest = rest[j+1:]
			var err error
			if lines++; lines == 1 {
				err = h.statusLine(line)
			} else {
				err = h.headerLine(line)
			}
			// An empty line would end the head earlier: a bare LF.
			if err != nil || len(line) == 0 || lines >= headLinesMax {
				return 0
			}
		}
		if h.status < 200 {
			return 0
		}
		p.known = append(p.known, b[:i+4]...)
		p.knownHead, p.head = h, h
		p.state = atHeader
		return i + 4
	}
	return 0
}

var crlfcrlf = []byte("\r\n\r\n")

// takeLine returns the next line of b without its break, or nil if it does not
// end in b; what there is of it is then kept.
func (p *Parser) takeLine(b []byte) (line []byte, used int, err error) {
	i := bytes.IndexByte(b, '\n')
	end := i + 1
	if i < 0 {
		end = len(b)
	}
	if len(p.line)+end > lineMax {
		return nil, end, fmt.Errorf("%w: a line longer than %d bytes", ErrMalformed, lineMax)
	}
	if i < 0 {
		p.line = append(p.line, b...)
		return nil, end, nil
	}
	if len(p.line) == 0 {
		return trimBreak(b[:end]), end, nil
	}
	p.line = append(p.line, b[:end]...)
	return trimBreak(p.line), end, nil
}

// trimBreak removes the LF and one CR before it. The result is never nil.
func trimBreak(b []byte) []byte {
	b = b[:len(b)-1]
	if n := len(b); n > 0 && b[n-1] == '\r' {
		b = b[:n-1]
	}
	return b
}

// takeHeadLine reads one line outside a body.
func (p *Parser) takeHeadLine(line []byte) (done bool, err error) {
	if p.lines++; p.lines > headLinesMax && p.state != atChunkSize && p.state != atChunkBreak {
		return false, fmt.Errorf("%w: more than %d header lines", ErrMalformed, headLinesMax)
	}
	switch p.state {
	case atStatus:
		p.state = atHeader
		return false, p.head.statusLine(line)
	case atHeader:
		if len(line) > 0 {
			return false, p.head.headerLine(line)
		}
		return p.endHead()
	case atChunkSize:
		n, err := chunkSize(line)
		if err != nil {
			return false, err
		}
		if p.remaining, p.state = n, atBody; n == 0 {
			p.state, p.lines = atTrailer, 0
		}
	case atChunkBreak:
		if len(line) > 0 {
			return false, fmt.Errorf("%w: a chunk is longer than its size", ErrMalformed)
		}
		p.state = atChunkSize
	case atTrailer:
		if len(line) == 0 {
			return p.finish(), nil
		}
	}
	return false, nil
}

// endHead decides the body's framing (RFC 9112, section 6.3).
func (p *Parser) endHead() (done bool, err error) {
	h := &p.head
	p.resp.Status = h.status
	p.resp.Close = h.close || h.http10 && !h.keepAlive
	switch {
	case h.status == 101:
		return false, fmt.Errorf("%w: the server switched protocols", ErrMalformed)
	case h.http10 && h.encoded:
		return false, fmt.Errorf("%w: HTTP/1.0 with a Transfer-Encoding", ErrMalformed)
	case h.status < 200:
		p.reset()
		p.state = atStatus
	case h.status == 204 || h.status == 304:
		return p.finish(), nil
	case h.chunked:
		p.state = atChunkSize
	case h.encoded || h.length < 0:
		p.state = atBodyToEOF
	case h.length == 0:
		return p.finish(), nil
	default:
		p.remaining, p.state = h.length, atBody
	}
	return false, nil
}

// bodyBytes takes the bytes of an identity body or a chunk from b.
func (p *Parser) bodyBytes(b []byte) (used int, done bool) {
	if p.remaining <= int64(len(b)) {
		used = int(p.remaining)
	} else {
		used = len(b)
	}
	p.remaining -= int64(used)
	if !p.head.chunked && p.remaining == 0 && len(p.body) == 0 {
		// Whole in the caller's buffer: no copy.
		p.resp.Length = int64(used)
		p.finish()
		p.resp.Body = b[:min(used, BodyKeptMax)]
		return used, true
	}
	p.keep(b[:used])
	if p.remaining > 0 {
		return used, false
	}
	if p.head.chunked {
		p.state = atChunkBreak
		return used, false
	}
	return used, p.finish()
}

// keep appends to the body what the limit allows.
func (p *Parser) keep(b []byte) {
	p.resp.Length += int64(len(b))
	if room := BodyKeptMax - len(p.body); len(b) > room {
		b = b[:room]
	}
	p.body = append(p.body, b...)
}

func (p *Parser) finish() bool {
	p.resp.Body = p.body
	p.state = atStatus
	return true
}
