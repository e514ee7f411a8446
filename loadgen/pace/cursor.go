package pace

import "time"

// Cursor gives the intended times of a schedule's requests in their order,
// which is cheaper than asking At for each. It is not safe for concurrent use.
type Cursor interface {
	// Next is the intended time of the next request. It must not be called
	// after that of the last.
	Next() time.Duration
}

// Walk returns a cursor at request n of s, which must not be past the end.
func Walk(s Schedule, n uint64) Cursor {
	if w, ok := s.(walker); ok && n < s.Total() {
		return w.walk(n)
	}
	return &stepCursor{s: s, n: n}
}

// walker is a schedule that knows a cheaper way than At.
type walker interface {
	walk(n uint64) Cursor
}

// stepCursor asks At.
type stepCursor struct {
	s Schedule
	n uint64
}

// Next implements Cursor.
func (c *stepCursor) Next() time.Duration {
	c.n++
	return c.s.At(c.n - 1)
}
