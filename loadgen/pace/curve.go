package pace

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"
)

// ErrShape is in the chain of every error about the form of a schedule that is
// neither a rate nor a duration.
var ErrShape = errors.New("bad shape")

// Resolution of curves: between two knots the rate is constant.
const (
	rampKnots       = 4096
	sineKnots       = 64 // a period
	sinePeriodsMax  = 16384
	stepsMax        = 10_000
	totalMax        = uint64(1) << 50
	burstTotalMax   = 100_000_000
	wholeNumberSlip = 1e-6 // what floating point may add to a whole number
)

// Curve is a schedule whose rate changes with time, as counts at given
// moments; between two of them requests are spread evenly by integer
// arithmetic. Counts are rounded once from the area under the rate, never
// added up from rounded pieces, so nothing drifts.
type Curve struct {
	knots []knot // times increase, counts never decrease; the first is zero
}

// knot: n requests are due before t.
type knot struct{ t, n uint64 }

var _ Schedule = Curve{}

// NewRamp changes the rate evenly from one to another over span:
// round((from+to)/2 × span) requests. The line is drawn in 4,096 small steps.
func NewRamp(from, to float64, span time.Duration) (Curve, error) {
	if err := checkCurve(span, from, to); err != nil {
		return Curve{}, err
	}
	s := span.Seconds()
	return newCurve(span, rampKnots, func(t float64) float64 { return from*t + (to-from)*t*t/(2*s) })
}

// NewStep offers each of rates for as long as each, one after another. A rate
// may be 0.
func NewStep(rates []float64, each time.Duration) (Curve, error) {
	if len(rates) == 0 || len(rates) > stepsMax {
		return Curve{}, fmt.Errorf("%w: %d steps: give 1 to %d", ErrShape, len(rates), stepsMax)
	}
	if each <= 0 || each > SpanMax/time.Duration(len(rates)) {
		return Curve{}, fmt.Errorf("%w %v for each of %d steps: give more than 0s, and at most %v in all", ErrDuration, each, len(rates), SpanMax)
	}
	if err := checkCurve(each*time.Duration(len(rates)), rates...); err != nil {
		return Curve{}, err
	}
	c := Curve{knots: []knot{{}}}
	area := 0.0
	for i, r := range rates {
		area += r * each.Seconds()
		c.knots = append(c.knots, knot{t: uint64(each) * uint64(i+1), n: uint64(math.Round(area))})
	}
	return c.checked()
}

// NewSine swings the rate around mean by at most amplitude, which must not
// exceed it, beginning at mean and rising. The wave is drawn in 64 small steps
// a period.
func NewSine(mean, amplitude float64, period, span time.Duration) (Curve, error) {
	if err := checkCurve(span, mean, amplitude); err != nil {
		return Curve{}, err
	}
	switch {
	case amplitude > mean:
		return Curve{}, fmt.Errorf("%w: a wave of ±%v around %v would go below 0; give an amplitude of at most the mean", ErrShape, amplitude, mean)
	case period < time.Millisecond:
		return Curve{}, fmt.Errorf("%w %v of a wave's period: give at least 1ms", ErrDuration, period)
	case span/period >= sinePeriodsMax:
		return Curve{}, fmt.Errorf("%w: %v hold more than %d periods of %v; give a longer period", ErrShape, span, sinePeriodsMax, period)
	}
	omega := 2 * math.Pi / period.Seconds()
	knots := max(int(span.Seconds()/period.Seconds()*sineKnots), sineKnots)
	return newCurve(span, knots, func(t float64) float64 { return mean*t + amplitude/omega*(1-math.Cos(omega*t)) })
}

// checkCurve checks a curve's length and the rates it is made of.
func checkCurve(span time.Duration, rates ...float64) error {
	if span <= 0 || span > SpanMax {
		return fmt.Errorf("%w %v: give more than 0s and at most %v", ErrDuration, span, SpanMax)
	}
	for _, r := range rates {
		if math.IsNaN(r) || r < 0 || r > RateMax {
			return fmt.Errorf("%w %v: give 0 to %d requests per second", ErrRate, r, RateMax)
		}
	}
	return nil
}

// newCurve samples area, the integral of the rate over seconds, at evenly
// spaced knots.
func newCurve(span time.Duration, knots int, area func(seconds float64) float64) (Curve, error) {
	whole := area(span.Seconds())
	total := math.Round(whole)
	knots = int(min(uint64(knots), uint64(span)))
	c := Curve{knots: make([]knot, knots+1)}
	for i := 1; i <= knots; i++ {
		hi, lo := bits.Mul64(uint64(i), uint64(span))
		t, _ := bits.Div64(hi, lo, uint64(knots))
		n := math.Ceil(area(float64(t)/1e9)*total/whole - wholeNumberSlip)
		// Floating point may dip where the rate is 0.
		c.knots[i] = knot{t: t, n: max(c.knots[i-1].n, uint64(min(max(n, 0), total)))}
	}
	c.knots[knots].n = uint64(total)
	return c.checked()
}

func (c Curve) checked() (Curve, error) {
	switch total := c.Total(); {
	case total == 0:
		return Curve{}, fmt.Errorf("%w: over %v no request is scheduled; raise the rate or the duration", ErrRate, c.Span())
	case total > totalMax:
		return Curve{}, fmt.Errorf("%w: %d requests are more than %d", ErrShape, total, totalMax)
	}
	return c, nil
}

// Total implements Schedule.
func (c Curve) Total() uint64 { return c.knots[len(c.knots)-1].n }

// Span implements Schedule.
func (c Curve) Span() time.Duration { return time.Duration(c.knots[len(c.knots)-1].t) }

// Due implements Schedule.
func (c Curve) Due(elapsed time.Duration) uint64 {
	if elapsed < 0 {
		return 0
	}
	if elapsed >= c.Span() {
		return c.Total()
	}
	e := uint64(elapsed)
	next, _ := slices.BinarySearchFunc(c.knots, e+1, func(k knot, e uint64) int { return compare(k.t, e) })
	from, to := c.knots[next-1], c.knots[next]
	return from.n + spreadDue(e-from.t, to.n-from.n, to.t-from.t)
}

// At implements Schedule.
func (c Curve) At(n uint64) time.Duration {
	next, _ := slices.BinarySearchFunc(c.knots, n+1, func(k knot, n uint64) int { return compare(k.n, n) })
	from, to := c.knots[next-1], c.knots[next]
	return time.Duration(from.t + spreadAt(n-from.n, to.n-from.n, to.t-from.t))
}

func compare(a, b uint64) int {
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}

// spreadAt is when the n-th of total requests spread evenly over span is due:
// floor(n×span/total).
func spreadAt(n, total, span uint64) uint64 {
	hi, lo := bits.Mul64(n, span)
	q, _ := bits.Div64(hi, lo, total)
	return q
}

// spreadDue is how many of them are due at elapsed, which is below span:
// ceil((elapsed+1)×total/span).
func spreadDue(elapsed, total, span uint64) uint64 {
	hi, lo := bits.Mul64(elapsed+1, total)
	q, r := bits.Div64(hi, lo, span)
	if r > 0 {
		q++
	}
	return q
}
