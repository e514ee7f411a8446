package frame

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Codes of the messages that a client may begin a connection with.
const (
	pgSSLRequest    = 80877103
	pgGSSENCRequest = 80877104
)

// pgMessage is one message: its type byte, 0 for a client's first.
type pgMessage struct {
	kind       byte
	head       []byte // its first bytes, wordMax at most
	start, end int
}

// pgReader splits a stream of PostgreSQL messages.
type pgReader struct {
	untyped bool // the next has no type byte, as a client's first has none

	head []byte // type and length
	body []byte // what is kept of it
	skip int64  // bytes of the body still to come
	in   bool   // the body is under way
}

// next goes on at p[from:] to the end of a message, or of p, and says how far
// it came and whether the message is whole.
func (r *pgReader) next(p []byte, from int) (m pgMessage, n int, whole bool, err error) {
	size := 5
	if r.untyped {
		size = 4
	}
	i := from
	if !r.in {
		n := min(len(p)-i, size-len(r.head))
		r.head = append(r.head, p[i:i+n]...)
		i += n
		if len(r.head) < size {
			return m, i, false, nil
		}
		length := int64(binary.BigEndian.Uint32(r.head[size-4:]))
		if length < 4 || length > frameMax {
			return m, i, false, fmt.Errorf("%w: a message of %d bytes", ErrFrame, length)
		}
		r.in, r.skip = true, length-4
	}
	take := min(int64(len(p)-i), r.skip)
	r.body = append(r.body, p[i:i+int(min(take, int64(wordMax-len(r.body))))]...)
	r.skip -= take
	i += int(take)
	if r.skip > 0 {
		return m, i, false, nil
	}
	if !r.untyped {
		m.kind = r.head[0]
	}
	m.head, m.start, m.end = bytes.Clone(r.body), from, i
	r.head, r.body, r.in = r.head[:0], r.body[:0], false
	return m, i, true, nil
}

// postgresConversation reads what the server says it completed: its command
// tag names the command, however it was sent, by itself, in a pipeline or
// prepared. Of what the client says it reads how the connection begins.
type postgresConversation struct {
	asked, answered pgReader
	begun           bool // the client's first message with a version has passed
	offers          int  // single bytes the server has to answer to TLS requests
}

func (c *postgresConversation) Request(p []byte) error {
	for i := 0; i < len(p) && !c.begun; {
		m, n, whole, err := c.asked.next(p, i)
		if err != nil {
			return err
		}
		i = n
		if !whole {
			return nil
		}
		if len(m.head) < 4 {
			return fmt.Errorf("%w: a first message of %d bytes", ErrFrame, len(m.head))
		}
		switch binary.BigEndian.Uint32(m.head) {
		case pgSSLRequest, pgGSSENCRequest:
			if c.offers++; c.offers > 2 {
				return fmt.Errorf("%w: %d requests for encryption", ErrFrame, c.offers)
			}
		default:
			c.begun = true
		}
	}
	return nil
}

func (c *postgresConversation) Reply(p []byte) ([]Reply, error) {
	var replies []Reply
	for i := 0; i < len(p); {
		if c.offers > 0 && !c.answered.in && len(c.answered.head) == 0 {
			if p[i] != 'N' {
				return replies, fmt.Errorf("%w: the connection is encrypted (%q)", ErrFrame, p[i])
			}
			c.offers--
			i++
			continue
		}
		m, n, whole, err := c.answered.next(p, i)
		if err != nil {
			return replies, err
		}
		i = n
		if whole && m.kind == 'C' {
			tag, _, _ := bytes.Cut(m.head, []byte{0})
			replies = append(replies, Reply{Request: string(tag), Start: m.start, End: m.end})
		}
	}
	return replies, nil
}
