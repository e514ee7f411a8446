package backlog

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"time"
)

// Codes of org.apache.rocketmq.remoting.protocol.RequestCode and
// ResponseCode. The client library keeps its calls for them internal.
const (
	requestPullMessage         = 11
	requestQueryConsumerOffset = 14
	requestMaxOffset           = 30
	requestMinOffset           = 31
	requestRouteByTopic        = 105

	responseSuccess        = 0
	responseOffsetNotFound = 22
	responsePullNotFound   = 19
	responsePullRetryNow   = 20
	responsePullMoved      = 21

	remotingVersion    = 317      // what the client library says it is
	frameMaxBytes      = 32 << 20 // one message is far below
	headerLengthMask   = 0xffffff // the top byte is the serialization: 0, JSON
	remotingAnswerFlag = 1
)

// credentials sign requests, as the client library's do; empty: unsigned.
type credentials struct{ accessKey, secretKey string }

// sign adds the signature: HMAC-SHA1 over the values of all fields, in the
// order of their names.
func (c credentials) sign(fields map[string]string) map[string]string {
	if c.accessKey == "" {
		return fields
	}
	signed := maps.Clone(fields)
	signed["AccessKey"] = c.accessKey
	mac := hmac.New(sha1.New, []byte(c.secretKey))
	for _, name := range slices.Sorted(maps.Keys(signed)) {
		mac.Write([]byte(signed[name]))
	}
	signed["Signature"] = base64.StdEncoding.EncodeToString(mac.Sum(nil))
	return signed
}

// conn is one connection speaking RocketMQ's protocol: total length, header
// length, JSON header, body; one call at a time.
type conn struct {
	nc     net.Conn
	who    credentials
	opaque int32
}

type header struct {
	Code          int               `json:"code"`
	Language      string            `json:"language"`
	Version       int               `json:"version"`
	Opaque        int32             `json:"opaque"`
	Flag          int               `json:"flag"`
	Remark        string            `json:"remark,omitempty"`
	Serialization string            `json:"serializeTypeCurrentRPC"`
	Fields        map[string]string `json:"extFields,omitempty"`
}

// answerError is an answer that is not a success.
type answerError struct {
	request, code int
	remark        string
}

func (e *answerError) Error() string {
	first, _, _ := strings.Cut(e.remark, "\n")
	return fmt.Sprintf("request %d answered code %d: %s", e.request, e.code, cmp.Or(first, "no remark"))
}

// answered says whether err is the server's answer with that code.
func answered(err error, code int) bool {
	var ae *answerError
	return errors.As(err, &ae) && ae.code == code
}

// call sends one request and reads its answer until ctx ends. After any error
// but an *answerError the connection is of no more use.
func (c *conn) call(ctx context.Context, code int, fields map[string]string) (map[string]string, []byte, error) {
	if err := c.nc.SetDeadline(time.Time{}); err != nil { // an earlier call's may have passed
		return nil, nil, fmt.Errorf("request %d: %w", code, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.nc.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	c.opaque++
	head, err := json.Marshal(header{Code: code, Language: "GO", Version: remotingVersion, Opaque: c.opaque,
		Serialization: "JSON", Fields: c.who.sign(fields)})
	if err != nil {
		return nil, nil, err
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(head)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(head)))
	if _, err := c.nc.Write(append(frame, head...)); err != nil {
		return nil, nil, fmt.Errorf("request %d: %w", code, err)
	}
	for {
		answer, body, err := readFrame(c.nc)
		if err != nil {
			return nil, nil, fmt.Errorf("request %d: %w", code, err)
		}
		if answer.Flag&remotingAnswerFlag == 0 || answer.Opaque != c.opaque {
			continue // a request of the server's own, or a late answer
		}
		if answer.Code != responseSuccess {
			return answer.Fields, body, &answerError{code, answer.Code, answer.Remark}
		}
		return answer.Fields, body, nil
	}
}

func readFrame(r io.Reader) (header, []byte, error) {
	var h header
	var lengths [8]byte
	if _, err := io.ReadFull(r, lengths[:]); err != nil {
		return h, nil, fmt.Errorf("read frame: %w", err)
	}
	total := binary.BigEndian.Uint32(lengths[:4])
	headLength := binary.BigEndian.Uint32(lengths[4:]) & headerLengthMask
	if lengths[4] != 0 || total < 4 || total > frameMaxBytes || headLength > total-4 {
		return h, nil, fmt.Errorf("read frame: impossible lengths %d and %d", total, headLength)
	}
	rest := make([]byte, total-4)
	if _, err := io.ReadFull(r, rest); err != nil {
		return h, nil, fmt.Errorf("read frame: %w", err)
	}
	if err := json.Unmarshal(rest[:headLength], &h); err != nil {
		return h, nil, fmt.Errorf("read frame header: %w", err)
	}
	return h, rest[headLength:], nil
}
