package loadgen_test

import (
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/hotsku/hotsku/loadgen"
	"github.com/hotsku/hotsku/loadgen/pace"

	"time"
)

func listen() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

// posts makes POST requests of about 330 bytes, the request's number in a
// header and in the body.
type posts struct{}

func (posts) Append(dst []byte, n uint64) ([]byte, uint64, uint32) {
	dst = append(dst, "POST /v1/orders HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"+
		"Authorization: Bearer 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\r\nX-N: "...)
	dst = strconv.AppendUint(dst, n, 10)
	dst = append(dst, "\r\nContent-Length: 91\r\n\r\n{\"activity\":\"a-0001\",\"sku\":\"s-0001\",\"quantity\":1,\"request_id\":\"00000000000000000000000000"...)
	var num [26]byte
	digits := strconv.AppendUint(num[:0], n, 10)
	copy(dst[len(dst)-len(digits):], digits)
	dst = append(dst, `"}`...)
	return dst, n * 7, uint32(n)
}

func newPosts() loadgen.Source { return posts{} }

func constant(tb testing.TB, rate float64, span time.Duration) pace.Schedule {
	tb.Helper()
	s, err := pace.NewConstant(rate, span)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// serve runs handle for every connection of a listener on loopback until the
// test ends.
func serve(tb testing.TB, handle func(net.Conn)) (addr string) {
	tb.Helper()
	ln, err := listen()
	if err != nil {
		tb.Fatal(err)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	open := map[net.Conn]bool{}
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[c] = true
			mu.Unlock()
			wg.Go(func() {
				defer func() {
					_ = c.Close()
					mu.Lock()
					delete(open, c)
					mu.Unlock()
				}()
				handle(c)
			})
		}
	})
	tb.Cleanup(func() {
		_ = ln.Close()
		mu.Lock()
		for c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return ln.Addr().String()
}
