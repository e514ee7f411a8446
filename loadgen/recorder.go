package loadgen

import (
	"sync"
	"sync/atomic"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/hotsku/hotsku/loadgen/hdr"
	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/loadgen/wire"
)

// recorder takes the ends of requests from some of the connections. Several
// recorders share the work so that connections seldom wait for each other.
type recorder struct {
	extract  Extractor
	start    *atomic.Int64  // of the run, on the connections' clock
	resolved *atomic.Uint64 // ends of written requests, over all recorders
	width    int64          // of a slot, ns

	mu         sync.Mutex
	spool      *spool // nil: no history
	block      []byte
	completed  uint64
	failed     [wire.CauseCount]uint64
	timedOut   uint64
	dropped    uint64
	unfinished uint64
	statuses   [1000]uint64
	byCode     [256]*hdrhistogram.Histogram
	givenUp    *hdrhistogram.Histogram // timed out and unfinished
	service    *hdrhistogram.Histogram
	slots      []slot
}

var _ wire.Sink = (*recorder)(nil)

// Begin implements wire.Sink.
func (rec *recorder) Begin() { rec.mu.Lock() }

// End implements wire.Sink.
func (rec *recorder) End(requests int) {
	rec.mu.Unlock()
	rec.resolved.Add(uint64(requests))
}

// Answered implements wire.Sink.
func (rec *recorder) Answered(r *wire.Request, done int64, resp *wire.Response) {
	code, tag := rec.extract(int(resp.Status), resp.Body)
	latency := done - r.Intended
	h := rec.byCode[code]
	if h == nil {
		h = hdr.New()
		rec.byCode[code] = h
	}
	hdr.Observe(h, latency)
	hdr.Observe(rec.service, done-r.Sent)
	rec.completed++
	rec.statuses[resp.Status]++
	rec.slot(r).answered(code, latency)
	rec.record(r, done, history.Record{Status: resp.Status, Outcome: history.Completed, Code: code, Tag: tag})
}

// Failed implements wire.Sink.
func (rec *recorder) Failed(r *wire.Request, done int64, cause wire.Cause) {
	rec.failed[cause]++
	rec.slot(r).lost++
	rec.record(r, done, history.Record{Outcome: history.Failed, Code: uint8(cause)})
}

// TimedOut implements wire.Sink.
func (rec *recorder) TimedOut(r *wire.Request, done int64) {
	rec.timedOut++
	rec.giveUp(r, done)
	rec.record(r, done, history.Record{Outcome: history.TimedOut})
}

// Unfinished implements wire.Sink.
func (rec *recorder) Unfinished(r *wire.Request, done int64) {
	rec.unfinished++
	rec.giveUp(r, done)
	rec.record(r, done, history.Record{Outcome: history.Unfinished})
}

// drop accounts for a request of which nothing was written.
func (rec *recorder) drop(r *wire.Request) {
	rec.dropped++
	rec.append(&history.Record{
		N: r.N, Subject: r.Subject, Ordinal: r.Ordinal, Intended: r.Intended - rec.start.Load(),
		Sent: history.Never, Done: history.Never, Outcome: history.Dropped,
	})
}

func (rec *recorder) giveUp(r *wire.Request, done int64) {
	latency := done - r.Intended
	hdr.Observe(rec.givenUp, latency)
	hdr.Observe(rec.service, done-r.Sent)
	rec.slot(r).givenUp(latency)
}

func (rec *recorder) slot(r *wire.Request) *slot {
	return &rec.slots[(r.Intended-rec.start.Load())/rec.width]
}

// record completes o by what r and done say and appends it.
func (rec *recorder) record(r *wire.Request, done int64, o history.Record) {
	start := rec.start.Load()
	o.N, o.Subject, o.Ordinal = r.N, r.Subject, r.Ordinal
	o.Intended, o.Sent, o.Done = r.Intended-start, r.Sent-start, done-start
	rec.append(&o)
}

func (rec *recorder) append(o *history.Record) {
	if rec.spool == nil {
		return
	}
	n := len(rec.block)
	rec.block = rec.block[:n+history.RecordBytes]
	o.Encode((*[history.RecordBytes]byte)(rec.block[n:]))
	if len(rec.block) == cap(rec.block) {
		rec.block = rec.spool.swap(rec.block)
	}
}
