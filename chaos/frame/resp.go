package frame

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// value is one complete RESP value: its type byte, and its scalars in order.
type value struct {
	kind       byte
	words      []string
	start, end int // in the piece it ended in
}

// respReader splits a stream of RESP2 or RESP3 values.
type respReader struct {
	inline bool // a line without a type byte is a command, as old clients send it
	most   int  // words kept of a value

	line  []byte  // of the header under way
	kind  byte    // of the outermost value, 0 between two
	skip  int64   // bytes of a bulk string still to come, with its line end
	room  bool    // the bulk string under way is kept, in the last word
	open  []int64 // values still to come, of each aggregate that is open
	words []string
}

// feed takes the next bytes and returns the values that ended in them.
func (r *respReader) feed(p []byte) ([]value, error) {
	var out []value
	start := 0
	for i := 0; i < len(p); {
		if r.skip > 0 {
			n := min(int64(len(p)-i), r.skip)
			r.keepBulk(p[i : i+int(n)])
			r.skip -= n
			i += int(n)
			if r.skip > 0 || !r.ended() {
				continue
			}
		} else {
			end := bytes.IndexByte(p[i:], '\n')
			if end < 0 {
				end = len(p) - i - 1
			}
			r.line = append(r.line, p[i:i+end+1]...)
			i += end + 1
			if len(r.line) > lineMax {
				return out, fmt.Errorf("%w: a line of over %d bytes", ErrFrame, lineMax)
			}
			if r.line[len(r.line)-1] != '\n' {
				continue
			}
			whole, err := r.header(r.line)
			r.line = r.line[:0]
			if err != nil {
				return out, err
			}
			if !whole {
				continue
			}
		}
		out = append(out, value{r.kind, r.words, start, i})
		r.kind, r.words, start = 0, nil, i
	}
	return out, nil
}

// header takes a line and says whether a whole outermost value ended with it.
func (r *respReader) header(line []byte) (bool, error) {
	text := bytes.TrimSuffix(line[:len(line)-1], []byte("\r"))
	if len(text) == 0 {
		if r.inline && r.kind == 0 {
			return false, nil // Redis passes over empty lines
		}
		return false, fmt.Errorf("%w: an empty line where a value begins", ErrFrame)
	}
	kind, rest := text[0], string(text[1:])
	outermost := r.kind == 0
	if outermost {
		r.kind = kind
	}
	switch kind {
	case '+', '-', ':', '_', '#', ',', '(':
		r.keep(rest)
		return r.ended(), nil
	case '$', '!', '=':
		n, err := respLength(rest)
		if err != nil {
			return false, err
		}
		if n < 0 {
			r.keep("")
			return r.ended(), nil
		}
		r.skip, r.room = n+2, len(r.words) < r.most
		r.keep("")
		return false, nil
	case '*', '~', '>', '%', '|':
		n, err := respLength(rest)
		if err != nil {
			return false, err
		}
		switch kind {
		case '%':
			n *= 2
		case '|': // attributes stand before the value that they belong to
			n = 2*n + 1
			if outermost {
				r.kind = '*'
			}
		}
		if n <= 0 {
			return r.ended(), nil
		}
		if len(r.open) == depthMax {
			return false, fmt.Errorf("%w: values nested over %d deep", ErrFrame, depthMax)
		}
		r.open = append(r.open, n)
		return false, nil
	}
	if r.inline && outermost {
		for _, word := range strings.Fields(string(text)) {
			r.keep(word)
		}
		return true, nil
	}
	return false, fmt.Errorf("%w: no RESP type %q", ErrFrame, kind)
}

// respLength reads a length of a bulk string or an aggregate; -1 is null.
func respLength(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < -1 || n > frameMax {
		return 0, fmt.Errorf("%w: length %.32q", ErrFrame, text)
	}
	return n, nil
}

// ended counts a value that ended and says whether the outermost did with it.
func (r *respReader) ended() bool {
	for len(r.open) > 0 {
		last := len(r.open) - 1
		r.open[last]--
		if r.open[last] > 0 {
			return false
		}
		r.open = r.open[:last]
	}
	return true
}

func (r *respReader) keep(word string) {
	if len(r.words) < r.most {
		r.words = append(r.words, strings.Clone(word[:min(len(word), wordMax)]))
	}
}

// keepBulk keeps a piece of the bulk string under way, but not its line end.
func (r *respReader) keepBulk(piece []byte) {
	if !r.room {
		return
	}
	last := len(r.words) - 1
	n := min(int64(len(piece)), max(0, r.skip-2), int64(wordMax-len(r.words[last])))
	r.words[last] += string(piece[:n])
}

// redisConversation pairs commands and replies by their order.
type redisConversation struct {
	asked, answered respReader
	waiting         []Reply // commands without a reply, oldest first
}

func (c *redisConversation) Request(p []byte) error {
	commands, err := c.asked.feed(p)
	for _, v := range commands {
		if len(v.words) == 0 {
			continue // an empty array: Redis does not answer it
		}
		if len(c.waiting) == pendingMax {
			return fmt.Errorf("%w: over %d commands wait for replies", ErrFrame, pendingMax)
		}
		c.waiting = append(c.waiting, Reply{Request: strings.ToUpper(v.words[0]), Asked: v.words[1:]})
	}
	return err
}

func (c *redisConversation) Reply(p []byte) ([]Reply, error) {
	values, err := c.answered.feed(p)
	var replies []Reply
	for _, v := range values {
		if v.kind == '>' { // a push answers nothing
			continue
		}
		if len(c.waiting) == 0 {
			return replies, fmt.Errorf("%w: a reply that nobody asked for", ErrFrame)
		}
		r := c.waiting[0]
		c.waiting = c.waiting[1:]
		r.Answered, r.Start, r.End = v.words, v.start, v.end
		replies = append(replies, r)
	}
	return replies, err
}
