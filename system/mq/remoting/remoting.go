// Package remoting speaks RocketMQ's remoting protocol as far as the client
// library cannot: it asks as an observer that joins no group, and it looks at
// the answers to what the library sends blindly.
//
// Every client of the system, the library's too, reaches RocketMQ by the same
// Security.
//
// Imports allowed: none of the system.
package remoting

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/tls"
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
	"syscall"
	"time"
)

// Codes of org.apache.rocketmq.remoting.protocol.RequestCode and
// ResponseCode.
const (
	RequestPullMessage         = 11
	RequestQueryConsumerOffset = 14
	RequestCreateTopic         = 17
	RequestMaxOffset           = 30
	RequestMinOffset           = 31
	RequestHeartbeat           = 34
	RequestRouteByTopic        = 105

	ResponseSystemError    = 1
	ResponseNoPermission   = 16
	ResponseTopicNotExist  = 17
	ResponsePullNotFound   = 19
	ResponsePullRetryNow   = 20
	ResponsePullMoved      = 21
	ResponseOffsetNotFound = 22

	responseSuccess    = 0
	remotingVersion    = 317      // what the client library says it is
	frameMaxBytes      = 32 << 20 // one message is far below
	headerLengthMask   = 0xffffff // the top byte is the serialization: 0, JSON
	remotingAnswerFlag = 1
)

// Security is how name servers and brokers are reached.
type Security struct {
	// TLS encrypts. It does not tell who answers: the client library takes any
	// certificate, so checking it here alone would promise what nobody keeps.
	TLS bool
	// AccessKey and SecretKey sign requests; empty: unsigned. The secret
	// itself is never sent.
	AccessKey, SecretKey string
}

// sign adds the signature: HMAC-SHA1 over the values of all fields, in the
// order of their names, and the body.
func (s Security) sign(fields map[string]string, body []byte) map[string]string {
	if s.AccessKey == "" {
		return fields
	}
	signed := maps.Clone(fields)
	if signed == nil {
		signed = make(map[string]string)
	}
	signed["AccessKey"] = s.AccessKey
	mac := hmac.New(sha1.New, []byte(s.SecretKey))
	for _, name := range slices.Sorted(maps.Keys(signed)) {
		mac.Write([]byte(signed[name]))
	}
	mac.Write(body)
	signed["Signature"] = base64.StdEncoding.EncodeToString(mac.Sum(nil))
	return signed
}

// Conn is one connection speaking RocketMQ's protocol: total length, header
// length, JSON header, body; one call at a time.
type Conn struct {
	nc     net.Conn
	who    Security
	opaque int32
}

// Dial connects to addr, host:port, until ctx ends.
func Dial(ctx context.Context, addr string, s Security) (*Conn, error) {
	var nc net.Conn
	var err error
	if s.TLS {
		nc, err = (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", addr)
	} else {
		nc, err = (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	}
	if err != nil {
		return nil, s.advise(err)
	}
	return &Conn{nc: nc, who: s}, nil
}

// Close closes the connection.
func (c *Conn) Close() error { return c.nc.Close() }

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

// AnswerError is an answer that is not a success.
type AnswerError struct {
	Request, Code int
	Remark        string
}

func (e *AnswerError) Error() string {
	first, _, _ := strings.Cut(e.Remark, "\n")
	return fmt.Sprintf("request %d answered code %d: %s", e.Request, e.Code, cmp.Or(strings.TrimSpace(first), "no remark"))
}

// Answered says whether err is the server's answer with that code.
func Answered(err error, code int) bool {
	var ae *AnswerError
	return errors.As(err, &ae) && ae.Code == code
}

// Advice is an error whose cause may be an option: the server is there, and
// does not take us as we are.
type Advice struct {
	Err   error
	Check string // what to do
}

func (e *Advice) Error() string { return e.Err.Error() + ": " + e.Check }
func (e *Advice) Unwrap() error { return e.Err }

// advise adds to an error what its cause may be among the options.
func (s Security) advise(err error) error {
	switch {
	case errors.As(err, new(tls.RecordHeaderError)):
		return &Advice{err, "it speaks no TLS: check --mq-tls"}
	case !s.TLS && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)):
		return &Advice{err, "if it wants TLS, give --mq-tls"}
	case refused(err) && s.AccessKey == "":
		return &Advice{err, "it wants an access key: give --mq-access-key and --mq-secret-key"}
	case refused(err):
		return &Advice{err, "check --mq-access-key and --mq-secret-key, and what they may do"}
	}
	return err
}

// refused says that the server did not accept who asks, or what he asks.
func refused(err error) bool {
	var ae *AnswerError
	return errors.As(err, &ae) && (ae.Code == ResponseNoPermission ||
		ae.Code == ResponseSystemError && (strings.Contains(ae.Remark, "AclException") || strings.Contains(ae.Remark, "AuthenticationException")))
}

// Call sends one request and reads its answer until ctx ends. After any error
// but one that wraps *AnswerError the connection is of no more use.
func (c *Conn) Call(ctx context.Context, code int, fields map[string]string, body []byte) (map[string]string, []byte, error) {
	if err := c.nc.SetDeadline(time.Time{}); err != nil { // an earlier call's may have passed
		return nil, nil, fmt.Errorf("request %d: %w", code, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.nc.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	c.opaque++
	head, err := json.Marshal(header{Code: code, Language: "GO", Version: remotingVersion, Opaque: c.opaque,
		Serialization: "JSON", Fields: c.who.sign(fields, body)})
	if err != nil {
		return nil, nil, err
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(head)+len(body)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(head)))
	if _, err := c.nc.Write(append(append(frame, head...), body...)); err != nil {
		return nil, nil, fmt.Errorf("request %d: %w", code, c.who.advise(err))
	}
	for {
		answer, body, err := readFrame(c.nc)
		if err != nil {
			return nil, nil, fmt.Errorf("request %d: %w", code, c.who.advise(err))
		}
		if answer.Flag&remotingAnswerFlag == 0 || answer.Opaque != c.opaque {
			continue // a request of the server's own, or a late answer
		}
		if answer.Code != responseSuccess {
			return answer.Fields, body, c.who.advise(&AnswerError{code, answer.Code, answer.Remark})
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
