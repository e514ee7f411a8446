package seckill

import (
	"encoding/binary"
	"encoding/hex"
)

// Traceparent is a W3C trace context header: 00-TRACE-SPAN-FLAGS, or empty.
// One request's goes with its reservation, its message at every send, and the
// events about it.
type Traceparent string

// traceparentLen is the length of version 00.
const traceparentLen = 55

// ParseTraceparent returns text if it is a trace context of version 00 with
// ids that are not zero, and "" otherwise: nothing but observation hangs on
// it.
func ParseTraceparent(text string) Traceparent {
	if len(text) != traceparentLen || text[:3] != "00-" || text[35] != '-' || text[52] != '-' {
		return ""
	}
	for i := 3; i < len(text); i++ {
		if c := text[i]; i != 35 && i != 52 && !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return ""
		}
	}
	t := Traceparent(text)
	if t.TraceID() == "00000000000000000000000000000000" || t.SpanID() == "0000000000000000" {
		return ""
	}
	return t
}

// TraceOf is the trace context of a reservation whose request brought none:
// the trace id is the reservation's own 128 bits, so that whoever resends its
// message, however often, continues the same trace, and nothing need be
// stored. "" if id is no reservation id.
func TraceOf(reservationID string, sampled bool) Traceparent {
	tag, ok := ReservationTag([]byte(reservationID))
	if !ok {
		return ""
	}
	// The span is the request's: from the random half, and never zero.
	span := binary.BigEndian.Uint64(tag[8:])*0x9e3779b97f4a7c15 | 1
	b := make([]byte, 0, traceparentLen)
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, tag[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, binary.BigEndian.AppendUint64(nil, span))
	return Traceparent(b) + flags(sampled)
}

// Child is the context of a span of t's trace that belongs to a reservation.
func (t Traceparent) Child(reservationID string, sampled bool) Traceparent {
	own := TraceOf(reservationID, sampled)
	if t == "" || own == "" {
		return own
	}
	return t[:36] + own[36:]
}

func flags(sampled bool) Traceparent {
	if sampled {
		return "-01"
	}
	return "-00"
}

// TraceID is 32 hex digits, or "".
func (t Traceparent) TraceID() string {
	if len(t) != traceparentLen {
		return ""
	}
	return string(t[3:35])
}

// SpanID is 16 hex digits, or "".
func (t Traceparent) SpanID() string {
	if len(t) != traceparentLen {
		return ""
	}
	return string(t[36:52])
}

// Sampled says whether spans of this trace are recorded.
func (t Traceparent) Sampled() bool {
	if len(t) != traceparentLen {
		return false
	}
	c := t[54]
	if c >= 'a' {
		c -= 'a' - 10
	}
	return c&1 == 1 // '1' is odd, and so are 'b', 'd', 'f' of 10 to 15
}

// ShareWith is where the trace of t's child for a reservation lies between 0
// and 1, evenly: a share of traces is the same share in every process. 1
// where there would be no trace. It does not allocate.
func (t Traceparent) ShareWith(reservationID string) float64 {
	var raw [16]byte
	if t == "" {
		tag, ok := ReservationTag([]byte(reservationID))
		if !ok {
			return 1
		}
		raw = tag
	} else if n, err := hex.Decode(raw[:], []byte(t.TraceID())); err != nil || n != len(raw) {
		return 1
	}
	// The ids of one millisecond differ in few bits: spread them (splitmix64).
	x := binary.BigEndian.Uint64(raw[:8]) ^ binary.BigEndian.Uint64(raw[8:])
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}
