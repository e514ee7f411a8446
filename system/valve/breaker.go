package valve

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// BreakerConfig says when sends count as broken.
type BreakerConfig struct {
	// Window is for how long nothing may have been confirmed, while sends
	// fail, before the breaker opens. Shorter failures are jitter: their
	// reservations are pending, and the scanner resends them (R7.11.2).
	Window time.Duration
	// Failures is how many sends in a row must have failed besides.
	Failures int
	// OpenFor is how long everything is refused before it is tried again.
	OpenFor time.Duration
	// Probes is how many requests are let through at a time while it is tried.
	Probes int
	// ProbeEvery is how long a try may stay without a verdict before as many
	// are let through again: not every request becomes a send.
	ProbeEvery time.Duration
}

// BreakerConfigDefault opens after two sends timed out one after the other.
var BreakerConfigDefault = BreakerConfig{Window: 2 * time.Second, Failures: 3,
	OpenFor: time.Second, Probes: 4, ProbeEvery: time.Second}

// Validate checks the bounds.
func (c BreakerConfig) Validate() error {
	switch {
	case c.Window <= 0 || c.OpenFor <= 0 || c.ProbeEvery <= 0:
		return fmt.Errorf("breaker: window %v, open time %v and probe interval %v must be positive", c.Window, c.OpenFor, c.ProbeEvery)
	case c.Failures < 1 || c.Probes < 1:
		return fmt.Errorf("breaker: %d failures and %d probes: must be 1 at least", c.Failures, c.Probes)
	}
	return nil
}

// BreakerState is where a breaker stands.
type BreakerState int64

// The states of a breaker.
const (
	BreakerClosed   BreakerState = iota // all is let through
	BreakerOpen                         // nothing is
	BreakerHalfOpen                     // a few are, to find out
)

func (s BreakerState) String() string {
	switch s {
	case BreakerClosed:
		return "closed"
	case BreakerOpen:
		return "open"
	case BreakerHalfOpen:
		return "half-open"
	}
	return fmt.Sprintf("BreakerState(%d)", int64(s))
}

// Breaker follows the sends of one process. Safe for concurrent use; while it
// is closed Allow is one atomic load.
type Breaker struct {
	cfg    BreakerConfig
	now    func() time.Time
	change func(from, to BreakerState)

	// State and Opened are for metrics: a BreakerState, and how often it
	// opened. Only the breaker writes them.
	State  atomic.Int64
	Opened atomic.Int64

	mu       sync.Mutex
	failures int       // in a row
	broken   time.Time // when the first of them began
	until    time.Time // open: when to try; half-open: when to let through again
	trying   time.Time // half-open: since when
	probes   int       // half-open: left of this try
}

// NewBreaker returns a closed breaker. change, which may be nil, is told of
// every change of state; it must not call the breaker.
func NewBreaker(cfg BreakerConfig, now func() time.Time, change func(from, to BreakerState)) (*Breaker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if change == nil {
		change = func(BreakerState, BreakerState) {}
	}
	return &Breaker{cfg: cfg, now: now, change: change}, nil
}

// Allow says whether a request that may reserve is let through now.
func (b *Breaker) Allow() bool {
	if BreakerState(b.State.Load()) == BreakerClosed {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	switch BreakerState(b.State.Load()) {
	case BreakerClosed:
		return true
	case BreakerOpen:
		if now.Before(b.until) {
			return false
		}
		b.trying = now
		b.move(BreakerHalfOpen)
	case BreakerHalfOpen:
		if now.Before(b.until) {
			if b.probes == 0 {
				return false
			}
			b.probes--
			return true
		}
	}
	b.until, b.probes = now.Add(b.cfg.ProbeEvery), b.cfg.Probes-1
	return true
}

// Refusing says that nothing is let through and no send is wanted: what is
// still to be sent is better left to the scanner.
func (b *Breaker) Refusing() bool { return BreakerState(b.State.Load()) == BreakerOpen }

// Sent reports a send that began at that time and ended now; a nil error means
// that the broker confirmed it.
func (b *Breaker) Sent(began time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.failures = 0
		b.move(BreakerClosed)
		return
	}
	now := b.now()
	if b.failures == 0 || began.Before(b.broken) {
		b.broken = began
	}
	b.failures++
	switch BreakerState(b.State.Load()) {
	case BreakerClosed:
		if b.failures >= b.cfg.Failures && now.Sub(b.broken) >= b.cfg.Window {
			b.open(now)
		}
	case BreakerHalfOpen:
		if !began.Before(b.trying) { // one that began earlier says nothing new
			b.open(now)
		}
	}
}

func (b *Breaker) open(now time.Time) {
	b.until = now.Add(b.cfg.OpenFor)
	b.Opened.Add(1)
	b.move(BreakerOpen)
}

func (b *Breaker) move(to BreakerState) {
	if from := BreakerState(b.State.Swap(int64(to))); from != to {
		b.change(from, to)
	}
}
