package loadgen

import (
	"sync/atomic"
	"time"
)

const (
	progressEvery = 250 * time.Millisecond
	sweepEvery    = 10 * time.Millisecond
	// liveWindow is how far back Live's percentiles look.
	liveWindow = time.Second
)

// Live is the state of a run while it goes on. Its figures were not read at
// one instant; the Result's are exact.
type Live struct {
	Elapsed    time.Duration // negative before the start
	Scheduled  uint64        // of the whole run
	Due        uint64        // so far
	Sent       uint64
	Waiting    uint64 // due and not yet written
	InFlight   uint64
	Completed  uint64
	Failed     uint64
	TimedOut   uint64
	Unfinished uint64
	Codes      map[uint8]uint64
	P50, P99   time.Duration // of requests intended about the last second
}

// progress carries the sender's figures to the goroutine that shows them.
type progress struct {
	due, sent, waiting atomic.Uint64
}

func (p *progress) publish(due, sent, waiting uint64) {
	p.due.Store(due)
	p.sent.Store(sent)
	p.waiting.Store(waiting)
}

// live gathers the present state.
func (r *run) live(elapsed time.Duration) Live {
	l := Live{
		Elapsed:   elapsed,
		Scheduled: r.cfg.Schedule.Total(),
		Due:       r.progress.due.Load(),
		Waiting:   r.progress.waiting.Load(),
		Codes:     map[uint8]uint64{},
	}
	resolved := r.resolved.Load()
	l.Sent = max(r.progress.sent.Load(), resolved)
	l.InFlight = l.Sent - resolved
	var recent slot
	last := int(min(max(elapsed, 0), r.cfg.Schedule.Span()-1) / r.width)
	first := max(0, last-int(liveWindow/r.width))
	for _, rec := range r.recorders {
		rec.mu.Lock()
		l.Completed += rec.completed
		l.TimedOut += rec.timedOut
		l.Unfinished += rec.unfinished
		for _, n := range rec.failed {
			l.Failed += n
		}
		for c, h := range rec.byCode {
			if h != nil {
				l.Codes[uint8(c)] += uint64(h.TotalCount())
			}
		}
		for i := first; i <= last; i++ {
			recent.merge(&rec.slots[i])
		}
		rec.mu.Unlock()
	}
	l.P50, l.P99 = recent.quantile(0.50), recent.quantile(0.99)
	return l
}
