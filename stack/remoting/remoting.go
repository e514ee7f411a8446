// Package remoting speaks RocketMQ's remoting protocol, for the calls the
// client library keeps to itself: what a name server knows, a queue's offsets,
// a pull that joins no group. Request and response codes are those of
// org.apache.rocketmq.remoting.protocol.
//
// It imports nothing of this repository.
package remoting

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

const (
	success          = 0
	frameMaxBytes    = 32 << 20 // a pull is bounded by the broker far below
	version          = 317      // what the client library says it is
	language         = "GO"
	headerLengthMask = 0xffffff // the top byte is the serialization: 0, JSON
)

// Conn is one connection: frames of total length, header length, JSON header
// and body; one call at a time.
type Conn struct {
	conn   net.Conn
	opaque int32
}

// Header of a request or an answer.
type Header struct {
	Code          int               `json:"code"`
	Language      string            `json:"language"`
	Version       int               `json:"version"`
	Opaque        int32             `json:"opaque"`
	Flag          int               `json:"flag"`
	Remark        string            `json:"remark,omitempty"`
	Serialization string            `json:"serializeTypeCurrentRPC"`
	Fields        map[string]string `json:"extFields,omitempty"`
}

// Error is an answer that is not a success.
type Error struct {
	Request int
	Code    int
	Remark  string
}

func (e *Error) Error() string {
	return fmt.Sprintf("request %d answered code %d: %s", e.Request, e.Code, e.Remark)
}

// Answered says whether err is the broker's answer with that code.
func Answered(err error, code int) bool {
	var re *Error
	return errors.As(err, &re) && re.Code == code
}

// Dial connects to a name server or a broker.
func Dial(ctx context.Context, addr string) (*Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &Conn{conn: conn}, nil
}

// Close closes the connection.
func (r *Conn) Close() error { return r.conn.Close() }

// Call sends one request and reads its answer until ctx ends. After any
// error but a *Error the connection is of no more use.
func (r *Conn) Call(ctx context.Context, code int, fields map[string]string, body []byte) (Header, []byte, error) {
	stop := context.AfterFunc(ctx, func() { r.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	r.opaque++
	header, err := json.Marshal(Header{Code: code, Language: language, Version: version,
		Opaque: r.opaque, Serialization: "JSON", Fields: fields})
	if err != nil {
		return Header{}, nil, err
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)+len(body)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(header)))
	if _, err := r.conn.Write(slices.Concat(frame, header, body)); err != nil {
		return Header{}, nil, fmt.Errorf("request %d: %w", code, err)
	}
	for {
		answer, body, err := readFrame(r.conn)
		if err != nil {
			return Header{}, nil, fmt.Errorf("request %d: %w", code, err)
		}
		if answer.Flag&1 == 0 || answer.Opaque != r.opaque {
			continue // a request of the broker's own, or a late answer
		}
		if answer.Code != success {
			return answer, body, &Error{code, answer.Code, answer.Remark}
		}
		return answer, body, nil
	}
}

func readFrame(r io.Reader) (Header, []byte, error) {
	var h Header
	var lengths [8]byte
	if _, err := io.ReadFull(r, lengths[:]); err != nil {
		return h, nil, fmt.Errorf("read frame: %w", err)
	}
	total := binary.BigEndian.Uint32(lengths[:4])
	headerLength := binary.BigEndian.Uint32(lengths[4:]) & headerLengthMask
	if lengths[4] != 0 || total < 4 || total > frameMaxBytes || headerLength > total-4 {
		return h, nil, fmt.Errorf("read frame: impossible lengths %d and %d", total, binary.BigEndian.Uint32(lengths[4:]))
	}
	rest := make([]byte, total-4)
	if _, err := io.ReadFull(r, rest); err != nil {
		return h, nil, fmt.Errorf("read frame: %w", err)
	}
	if err := json.Unmarshal(rest[:headerLength], &h); err != nil {
		return h, nil, fmt.Errorf("read frame header: %w", err)
	}
	return h, rest[headerLength:], nil
}
