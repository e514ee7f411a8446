package admission

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Limit is a token bucket: PerSecond requests a second in the long run, Burst
// of them at once. The zero Limit is no limit. As text it is "RATE:BURST",
// such as "10:20", or "off".
type Limit struct {
	PerSecond float64
	Burst     int
}

// Bounds of a limit. LimitRefillMax bounds Burst/PerSecond, the time in which
// an empty bucket fills.
const (
	LimitRateMax   = 1_000_000
	LimitBurstMax  = 1_000_000
	LimitRefillMax = 24 * time.Hour
)

// Off says that there is no limit.
func (l Limit) Off() bool { return l == Limit{} }

// Validate checks the bounds.
func (l Limit) Validate() error {
	switch {
	case l.Off():
		return nil
	case !(l.PerSecond > 0 && l.PerSecond <= LimitRateMax): // NaN, too
		return fmt.Errorf("limit %s: the rate must be above 0 and at most %d a second", l, LimitRateMax)
	case l.Burst < 1 || l.Burst > LimitBurstMax:
		return fmt.Errorf("limit %s: the burst must be 1 to %d", l, LimitBurstMax)
	case float64(l.Burst)/l.PerSecond > LimitRefillMax.Seconds():
		return fmt.Errorf("limit %s: an empty bucket must fill within %v", l, LimitRefillMax)
	}
	return nil
}

// String is the limit as text.
func (l Limit) String() string {
	if l.Off() {
		return "off"
	}
	return strconv.FormatFloat(l.PerSecond, 'g', -1, 64) + ":" + strconv.Itoa(l.Burst)
}

// MarshalText writes the limit as text.
func (l Limit) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads a limit that Validate accepts.
func (l *Limit) UnmarshalText(text []byte) error {
	if string(text) == "off" {
		*l = Limit{}
		return nil
	}
	rate, burst, ok := strings.Cut(string(text), ":")
	var read Limit
	var rateErr, burstErr error
	read.PerSecond, rateErr = strconv.ParseFloat(rate, 64)
	read.Burst, burstErr = strconv.Atoi(burst)
	if !ok || errors.Join(rateErr, burstErr) != nil {
		return fmt.Errorf("limit %q: must be RATE:BURST, such as 10:20 for ten a second and twenty at once, or off", text)
	}
	if read.Off() {
		return fmt.Errorf("limit %q: write off for no limit", text)
	}
	if err := read.Validate(); err != nil {
		return err
	}
	*l = read
	return nil
}

// pace is a limit as the generic cell rate algorithm has it. A bucket is one
// number, the moment at which it will be full again: a request moves it on by
// interval, and is refused while it is further away than tolerance.
type pace struct {
	interval  int64 // between two requests at the limit's rate
	tolerance int64 // interval × (burst − 1)
}

func paceOf(l Limit, tick time.Duration) pace {
	interval := int64(math.Ceil(float64(time.Second) / float64(tick) / l.PerSecond)) // rounded up: never laxer
	return pace{interval: interval, tolerance: interval * int64(l.Burst-1)}
}

// Bucket is one limit for everyone who shares it. A nil Bucket is no limit.
// Safe for concurrent use.
type Bucket struct {
	pace
	fullAt atomic.Int64 // ns
}

// NewBucket returns a full bucket, or nil if the limit is off.
func NewBucket(l Limit) (*Bucket, error) {
	if l.Off() {
		return nil, nil
	}
	if err := l.Validate(); err != nil {
		return nil, err
	}
	return &Bucket{pace: paceOf(l, time.Nanosecond)}, nil
}

// Take takes one request's token at now, a monotonic time that all callers
// count from the same moment. It returns 0, or how long the next token is
// away.
func (b *Bucket) Take(now time.Duration) (retryAfter time.Duration) {
	if b == nil {
		return 0
	}
	for {
		was := b.fullAt.Load()
		wait := max(was-int64(now), 0)
		if wait > b.tolerance {
			return time.Duration(wait - b.tolerance)
		}
		if b.fullAt.CompareAndSwap(was, int64(now)+wait+b.interval) {
			return 0
		}
	}
}
