package pace

import (
	"fmt"
	"time"
)

// Burst is a number of requests that are all due at one moment.
type Burst struct {
	total uint64
	at    time.Duration
	span  time.Duration
}

var _ Schedule = Burst{}

// NewBurst makes total requests due at the moment at of a span that is longer
// than it.
func NewBurst(total uint64, at, span time.Duration) (Burst, error) {
	switch {
	case total == 0 || total > burstTotalMax:
		return Burst{}, fmt.Errorf("%w: a burst of %d requests: give 1 to %d", ErrShape, total, burstTotalMax)
	case at < 0 || at >= span:
		return Burst{}, fmt.Errorf("%w: a burst at %v of %v: give a moment before the end", ErrDuration, at, span)
	case span > SpanMax:
		return Burst{}, fmt.Errorf("%w %v: give at most %v", ErrDuration, span, SpanMax)
	}
	return Burst{total: total, at: at, span: span}, nil
}

// Total implements Schedule.
func (b Burst) Total() uint64 { return b.total }

// Span implements Schedule.
func (b Burst) Span() time.Duration { return b.span }

// Due implements Schedule.
func (b Burst) Due(elapsed time.Duration) uint64 {
	if elapsed < b.at {
		return 0
	}
	return b.total
}

// At implements Schedule.
func (b Burst) At(uint64) time.Duration { return b.at }
