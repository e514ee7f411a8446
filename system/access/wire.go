package access

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/hotsku/hotsku/system/seckill"
)

// heads are the response heads by code, up to the content length's digits.
var heads = func() [256][]byte {
	var h [256][]byte
	for _, c := range seckill.Codes() {
		s := c.HTTPStatus()
		h[c] = []byte("HTTP/1.1 " + strconv.Itoa(s) + " " + fasthttp.StatusMessage(s) +
			"\r\nContent-Type: application/json\r\nContent-Length: ")
	}
	return h
}()

// maxBodyDigits is the room kept for the content length; answers are far
// shorter than 10 kB.
const maxBodyDigits = 4

// appendResponse appends a whole HTTP response to dst. last announces that
// the connection is closed after it.
func appendResponse(dst []byte, a *seckill.Answer, last bool) []byte {
	dst = append(dst, heads[a.Code]...)
	digits := len(dst)
	dst = append(dst, "0000"...)
	if a.RetryAfterMS > 0 { // in whole seconds, rounded up: never an invitation to come early
		dst = append(dst, "\r\nRetry-After: "...)
		dst = strconv.AppendInt(dst, (a.RetryAfterMS+999)/1000, 10)
	}
	if last {
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
	return dst
}
