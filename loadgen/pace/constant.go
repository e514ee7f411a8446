package pace

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"
)

// Limits of a constant schedule.
const (
	// RateMax is the highest accepted rate, in requests per second. A loopback
	// interface carries less; a higher figure is a slip of the keyboard.
	RateMax = 100_000_000
	// SpanMax is the longest accepted schedule.
	SpanMax = 31 * 24 * time.Hour
)

// Errors of NewConstant, for errors.Is.
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

// Due implements Schedule. Request n is due at floor(n×span/total), so the
// number due at e is ceil((e+1)×total/span).
func (c Constant) Due(elapsed time.Duration) uint64 {
	if elapsed < 0 {
		return 0
	}
	if uint64(elapsed) >= c.span {
		return c.total
	}
	hi, lo := bits.Mul64(uint64(elapsed)+1, c.total)
	q, r := bits.Div64(hi, lo, c.span)
	if r > 0 {
		q++
	}
	return q
}

// At implements Schedule.
func (c Constant) At(n uint64) time.Duration {
	hi, lo := bits.Mul64(n, c.span)
	q, _ := bits.Div64(hi, lo, c.total)
	return time.Duration(q)
}
