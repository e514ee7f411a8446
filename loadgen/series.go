package loadgen

import (
	"math"
	"math/bits"
	"time"

	"github.com/hotsku/hotsku/loadgen/pace"
)

const (
	slotWidthMin = 100 * time.Millisecond
	slotsMax     = 600
)

// slotWidth is 100 ms, or as much more as keeps the series within slotsMax.
func slotWidth(span time.Duration) time.Duration {
	w := slotWidthMin
	for span > w*slotsMax {
		w *= 2
	}
	return w
}

// slot gathers the requests intended in one interval. Its histogram is coarser
// than HDR's so that a whole series fits in a few megabytes.
type slot struct {
	codes     [256]uint32
	completed uint64
	lost      uint64 // failed, timed out or unfinished
	max       int64
	latency   [sketchLen]uint32
}

// The sketch counts nanoseconds by their binary exponent and the next four
// bits, from about 1 µs: a bucket is at most 6.25 % wide.
const (
	sketchBits  = 4
	sketchShift = 10 // values below 1<<sketchShift share the first bucket
	sketchLen   = (44 - sketchShift) << sketchBits
)

func sketchIndex(v int64) int {
	if v < 1<<sketchShift {
		return 0
	}
	exp := bits.Len64(uint64(v)) - 1
	i := (exp-sketchShift)<<sketchBits | int(v>>(exp-sketchBits))&(1<<sketchBits-1)
	return min(i, sketchLen-1)
}

// sketchValue is the middle of bucket i.
func sketchValue(i int) int64 {
	exp := i>>sketchBits + sketchShift
	low := int64(1<<sketchBits|i&(1<<sketchBits-1)) << (exp - sketchBits)
	return low + 1<<(exp-sketchBits)/2
}

// answered counts a completed request.
func (s *slot) answered(code uint8, latency int64) {
	s.completed++
	s.codes[code]++
	s.took(latency)
}

// givenUp counts a request that timed out or was unfinished.
func (s *slot) givenUp(latency int64) {
	s.lost++
	s.took(latency)
}

func (s *slot) took(latency int64) {
	s.latency[sketchIndex(latency)]++
	s.max = max(s.max, latency)
}

// merge adds t to s.
func (s *slot) merge(t *slot) {
	for i, n := range t.codes {
		s.codes[i] += n
	}
	for i, n := range t.latency {
		s.latency[i] += n
	}
	s.completed += t.completed
	s.lost += t.lost
	s.max = max(s.max, t.max)
}

// quantile of the latencies; 0 if there are none. It never exceeds max.
func (s *slot) quantile(q float64) time.Duration {
	var total uint64
	for _, n := range s.latency {
		total += uint64(n)
	}
	if total == 0 {
		return 0
	}
	want, seen := uint64(math.Ceil(q*float64(total))), uint64(0)
	for i, n := range s.latency {
		if seen += uint64(n); seen >= want {
			return time.Duration(min(sketchValue(i), s.max))
		}
	}
	return time.Duration(s.max)
}

// Point is one interval of a run's time series, by intended time. P50 and P99
// are within 3 %; Max is exact. They cover what Result.Latency covers.
type Point struct {
	From          time.Duration // from the start of the run
	Scheduled     uint64
	Completed     uint64
	Lost          uint64 // failed, timed out or unfinished
	Codes         map[uint8]uint64
	P50, P99, Max time.Duration
}

// points renders the slots.
func points(slots []slot, width time.Duration, s pace.Schedule) []Point {
	out := make([]Point, len(slots))
	for i := range slots {
		from := time.Duration(i) * width
		p := &slots[i]
		out[i] = Point{
			From:      from,
			Scheduled: s.Due(from+width-1) - s.Due(from-1),
			Completed: p.completed,
			Lost:      p.lost,
			Codes:     map[uint8]uint64{},
			P50:       p.quantile(0.50),
			P99:       p.quantile(0.99),
			Max:       time.Duration(p.max),
		}
		for c, n := range p.codes {
			if n > 0 {
				out[i].Codes[uint8(c)] = uint64(n)
			}
		}
	}
	return out
}
