package pace

import (
	"fmt"
	"time"
)

// Sequence runs schedules one after another.
type Sequence struct {
	parts []Schedule
	from  []time.Duration // when each begins; one more for the end
	first []uint64        // number of each one's first request; one more for the total
}

// Overlay runs schedules at once: what is due is what is due of any of them.
type Overlay struct {
	parts []Schedule
	total uint64
	span  time.Duration
}

var (
	_ Schedule = Sequence{}
	_ walker   = Sequence{}
	_ Schedule = Overlay{}
	_ walker   = Overlay{}
)

// NewSequence composes one or more schedules, the next beginning where the
// span of the one before ends.
func NewSequence(parts ...Schedule) (Sequence, error) {
	s := Sequence{parts: parts, from: []time.Duration{0}, first: []uint64{0}}
	for i, p := range parts {
		if p.Span() > SpanMax-s.from[i] {
			return Sequence{}, fmt.Errorf("%w: the parts are longer than %v together", ErrDuration, SpanMax)
		}
		s.from = append(s.from, s.from[i]+p.Span())
		s.first = append(s.first, s.first[i]+p.Total())
	}
	if len(parts) == 0 || s.Total() > totalMax {
		return Sequence{}, fmt.Errorf("%w: %d parts with %d requests: give at least one part and at most %d requests", ErrShape, len(parts), s.Total(), totalMax)
	}
	return s, nil
}

// NewOverlay composes one or more schedules that begin together; its span is
// the longest of theirs.
func NewOverlay(parts ...Schedule) (Overlay, error) {
	o := Overlay{parts: parts}
	for _, p := range parts {
		o.total += p.Total()
		o.span = max(o.span, p.Span())
	}
	if len(parts) == 0 || o.total > totalMax {
		return Overlay{}, fmt.Errorf("%w: %d parts with %d requests: give at least one part and at most %d requests", ErrShape, len(parts), o.total, totalMax)
	}
	return o, nil
}

// Total implements Schedule.
func (s Sequence) Total() uint64 { return s.first[len(s.parts)] }

// Span implements Schedule.
func (s Sequence) Span() time.Duration { return s.from[len(s.parts)] }

// Due implements Schedule.
func (s Sequence) Due(elapsed time.Duration) uint64 {
	if elapsed < 0 {
		return 0
	}
	for i, p := range s.parts {
		if elapsed < s.from[i+1] {
			return s.first[i] + p.Due(elapsed-s.from[i])
		}
	}
	return s.Total()
}

// At implements Schedule.
func (s Sequence) At(n uint64) time.Duration {
	i := s.holding(n)
	return s.from[i] + s.parts[i].At(n-s.first[i])
}

// holding is the part that request n belongs to.
func (s Sequence) holding(n uint64) int {
	i := 0
	for n >= s.first[i+1] {
		i++
	}
	return i
}

// walk implements walker.
func (s Sequence) walk(n uint64) Cursor {
	i := s.holding(n)
	return &sequenceCursor{s: s, part: i, left: s.first[i+1] - n, in: Walk(s.parts[i], n-s.first[i])}
}

type sequenceCursor struct {
	s    Sequence
	part int
	left uint64 // requests of the part
	in   Cursor
}

// Next implements Cursor.
func (c *sequenceCursor) Next() time.Duration {
	for c.left == 0 {
		c.part++
		c.left, c.in = c.s.parts[c.part].Total(), Walk(c.s.parts[c.part], 0)
	}
	c.left--
	return c.s.from[c.part] + c.in.Next()
}

// Total implements Schedule.
func (o Overlay) Total() uint64 { return o.total }

// Span implements Schedule.
func (o Overlay) Span() time.Duration { return o.span }

// Due implements Schedule.
func (o Overlay) Due(elapsed time.Duration) (due uint64) {
	for _, p := range o.parts {
		due += p.Due(elapsed)
	}
	return due
}

// At implements Schedule: the first moment at which more than n are due.
func (o Overlay) At(n uint64) time.Duration {
	low, high := time.Duration(0), o.span-1
	for low < high {
		if mid := low + (high-low)/2; o.Due(mid) > n {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

// walk implements walker: the parts are merged as they go.
func (o Overlay) walk(n uint64) Cursor {
	at := o.At(n)
	c := &overlayCursor{heads: make([]head, len(o.parts))}
	for i, p := range o.parts {
		before := p.Due(at - 1)
		n -= before
		c.heads[i] = head{left: p.Total() - before}
		if c.heads[i].left > 0 {
			c.heads[i].in = Walk(p, before)
			c.heads[i].at = c.heads[i].in.Next()
		}
	}
	for ; n > 0; n-- { // those due at the same moment, before request n
		c.Next()
	}
	return c
}

type overlayCursor struct{ heads []head }

// head is where the merge is in one part.
type head struct {
	in   Cursor
	at   time.Duration // of the part's next request
	left uint64        // requests of the part, the next included
}

// Next implements Cursor.
func (c *overlayCursor) Next() time.Duration {
	first := -1
	for i := range c.heads {
		if c.heads[i].left > 0 && (first < 0 || c.heads[i].at < c.heads[first].at) {
			first = i
		}
	}
	h := &c.heads[first]
	at := h.at
	if h.left--; h.left > 0 {
		h.at = h.in.Next()
	}
	return at
}
