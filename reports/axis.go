package reports

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// ticks are fixed tick marks.
type ticks []plot.Tick

// Ticks implements plot.Ticker.
func (t ticks) Ticks(_, _ float64) []plot.Tick { return t }

// niceStep is the step of 1, 2 or 5 times a power of ten that gives about n
// intervals over span.
func niceStep(span float64, n int) float64 {
	if span <= 0 || !finite(span) {
		return 1
	}
	raw := span / float64(max(n, 1))
	pow := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5} {
		if raw <= m*pow*1.0001 {
			return m * pow
		}
	}
	return 10 * pow
}

// linearTicks marks 0..top and returns the top rounded up to a mark.
func linearTicks(top float64, n int, label func(v float64) string) (plot.Ticker, float64) {
	if top <= 0 || !finite(top) {
		top = 1
	}
	step := niceStep(top, n)
	marks := math.Ceil(top/step - 1e-9)
	var out ticks
	for i := 0.0; i <= marks; i++ {
		out = append(out, plot.Tick{Value: i * step, Label: label(i * step)})
	}
	return out, marks * step
}

// logFloor is the smallest latency a log axis shows, in milliseconds;
// anything below, zero too, lies on it.
const logFloor = 0.01

// logMS is a latency's place on a log axis; NaN if it is none.
func logMS(v float64) float64 {
	if math.IsNaN(v) || v < 0 {
		return math.NaN()
	}
	return math.Log10(math.Min(math.Max(v, logFloor), 1e12))
}

// logTicks marks a log axis of milliseconds that holds lo..hi (both log10) and
// returns the axis' ends: marks at 1, 2 and 5 where there is room, at powers of
// ten otherwise.
func logTicks(lo, hi float64) (plot.Ticker, float64, float64) {
	if !finite(lo) || !finite(hi) || lo > hi {
		lo, hi = 0, 2
	}
	var all []float64 // the ends may be any of 1, 2 and 5
	for e := math.Floor(lo) - 1; e <= math.Ceil(hi)+1; e++ {
		all = append(all, e, e+math.Log10(2), e+math.Log10(5))
	}
	first, last := 0, len(all)-1
	for first+1 < len(all) && all[first+1] <= lo+1e-9 {
		first++
	}
	for last-1 > first && all[last-1] >= hi-1e-9 {
		last--
	}
	decades := all[last] - all[first]
	skip := math.Max(1, math.Round(decades/6))
	var out ticks
	for i := first; i <= last; i++ {
		e := math.Round(all[i])
		power := math.Abs(all[i]-e) < 1e-9
		if decades > 2.5 && !(power && math.Mod(math.Abs(e), skip) == 0) {
			continue
		}
		out = append(out, plot.Tick{Value: all[i], Label: axisMS(math.Pow(10, all[i]))})
	}
	return out, all[first], all[last]
}

// axisMS labels a round latency: 0.1 ms, 50 ms, 2 s.
func axisMS(v float64) string {
	if v >= 999.5 {
		return decimal(v/1000, roundDecimals(v/1000)) + " s"
	}
	return decimal(v, roundDecimals(v)) + " ms"
}

// axisPerS labels a rate: 50 k/s.
func axisPerS(v float64) string { return compact(v) + "/s" }

// compact writes a round number shortly: 300 k, 1.5 M.
func compact(v float64) string {
	switch {
	case v >= 1e15:
		return strconv.FormatFloat(v, 'g', 2, 64)
	case v >= 1e9:
		return decimal(v/1e9, roundDecimals(v/1e9)) + " G"
	case v >= 1e6:
		return decimal(v/1e6, roundDecimals(v/1e6)) + " M"
	case v >= 1e3:
		return decimal(v/1e3, roundDecimals(v/1e3)) + " k"
	default:
		return decimal(v, roundDecimals(v))
	}
}

// axisS labels a time in seconds.
func axisS(v float64) string { return decimal(v, roundDecimals(v)) + " s" }

// roundDecimals is how many decimals a round axis value needs.
func roundDecimals(v float64) int {
	for d := range 4 {
		p := math.Pow10(d)
		if math.Abs(math.Round(v*p)/p-v) < 1e-9*math.Max(1, math.Abs(v)) {
			return d
		}
	}
	return 4
}
