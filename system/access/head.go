package access

import (
	"bytes"
	"encoding/binary"

	"github.com/valyala/fasthttp"
)

// head is what the edge reads of a request's headers. Its slices are valid
// until the next read from the connection.
type head struct {
	authorization []byte // without "Bearer "; nil: absent, or another scheme
	device        []byte
	user          []byte

	general *fasthttp.RequestHeader // the rest; nil: there is no other header
}

// forwarded is every value of ForwardedHeader.
func (h *head) forwarded() [][]byte {
	if h.general == nil {
		return nil
	}
	return h.general.PeekAll(ForwardedHeader)
}

// traceparent is the value of TraceHeader, empty if there is none.
func (h *head) traceparent() []byte {
	if h.general == nil {
		return nil
	}
	return h.general.PeekBytes(traceparent)
}

// headOf reads the head that the general parser has parsed.
func headOf(h *fasthttp.RequestHeader) head {
	token, ok := bytes.CutPrefix(h.PeekBytes(authorization), bearer)
	if !ok {
		token = nil
	}
	return head{authorization: token, device: h.PeekBytes(device), user: h.PeekBytes(user), general: h}
}

// The lines of the fixed shape. A header of another name, or one of these
// written otherwise, takes the general parser.
var (
	postLine   = []byte("POST " + Path + " HTTP/1.1\r\n")
	hostLine   = []byte("Host: ")
	typeLine   = []byte("Content-Type: ")
	bearerLine = []byte("Authorization: Bearer ")
	lengthLine = []byte("Content-Length: ")
	deviceLine = []byte(DeviceHeader + ": ")
	agentLine  = []byte("User-Agent: ")
	acceptLine = []byte("Accept: ")
)

const (
	lengthDigits = 4
	hostSeen     = 1 // the one header that must be there
)

// fixedHead parses the request that nearly every client of a sale sends over
// and over: POST of an order over HTTP/1.1, the headers above in any order,
// each at most once, complete in in. size is the whole request's. Of anything
// else it says no, and the general parser (fasthttp) judges it; whatever this
// one takes, that one would take and read alike (FuzzFixedHead). It is four
// times as fast.
func fixedHead(in []byte, bodyMax int) (h head, body []byte, size int, ok bool) {
	if !bytes.HasPrefix(in, postLine) {
		return head{}, nil, 0, false
	}
	length, seen := -1, 0
	for at := len(postLine); ; {
		end := bytes.IndexByte(in[at:], '\r')
		if end < 0 || at+end+1 >= len(in) || in[at+end+1] != '\n' {
			return head{}, nil, 0, false
		}
		line := in[at : at+end]
		at += end + 2
		if len(line) == 0 {
			if seen&hostSeen == 0 || length < 0 || length > bodyMax || len(in)-at < length {
				return head{}, nil, 0, false
			}
			return h, in[at : at+length], at + length, true
		}
		var flag int
		var value []byte
		switch line[0] {
		case 'H':
			flag, value = fixedLine(line, hostLine, hostSeen)
		case 'U':
			flag, value = fixedLine(line, agentLine, 2)
		case 'X':
			flag, value = fixedLine(line, deviceLine, 4)
			h.device = value
		case 'A':
			if flag, value = fixedLine(line, bearerLine, 8); flag != 0 {
				h.authorization = value
			} else {
				flag, value = fixedLine(line, acceptLine, 16)
			}
		case 'C':
			if flag, value = fixedLine(line, lengthLine, 32); flag != 0 {
				length = decimal(value)
			} else {
				flag, value = fixedLine(line, typeLine, 64)
			}
		}
		if flag == 0 || seen&flag != 0 || !plain(value) {
			return head{}, nil, 0, false
		}
		seen |= flag
	}
}

// fixedLine is the value of a header line that begins with name, and flag; 0
// if it does not.
func fixedLine(line, name []byte, flag int) (int, []byte) {
	if value, ok := bytes.CutPrefix(line, name); ok {
		return flag, value
	}
	return 0, nil
}

// decimal reads up to lengthDigits digits; -1 if they are none.
func decimal(b []byte) int {
	if len(b) == 0 || len(b) > lengthDigits {
		return -1
	}
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return -1
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// plain says that a header's value is visible ASCII with spaces only inside:
// what no parser trims, folds or refuses.
func plain(b []byte) bool {
	if len(b) == 0 || b[0] == ' ' || b[len(b)-1] == ' ' {
		return false
	}
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; len(b) >= 8; b = b[8:] {
		w := binary.LittleEndian.Uint64(b)
		// A byte below 0x20 borrows, one of 0x7f carries into the top bit, and
		// one above 0x7f has it set.
		if (w|(w-ones*0x20)|(w+ones))&tops != 0 {
			return false
		}
	}
	for _, c := range b {
		if c < 0x20 || c >= 0x7f {
			return false
		}
	}
	return true
}
