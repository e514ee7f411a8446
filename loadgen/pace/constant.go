package pace

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Limits of every schedule.
const (
	// RateMax is the highest accepted rate, in requests per second. A loopback
	// interface carries less; a higher figure is a slip of the keyboard.
	RateMax = 100_000_000
	// SpanMax is the longest accepted schedule.
	SpanMax = 31 * 24 * time.Hour
)

// Errors of making a schedule, for errors.Is.
var (
	ErrRate     = errors.New("bad rate")
	ErrDuration = errors.New("bad duration")
)

// Constant spreads a fixed number of requests evenly over a span. Intended
// times are computed by 128-bit integer arithmetic from the request's number,
// so that neither the count nor the last intended time drifts.
type Constant struct {
	total uint64
	span  uint64 // ns
}

var _ Schedule = Constant{}

// NewConstant offers rate requests per second for span: round(rate × span)
// requests. Rates below 1 are allowed as long as at least one request results.
func NewConstant(rate float64, span time.Duration) (Constant, error) {
	switch {
	case math.IsNaN(rate) || math.IsInf(rate, 0):
		return Constant{}, fmt.Errorf("%w %v: give a finite number of requests per second", ErrRate, rate)
	case rate <= 0:
		return Constant{}, fmt.Errorf("%w %v: give more than 0 requests per second", ErrRate, rate)
	case rate > RateMax:
		return Constant{}, fmt.Errorf("%w %.0f: give at most %d requests per second", ErrRate, rate, RateMax)
	case span <= 0:
		return Constant{}, fmt.Errorf("%w %v: give more than 0s", ErrDuration, span)
	case span > SpanMax:
		return Constant{}, fmt.Errorf("%w %v: give at most %v", ErrDuration, span, SpanMax)
	}
	total := uint64(math.Round(rate * span.Seconds()))
	if total == 0 {
		return Constant{}, fmt.Errorf("%w %v: over %v it schedules no request; raise the rate or the duration", ErrRate, rate, span)
	}
	return Constant{total: total, span: uint64(span)}, nil
}

// Total implements Schedule.
func (c Constant) Total() uint64 { return c.total }

// Span implements Schedule.
func (c Constant) Span() time.Duration { return time.Duration(c.span) }

// Due implements Schedule.
func (c Constant) Due(elapsed time.Duration) uint64 {
	if elapsed < 0 {
		return 0
	}
	if uint64(elapsed) >= c.span {
		return c.total
	}
	return spreadDue(uint64(elapsed), c.total, c.span)
}

// At implements Schedule.
func (c Constant) At(n uint64) time.Duration { return time.Duration(spreadAt(n, c.total, c.span)) }
