package pace

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// cellMean is about how many requests a cell of a Poisson schedule holds.
	cellMean = 256
	// tossesMax is up to how many coins are tossed one by one. Above it the
	// normal distribution is closer to the binomial one than any run could tell.
	tossesMax = 1 << 14
)

// Poisson makes requests arrive independently of each other: the number in any
// interval varies as a Poisson process's does, given that the whole run has
// exactly rate × span of them.
//
// It holds no list of times, and yet any moment of a run of days is found at
// once: the run is halved again and again, the requests of each part divided
// between its halves by tosses of a coin that depend on the seed and the part
// alone, down to cells of about 256 requests, which are drawn in one go.
type Poisson struct {
	total  uint64
	span   uint64 // ns
	levels uint   // halvings; there are 1<<levels cells
	seed   uint64
}

var (
	_ Schedule = Poisson{}
	_ walker   = Poisson{}
)

// NewPoisson offers round(rate × span) requests; equal seeds give equal
// schedules.
func NewPoisson(rate float64, span time.Duration, seed uint64) (Poisson, error) {
	c, err := NewConstant(rate, span)
	if err != nil {
		return Poisson{}, err
	}
	p := Poisson{total: c.total, span: c.span, seed: seed}
	for p.total>>p.levels > cellMean && uint64(1)<<(p.levels+1) <= p.span {
		p.levels++
	}
	return p, nil
}

// Total implements Schedule.
func (p Poisson) Total() uint64 { return p.total }

// Span implements Schedule.
func (p Poisson) Span() time.Duration { return time.Duration(p.span) }

// Due implements Schedule.
func (p Poisson) Due(elapsed time.Duration) uint64 {
	if elapsed < 0 {
		return 0
	}
	if uint64(elapsed) >= p.span {
		return p.total
	}
	// The cell that holds the moment: bounds are rounded down, so it may be
	// the next one.
	cell := spreadAt(uint64(elapsed), p.span, 1<<p.levels)
	if cell+1 < 1<<p.levels && p.bound(cell+1) <= uint64(elapsed) {
		cell++
	}
	var buf [2 * cellMean]uint64
	before, times := p.cell(cell, buf[:0])
	i, _ := slices.BinarySearch(times, uint64(elapsed)+1)
	return before + uint64(i)
}

// At implements Schedule.
func (p Poisson) At(n uint64) time.Duration {
	var buf [2 * cellMean]uint64
	before, times := p.cell(p.holding(n), buf[:0])
	return time.Duration(times[n-before])
}

// bound is where a cell begins.
func (p Poisson) bound(cell uint64) uint64 {
	hi, lo := bits.Mul64(cell, p.span)
	return hi<<(64-p.levels) | lo>>p.levels
}

// divide says how many of the n requests of a part fall into its first half.
// Parts are numbered as a heap is: the halves of part i are 2i and 2i+1.
func (p Poisson) divide(part, n uint64) uint64 {
	var coin rand.PCG
	coin.Seed(p.seed, part)
	if n > tossesMax {
		r := rand.New(&coin)
		first := math.Round(float64(n)/2 + r.NormFloat64()*math.Sqrt(float64(n))/2)
		return uint64(min(max(first, 0), float64(n)))
	}
	heads := 0
	for ; n >= 64; n -= 64 {
		heads += bits.OnesCount64(coin.Uint64())
	}
	return uint64(heads + bits.OnesCount64(coin.Uint64()&(1<<n-1)))
}

// cell appends the sorted times of a cell's requests to dst, and says how many
// requests are in the cells before it.
func (p Poisson) cell(cell uint64, dst []uint64) (before uint64, times []uint64) {
	part, n := uint64(1), p.total
	for level := p.levels; level > 0; level-- {
		first := p.divide(part, n)
		part *= 2
		if cell>>(level-1)&1 == 0 {
			n = first
			continue
		}
		part++
		before, n = before+first, n-first
	}
	from, to := p.bound(cell), p.span
	if cell+1 < 1<<p.levels {
		to = p.bound(cell + 1)
	}
	var coin rand.PCG
	coin.Seed(p.seed, part)
	for range n {
		within, _ := bits.Mul64(coin.Uint64(), to-from)
		dst = append(dst, from+within)
	}
	slices.Sort(dst)
	return before, dst
}

// holding is the cell that request n falls into.
func (p Poisson) holding(n uint64) (cell uint64) {
	part, left := uint64(1), p.total
	for range p.levels {
		first := p.divide(part, left)
		part, cell = part*2, cell*2
		if n < first {
			left = first
			continue
		}
		part, cell = part+1, cell+1
		n, left = n-first, left-first
	}
	return cell
}

// walk implements walker: a cell is drawn once for all its requests.
func (p Poisson) walk(n uint64) Cursor {
	w := &poissonCursor{p: p, next: p.holding(n)}
	before, times := p.cell(w.next, make([]uint64, 0, 2*cellMean))
	w.times, w.i = times, int(n-before)
	w.next++
	return w
}

type poissonCursor struct {
	p     Poisson
	times []uint64 // of one cell
	i     int      // the next of them
	next  uint64   // cell
}

// Next implements Cursor.
func (w *poissonCursor) Next() time.Duration {
	for w.i == len(w.times) {
		_, w.times = w.p.cell(w.next, w.times[:0])
		w.i = 0
		w.next++
	}
	w.i++
	return time.Duration(w.times[w.i-1])
}
