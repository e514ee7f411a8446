// Package pace says when requests are due.
//
// A [Schedule] is a pure function of elapsed time: it holds no clock and no
// position, so any number of senders may ask it at once, a stalled sender
// learns exactly how much it has to catch up, and the intended time of a
// request never depends on how the run went. [Constant], [Curve] (ramp, step,
// sine), [Burst] and [Poisson] are the forms; [Sequence], [Overlay] and [Shard]
// make new ones of them, and [Parse] reads them from text. The package imports
// nothing of the generator.
package pace

import "time"

// A Schedule fixes the intended time of each of Total requests, numbered from
// 0. Implementations are immutable and safe for concurrent use.
type Schedule interface {
	// Total is the number of requests of the whole run. It is exact: a run
	// accounts for this many requests however it ended.
	Total() uint64

	// Span is the length of the schedule. Every intended time is in [0, Span).
	Span() time.Duration

	// Due is how many requests have an intended time at or before elapsed. It
	// never decreases, is 0 for negative elapsed, and is Total from Span on.
	Due(elapsed time.Duration) uint64

	// At is the intended time of request n, from the start of the run. It is
	// the inverse of Due: At(n) <= e exactly when n < Due(e). It never
	// decreases with n; n must be below Total.
	At(n uint64) time.Duration
}
