// Package traffic makes the order requests of a plan for the generator, and
// reads their answers. Request n is a pure function of the plan's seed and n;
// its token is signed as it is sent.
//
// Imports allowed: system/seckill, verify/rundir.
package traffic

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// Source makes requests for one SKU. Not safe for concurrent use: give each
// sender its own, by Sources.
type Source struct {
	workload   rundir.Workload
	codec      *seckill.TokenCodec
	activityID int64
	expiresAt  int64
	head       []byte // up to the token
	body       []byte // up to the request id
}

// bodyEnd closes the body after the request id.
const bodyEnd = `","quantity":1}`

// Params of Sources.
type Params struct {
	Workload   rundir.Workload
	ActivityID int64
	SKUID      int64
	Key        seckill.TokenKey
	ExpiresAt  int64  // of the tokens, Unix seconds
	Host       string // header
}

// Sources checks the parameters and returns a maker of sources.
func Sources(p Params) (func() *Source, error) {
	if p.ActivityID <= 0 || p.SKUID <= 0 {
		return nil, fmt.Errorf("traffic: activity %d and SKU %d must be positive", p.ActivityID, p.SKUID)
	}
	if _, err := seckill.NewTokenCodec(p.Key); err != nil {
		return nil, fmt.Errorf("traffic: %w", err)
	}
	return func() *Source {
		codec, _ := seckill.NewTokenCodec(p.Key) // checked above
		return &Source{workload: p.Workload, codec: codec, activityID: p.ActivityID, expiresAt: p.ExpiresAt,
			head: []byte("POST /v1/seckill/orders HTTP/1.1\r\nHost: " + p.Host +
				"\r\nContent-Type: application/json\r\nAuthorization: Bearer "),
			body: []byte(`{"activity_id":` + strconv.FormatInt(p.ActivityID, 10) + `,"sku_id":` +
				strconv.FormatInt(p.SKUID, 10) + `,"request_id":"`)}
	}, nil
}

// Append appends request n and names its user and request ordinal.
func (s *Source) Append(dst []byte, n uint64) (out []byte, subject uint64, ordinal uint32) {
	pick := s.workload.Pick(n)
	dst = append(dst, s.head...)
	dst = s.codec.AppendSigned(dst, pick.User, s.activityID, s.expiresAt)
	dst = append(dst, "\r\nContent-Length: "...)
	length := len(dst)
	dst = append(dst, "000\r\n\r\n"...)
	start := len(dst)
	dst = append(dst, s.body...)
	dst = s.workload.AppendRequestID(dst, pick.Ordinal)
	dst = append(dst, bodyEnd...)
	size := len(dst) - start
	dst[length], dst[length+1], dst[length+2] = byte('0'+size/100), byte('0'+size/10%10), byte('0'+size%10)
	return dst, uint64(pick.User), pick.Ordinal
}

// Extract reads an answer's code and its reservation id as a tag. An answer
// that is none of the contract's has code 0. It does not allocate for the
// answers the edge gives most.
func Extract(_ int, body []byte) (code uint8, tag [16]byte) {
	rest, ok := bytes.CutPrefix(body, []byte(`{"code":"`))
	if !ok {
		return slowExtract(body)
	}
	name, rest, ok := bytes.Cut(rest, quote)
	if !ok {
		return slowExtract(body)
	}
	c, ok := parseCode(name)
	if !ok {
		return 0, tag
	}
	if _, after, found := bytes.Cut(rest, []byte(`"reservation_id":"`)); found {
		id, _, _ := bytes.Cut(after, quote)
		tag, _ = seckill.ReservationTag(id)
	}
	return uint8(c), tag
}

var quote = []byte{'"'}

// parseCode compares without making a string of name.
func parseCode(name []byte) (seckill.Code, bool) {
	switch string(name) {
	case "SOLD_OUT":
		return seckill.CodeSoldOut, true
	case "RATE_LIMITED":
		return seckill.CodeRateLimited, true
	case "QUEUED":
		return seckill.CodeQueued, true
	}
	return seckill.ParseCode(string(name))
}

func slowExtract(body []byte) (code uint8, tag [16]byte) {
	a, err := seckill.ParseAnswer(body)
	if err != nil {
		return 0, tag
	}
	tag, _ = seckill.ReservationTag([]byte(a.ReservationID))
	return uint8(a.Code), tag
}
