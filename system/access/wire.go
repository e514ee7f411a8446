package access

import (
	"bytes"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/hotsku/hotsku/system/seckill"
)

// heads are the response heads by code, up to the content length's digits.
var heads = func() [codes][]byte {
	var h [codes][]byte
	for _, c := range seckill.Codes() {
		s := c.HTTPStatus()
		head := "HTTP/1.1 " + strconv.Itoa(s) + " " + fasthttp.StatusMessage(s)
		if c == seckill.CodeUnauthenticated {
			head += "\r\nWWW-Authenticate: Bearer"
		}
		h[c] = []byte(head + "\r\nContent-Type: application/json\r\nContent-Length: ")
	}
	return h
}()

// maxBodyDigits is the room kept for the content length; answers are far
// shorter than 10 kB.
const maxBodyDigits = 4

// framing is what an HTTP response says beside the answer.
type framing struct {
	last  bool   // the connection is closed after it
	allow string // the method the endpoint takes, if it does not take the request's
	bare  bool   // answers HEAD: no body
}

// appendResponse appends a whole HTTP response to dst.
func appendResponse(dst []byte, a *seckill.Answer, f framing) []byte {
	dst = append(dst, heads[a.Code]...)
	digits := len(dst)
	dst = append(dst, "0000"...)
	if a.RetryAfterMS > 0 { // in whole seconds, rounded up: never an invitation to come early
		dst = append(dst, "\r\nRetry-After: "...)
		dst = strconv.AppendInt(dst, (a.RetryAfterMS+999)/1000, 10)
	}
	if f.allow != "" {
		dst = append(dst, "\r\nAllow: "...)
		dst = append(dst, f.allow...)
	}
	if f.last {
		dst = append(dst, "\r\nConnection: close"...)
	}
	dst = append(dst, "\r\n\r\n"...)
	start := len(dst)
	dst = a.AppendJSON(dst)
	n := len(dst) - start
	for i := digits + maxBodyDigits - 1; i >= digits; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
	if f.bare {
		dst = dst[:start]
	}
	return dst
}

// documentResponse is the response that carries the interface's description.
func documentResponse(document []byte) []byte {
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 200 OK\r\nContent-Type: application/yaml\r\nContent-Length: " + strconv.Itoa(len(document)) + "\r\n\r\n")
	b.Write(document)
	return b.Bytes()
}
