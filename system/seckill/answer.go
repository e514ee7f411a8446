package seckill

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Answer is the body of every answer of the edge and of the orders role.
// Empty fields are absent on the wire.
type Answer struct {
	Code          Code   `json:"code"`
	RequestID     string `json:"request_id,omitempty"`
	ReservationID string `json:"reservation_id,omitempty"`
	Status        string `json:"status,omitempty"`
	OrderID       string `json:"order_id,omitempty"`
	Replayed      bool   `json:"replayed,omitempty"`
	Field         string `json:"field,omitempty"`
	Reason        string `json:"reason,omitempty"`
	RetryAfterMS  int64  `json:"retry_after_ms,omitempty"` // milliseconds
}

// AppendJSON appends the body to dst and returns it. It is what
// encoding/json would write (a property test holds them together), without
// allocating, for the edge answers hundreds of thousands a second.
func (a *Answer) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"code":"`...)
	dst = append(dst, a.Code.String()...)
	dst = append(dst, '"')
	dst = appendStringField(dst, `,"request_id":`, a.RequestID)
	dst = appendStringField(dst, `,"reservation_id":`, a.ReservationID)
	dst = appendStringField(dst, `,"status":`, a.Status)
	dst = appendStringField(dst, `,"order_id":`, a.OrderID)
	if a.Replayed {
		dst = append(dst, `,"replayed":true`...)
	}
	dst = appendStringField(dst, `,"field":`, a.Field)
	dst = appendStringField(dst, `,"reason":`, a.Reason)
	if a.RetryAfterMS != 0 {
		dst = append(dst, `,"retry_after_ms":`...)
		dst = strconv.AppendInt(dst, a.RetryAfterMS, 10)
	}
	return append(dst, '}')
}

// ParseAnswer reads a body written by AppendJSON. Unknown fields are
// ignored, so that an older reader understands a newer edge; an unknown code
// is an error.
func ParseAnswer(body []byte) (Answer, error) {
	var a Answer
	if err := json.Unmarshal(body, &a); err != nil {
		return Answer{}, fmt.Errorf("parse answer: %w", err)
	}
	if a.Code == CodeNone {
		return Answer{}, fmt.Errorf("parse answer: no code in %.80q", body)
	}
	return a, nil
}

func appendStringField(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(dst, name...)
	return appendJSONString(dst, value)
}

// appendJSONString appends value as a JSON string. Plain ASCII is copied;
// anything encoding/json would escape takes its slow path.
func appendJSONString(dst []byte, value string) []byte {
	for i := 0; i < len(value); i++ {
		if c := value[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, err := json.Marshal(value)
			if err != nil { // a Go string always marshals
				quoted = []byte(`""`)
			}
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, value...)
	return append(dst, '"')
}
