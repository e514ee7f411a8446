package access

import (
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/hotsku/hotsku/system/admission"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// endless serves the same bytes for ever and swallows what is written.
type endless struct {
	net.Conn
	request []byte
	at      int
	left    int
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && e.left > 0 {
		c := copy(p[n:], e.request[e.at:])
		n += c
		if e.at += c; e.at == len(e.request) {
			e.at = 0
			e.left--
		}
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}
func (e *endless) Write(p []byte) (int, error)      { return len(p), nil }
func (e *endless) SetReadDeadline(time.Time) error  { return nil }
func (e *endless) SetWriteDeadline(time.Time) error { return nil }
func (e *endless) Close() error                     { return nil }
func (e *endless) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }

// BenchmarkRefused is the path of nearly all requests: parse, verify the
// token, ask the gate, answer SOLD_OUT.
func BenchmarkRefused(b *testing.B) {
	benchmark(b, sold{30001: true}, newHeld())
}

// BenchmarkRateLimited is the path of most requests before sell-out.
func BenchmarkRateLimited(b *testing.B) {
	full := newHeld()
	full.full = true
	benchmark(b, sold{}, full)
}

func benchmark(b *testing.B, gate Gate, sub Submitter) {
	cfg := ConfigDefault
	cfg.Limits.User = admission.Limit{PerSecond: 100_000, Burst: 1_000_000} // looked at, never met
	s, err := New(Params{Config: cfg, Keys: []seckill.TokenKey{key}, Gate: gate, Submit: sub, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	nc := &endless{request: []byte(orderOf(30001, "r1234-5678901")), left: b.N}
	b.SetBytes(int64(len(nc.request)))
	b.ReportAllocs()
	b.ResetTimer()
	s.start(nc)
	s.serving.Wait()
	if n := s.Stats.SKUs()[reservation.SKU{ActivityID: 7, SKUID: 8}].Requests.Load(); n != int64(b.N) {
		b.Fatalf("%d requests handled, want %d", n, b.N)
	}
}
