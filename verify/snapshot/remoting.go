package snapshot

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Codes of org.apache.rocketmq.remoting.protocol.RequestCode and
// ResponseCode. The client library keeps its calls for them internal.
const (
	requestPullMessage         = 11
	requestQueryConsumerOffset = 14
	requestBrokerRuntimeInfo   = 28
	requestMaxOffset           = 30
	requestMinOffset           = 31
	requestRouteByTopic        = 105

	responseSuccess          = 0
	responseTopicNotExist    = 17
	responsePullNotFound     = 19
	responsePullRetryAtOnce  = 20
	responsePullOffsetMoved  = 21
	responseOffsetNotFound   = 22
	frameMaxBytes            = 32 << 20 // a pull is bounded by the broker far below
	remotingVersion          = 317      // what the client library says it is
	remotingLanguage         = "GO"
	remotingHeaderLengthMask = 0xffffff // the top byte is the serialization: 0, JSON
)

// remoting is one connection speaking RocketMQ's protocol: total length,
// header length, JSON header, body; one call at a time.
type remoting struct {
	conn   net.Conn
	opaque int32
}

type remotingHeader struct {
	Code          int               `json:"code"`
	Language      string            `json:"language"`
	Version       int               `json:"version"`
	Opaque        int32             `json:"opaque"`
	Flag          int               `json:"flag"`
	Remark        string            `json:"remark,omitempty"`
	Serialization string            `json:"serializeTypeCurrentRPC"`
	Fields        map[string]string `json:"extFields,omitempty"`
}

// remotingError is an answer that is not a success.
type remotingError struct {
	Request int
	Code    int
	Remark  string
}

func (e *remotingError) Error() string {
	return fmt.Sprintf("request %d answered code %d: %s", e.Request, e.Code, e.Remark)
}

// answered says whether err is the broker's answer with that code.
func answered(err error, code int) bool {
	var re *remotingError
	return errors.As(err, &re) && re.Code == code
}

func dialRemoting(ctx context.Context, addr string) (*remoting, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &remoting{conn: conn}, nil
}

// call sends one request and reads its answer until ctx ends. After any
// error but a *remotingError the connection is of no more use.
func (r *remoting) call(ctx context.Context, code int, fields map[string]string) (remotingHeader, []byte, error) {
	stop := context.AfterFunc(ctx, func() { r.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	r.opaque++
	header, err := json.Marshal(remotingHeader{Code: code, Language: remotingLanguage, Version: remotingVersion,
		Opaque: r.opaque, Serialization: "JSON", Fields: fields})
	if err != nil {
		return remotingHeader{}, nil, err
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(header)))
	if _, err := r.conn.Write(append(frame, header...)); err != nil {
		return remotingHeader{}, nil, fmt.Errorf("request %d: %w", code, err)
	}
	for {
		answer, body, err := readFrame(r.conn)
		if err != nil {
			return remotingHeader{}, nil, fmt.Errorf("request %d: %w", code, err)
		}
		if answer.Flag&1 == 0 || answer.Opaque != r.opaque {
			continue // a request of the broker's own, or a late answer
		}
		if answer.Code != responseSuccess {
			return answer, body, &remotingError{code, answer.Code, answer.Remark}
		}
		return answer, body, nil
	}
}

func readFrame(r io.Reader) (remotingHeader, []byte, error) {
	var h remotingHeader
	var lengths [8]byte
	if _, err := io.ReadFull(r, lengths[:]); err != nil {
		return h, nil, fmt.Errorf("read frame: %w", err)
	}
	total := binary.BigEndian.Uint32(lengths[:4])
	headerLength := binary.BigEndian.Uint32(lengths[4:]) & remotingHeaderLengthMask
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
