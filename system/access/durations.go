package access

import (
	"sync/atomic"
	"time"
)

// DurationBounds are the upper bounds of the buckets of Durations.
var DurationBounds = [...]time.Duration{
	100 * time.Microsecond, 200 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond, 5 * time.Millisecond, 7500 * time.Microsecond,
	10 * time.Millisecond, 15 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond, 40 * time.Millisecond, 50 * time.Millisecond,
	75 * time.Millisecond, 100 * time.Millisecond, 150 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second,
}

// Durations is a histogram to which many requests that took equally long are
// added at once. Safe for concurrent use.
type Durations struct {
	buckets [len(DurationBounds) + 1]atomic.Int64
	nanos   atomic.Int64
}

func (d *Durations) observe(took time.Duration, n int64) {
	i := 0
	for i < len(DurationBounds) && took > DurationBounds[i] {
		i++
	}
	d.buckets[i].Add(n)
	d.nanos.Add(int64(took) * n)
}

// Read returns the number of requests, their total time, and how many took
// at most each of DurationBounds.
func (d *Durations) Read() (count int64, total time.Duration, atMost [len(DurationBounds)]int64) {
	for i := range d.buckets {
		count += d.buckets[i].Load()
		if i < len(atMost) {
			atMost[i] = count
		}
	}
	return count, time.Duration(d.nanos.Load()), atMost
}
