package frame

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
)

// Request codes of RocketMQ that send a message.
const (
	SendMessage      = "10"
	SendMessageV2    = "310"
	SendBatchMessage = "320"
)

// remotingHeader is what matters of a header.
type remotingHeader struct {
	Code   int               `json:"code"`
	Opaque int32             `json:"opaque"`
	Flag   int32             `json:"flag"`
	Fields map[string]string `json:"extFields"`
	start  int
	end    int
}

// Bits of a header's flag.
const (
	remotingAnswer = 1 // else a request
	remotingOneWay = 2 // nobody answers it
)

// remotingReader splits a stream of remoting frames: total length, header
// length under a serialization byte, header, body.
type remotingReader struct {
	lengths []byte // the first 8 bytes
	header  []byte
	want    int   // bytes of the header
	skip    int64 // bytes of the body still to come
}

// feed takes the next bytes and returns the frames that ended in them.
func (r *remotingReader) feed(p []byte) ([]remotingHeader, error) {
	var out []remotingHeader
	start := 0
	for i := 0; i < len(p); {
		switch {
		case len(r.lengths) < 8:
			n := min(len(p)-i, 8-len(r.lengths))
			r.lengths = append(r.lengths, p[i:i+n]...)
			i += n
			if len(r.lengths) < 8 {
				continue
			}
			total := int64(binary.BigEndian.Uint32(r.lengths))
			header := int64(binary.BigEndian.Uint32(r.lengths[4:]) & 0xffffff)
			if total < 4+header || total > frameMax || header == 0 || header > headerMax {
				return out, fmt.Errorf("%w: lengths %d and %d", ErrFrame, total, header)
			}
			r.want, r.skip = int(header), total-4-header
			continue // a header has bytes
		case len(r.header) < r.want:
			n := min(len(p)-i, r.want-len(r.header))
			r.header = append(r.header, p[i:i+n]...)
			i += n
		default:
			n := min(int64(len(p)-i), r.skip)
			r.skip -= n
			i += int(n)
		}
		if len(r.header) < r.want || r.skip > 0 {
			continue
		}
		h, err := readRemotingHeader(r.lengths[4], r.header)
		if err != nil {
			return out, err
		}
		h.start, h.end = start, i
		out = append(out, h)
		r.lengths, r.header, r.want, start = r.lengths[:0], r.header[:0], 0, i
	}
	return out, nil
}

// readRemotingHeader reads a header by its serialization: 0 JSON, 1 RocketMQ's own.
func readRemotingHeader(serialization byte, b []byte) (remotingHeader, error) {
	var h remotingHeader
	switch serialization {
	case 0:
		if err := json.Unmarshal(b, &h); err != nil {
			return h, fmt.Errorf("%w: header: %w", ErrFrame, err)
		}
		return h, nil
	case 1: // code 2, language 1, version 2, opaque 4, flag 4, remark, fields
		if len(b) < 13 {
			return h, fmt.Errorf("%w: a header of %d bytes", ErrFrame, len(b))
		}
		h.Code = int(binary.BigEndian.Uint16(b))
		h.Opaque = int32(binary.BigEndian.Uint32(b[5:]))
		h.Flag = int32(binary.BigEndian.Uint32(b[9:]))
		h.Fields = readRemotingFields(b[13:])
		return h, nil
	}
	return h, fmt.Errorf("%w: serialization %d", ErrFrame, serialization)
}

// readRemotingFields reads the fields behind a remark, as many as are whole.
func readRemotingFields(b []byte) map[string]string {
	fields := map[string]string{}
	if _, rest, ok := cutBytes(b, 4); ok {
		if all, _, ok := cutBytes(rest, 4); ok {
			for {
				var key, val []byte
				if key, all, ok = cutBytes(all, 2); !ok {
					break
				}
				if val, all, ok = cutBytes(all, 4); !ok {
					break
				}
				fields[string(key)] = string(val)
			}
		}
	}
	return fields
}

// cutBytes cuts off a string behind a length of that many bytes.
func cutBytes(b []byte, size int) (s, rest []byte, ok bool) {
	if len(b) < size {
		return nil, nil, false
	}
	n := uint32(0)
	for _, x := range b[:size] {
		n = n<<8 | uint32(x)
	}
	if uint64(n) > uint64(len(b)-size) {
		return nil, nil, false
	}
	return b[size : size+int(n)], b[size+int(n):], true
}

// rocketConversation pairs requests and answers by their opaque number. Asked
// is the topic, if the request names one; Answered is the response code.
type rocketConversation struct {
	asked, answered remotingReader
	pending         map[int32]Reply
}

func (c *rocketConversation) Request(p []byte) error {
	frames, err := c.asked.feed(p)
	for _, h := range frames {
		if h.Flag&(remotingAnswer|remotingOneWay) != 0 {
			continue // an answer to the broker, or nobody's business
		}
		if len(c.pending) == pendingMax {
			return fmt.Errorf("%w: over %d requests wait for answers", ErrFrame, pendingMax)
		}
		r := Reply{Request: strconv.Itoa(h.Code)}
		for _, field := range []string{"topic", "b"} { // b: the short names of SEND_MESSAGE_V2
			if topic := h.Fields[field]; topic != "" {
				r.Asked = []string{topic[:min(len(topic), wordMax)]}
				break
			}
		}
		c.pending[h.Opaque] = r
	}
	return err
}

func (c *rocketConversation) Reply(p []byte) ([]Reply, error) {
	frames, err := c.answered.feed(p)
	var replies []Reply
	for _, h := range frames {
		r, known := c.pending[h.Opaque]
		if h.Flag&remotingAnswer == 0 || !known {
			continue // the broker asks; or it answers what its client has given up
		}
		delete(c.pending, h.Opaque)
		r.Answered, r.Start, r.End = []string{strconv.Itoa(h.Code)}, h.start, h.end
		replies = append(replies, r)
	}
	return replies, err
}
