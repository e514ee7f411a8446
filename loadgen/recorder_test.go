package loadgen

import (
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotsku/hotsku/loadgen/hdr"
	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/loadgen/wire"
)

// BenchmarkAnswered is all that happens to a parsed answer: extraction,
// histograms, series and history, compression included.
func BenchmarkAnswered(b *testing.B) {
	b.ReportAllocs()
	w, err := history.NewWriter(io.Discard, history.Header{})
	if err != nil {
		b.Fatal(err)
	}
	s := newSpool(w)
	rec := &recorder{
		extract: func(int, []byte) (uint8, [16]byte) { return 4, [16]byte{} },
		start:   new(atomic.Int64), resolved: new(atomic.Uint64), width: int64(slotWidthMin),
		slots: make([]slot, slotsMax), givenUp: hdr.New(), service: hdr.New(),
		spool: s, block: s.swap(nil),
	}
	resp := &wire.Response{Status: 410}
	const span = int64(time.Minute)
	var n uint64
	for b.Loop() {
		at := int64(n) * 3333 % span
		rec.Begin()
		rec.Answered(&wire.Request{N: n, Subject: n * 2654435761 % 3_000_000, Intended: at, Sent: at + 600_000}, at+1_500_000+at%100_000, resp)
		rec.End(1)
		n++
	}
	if err := s.close(); err != nil {
		b.Fatal(err)
	}
}
