package loadgen

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/hotsku/hotsku/loadgen/hdr"
	"github.com/hotsku/hotsku/loadgen/wire"
)

// Result is what a run amounted to. All histograms hold nanoseconds.
type Result struct {
	Started  time.Time     // when the first request could be due
	Span     time.Duration // of the schedule
	Elapsed  time.Duration // from Started until the last request had ended
	SentSpan time.Duration // from Started until the last write

	// Scheduled = Completed + Failed + TimedOut + Dropped + Unfinished.
	Scheduled  uint64
	Completed  uint64 // any parsed answer, whatever its status
	Failed     uint64 // written; connection lost or answer unreadable
	TimedOut   uint64 // written; no answer within the timeout
	Dropped    uint64 // never written
	Unfinished uint64 // written; the run ended first
	Sent       uint64 // Scheduled - Dropped

	// Unrecorded are those of Dropped that were due only after the run had
	// been interrupted; they have no record in the history.
	Unrecorded uint64

	Statuses map[int]uint64        // of Completed
	Codes    map[uint8]uint64      // of Completed
	Failures map[wire.Cause]uint64 // of Failed

	// Latency runs from the intended time to the answer, or to the moment a
	// request that timed out or was unfinished was given up. Failed requests
	// are not in it: how soon a connection broke says nothing of answers.
	Latency *hdrhistogram.Histogram
	// Accepted is the part of Latency whose code is one of Config.Accepted.
	Accepted *hdrhistogram.Histogram
	// ByCode is the part of Latency that was completed, by code.
	ByCode map[uint8]*hdrhistogram.Histogram
	// Service runs from the write; it covers what Latency covers.
	Service *hdrhistogram.Histogram
	// SendLag runs from the intended time to the write, of all sent requests.
	// It is the generator's own delay unless all connections were full.
	SendLag *hdrhistogram.Histogram

	Series     []Point
	PointWidth time.Duration

	Connections wire.Stats

	InFlightMax uint64 // seen at the sender's wake-ups
	BacklogMax  uint64 // due and not yet offered to a connection when the sender woke
	// ConnsFull is how long requests that were due waited because no connection
	// had room or was up. Send lag without it is the generator's own fault.
	ConnsFull     time.Duration
	HistoryStalls uint64 // times an answer waited for the history's writer

	// Strain says what may have kept the generator from its schedule.
	Strain Strain

	// CPU is the time this process spent, in user and system mode, from
	// Started until the last request had ended.
	CPU time.Duration

	// Interrupted is why the run ended before its schedule, or nil.
	Interrupted error
}

// Balanced checks the accounting equation.
func (r *Result) Balanced() error {
	sum := r.Completed + r.Failed + r.TimedOut + r.Dropped + r.Unfinished
	if sum != r.Scheduled {
		return fmt.Errorf("accounting: %d completed + %d failed + %d timed out + %d dropped + %d unfinished = %d, but %d were scheduled",
			r.Completed, r.Failed, r.TimedOut, r.Dropped, r.Unfinished, sum, r.Scheduled)
	}
	return nil
}

// Summary are the usual figures of a histogram.
type Summary struct {
	Count                    uint64
	P50, P90, P99, P999, Max time.Duration
}

// Summarize reads them off h.
func Summarize(h *hdrhistogram.Histogram) Summary {
	q := func(p float64) time.Duration { return time.Duration(h.ValueAtQuantile(p)) }
	return Summary{
		Count: uint64(h.TotalCount()),
		P50:   q(50), P90: q(90), P99: q(99), P999: q(99.9),
		Max: time.Duration(h.Max()),
	}
}

// result adds up what the run's parts counted.
func (r *run) result() *Result {
	s := r.sender
	res := &Result{
		Span:        r.cfg.Schedule.Span(),
		SentSpan:    time.Duration(s.lastSent),
		Scheduled:   r.cfg.Schedule.Total(),
		Sent:        s.sent,
		Statuses:    map[int]uint64{},
		Codes:       map[uint8]uint64{},
		Failures:    map[wire.Cause]uint64{},
		Latency:     hdr.New(),
		Accepted:    hdr.New(),
		ByCode:      map[uint8]*hdrhistogram.Histogram{},
		Service:     hdr.New(),
		SendLag:     s.lag,
		PointWidth:  r.width,
		InFlightMax: s.inFlightMax,
		BacklogMax:  s.backlogMax,
		ConnsFull:   s.full,
	}
	slots := make([]slot, len(r.recorders[0].slots))
	for _, rec := range r.recorders {
		rec.addTo(res)
		for i := range slots {
			slots[i].merge(&rec.slots[i])
		}
	}
	for code, h := range res.ByCode {
		res.Codes[code] = uint64(h.TotalCount())
		res.Latency.Merge(h)
	}
	for _, code := range r.cfg.Accepted {
		if h := res.ByCode[code]; h != nil {
			res.Accepted.Merge(h)
		}
	}
	res.Series = points(slots, r.width, r.cfg.Schedule)
	for _, c := range r.conns {
		st := c.Stats()
		res.Connections.Add(&st)
	}
	return res
}

// addTo adds the recorder's counts and histograms to res.
func (rec *recorder) addTo(res *Result) {
	res.Completed += rec.completed
	res.TimedOut += rec.timedOut
	res.Dropped += rec.dropped
	res.Unfinished += rec.unfinished
	for cause, n := range rec.failed {
		if n > 0 {
			res.Failed += n
			res.Failures[wire.Cause(cause)] += n
		}
	}
	for status, n := range rec.statuses {
		if n > 0 {
			res.Statuses[status] += n
		}
	}
	for code, h := range rec.byCode {
		if h == nil {
			continue
		}
		if res.ByCode[uint8(code)] == nil {
			res.ByCode[uint8(code)] = hdr.New()
		}
		res.ByCode[uint8(code)].Merge(h)
	}
	res.Latency.Merge(rec.givenUp)
	res.Service.Merge(rec.service)
}
