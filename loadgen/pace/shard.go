package pace

import (
	"fmt"
	"time"
)

// Shard is every count-th request of a schedule: count generators that offer
// one shard each offer the whole schedule between them, interleaved.
type Shard struct {
	whole        Schedule
	index, count uint64
}

var (
	_ Schedule = Shard{}
	_ walker   = Shard{}
)

// NewShard takes the requests index, index+count, index+2×count … of whole.
func NewShard(whole Schedule, index, count int) (Shard, error) {
	s := Shard{whole: whole, index: uint64(index), count: uint64(count)}
	switch {
	case count < 1 || index < 0 || index >= count:
		return Shard{}, fmt.Errorf("%w: shard %d of %d: count them from 0", ErrShape, index, count)
	case whole.Total() <= s.index:
		return Shard{}, fmt.Errorf("%w: shard %d of %d has none of %d requests", ErrShape, index, count, whole.Total())
	}
	return s, nil
}

// Number is the number in the whole schedule of the shard's request n.
func (s Shard) Number(n uint64) uint64 { return s.index + n*s.count }

// Total implements Schedule.
func (s Shard) Total() uint64 { return s.of(s.whole.Total()) }

// of is how many of the first n requests are the shard's.
func (s Shard) of(n uint64) uint64 {
	if n <= s.index {
		return 0
	}
	return (n-s.index-1)/s.count + 1
}

// Span implements Schedule.
func (s Shard) Span() time.Duration { return s.whole.Span() }

// Due implements Schedule.
func (s Shard) Due(elapsed time.Duration) uint64 { return s.of(s.whole.Due(elapsed)) }

// At implements Schedule.
func (s Shard) At(n uint64) time.Duration { return s.whole.At(s.Number(n)) }

// walk implements walker.
func (s Shard) walk(n uint64) Cursor {
	if _, ok := s.whole.(walker); !ok {
		return &stepCursor{s: s, n: n}
	}
	return &shardCursor{in: Walk(s.whole, s.Number(n)), others: s.count - 1}
}

type shardCursor struct {
	in     Cursor
	others uint64 // requests of other shards between two of this one's
	moved  bool
}

// Next implements Cursor.
func (c *shardCursor) Next() time.Duration {
	if c.moved {
		for range c.others {
			c.in.Next()
		}
	}
	c.moved = true
	return c.in.Next()
}
