package valve

import (
	"fmt"
	"time"
)

// Signal is a figure about what follows a reservation. Its text is its name in
// Redis, in metrics and in logs.
type Signal string

// The signals. Ages and times are posted in milliseconds.
const (
	// SignalLag is how many create messages the consumers have not
	// acknowledged. The broker hears of acknowledgements every second, so it
	// may be too high by what was consumed since, never too low.
	SignalLag Signal = "consumer_lag"
	// SignalOldestMessage is how long ago the oldest of them was stored. Few
	// messages that are old tell what a count does not (12.3).
	SignalOldestMessage Signal = "oldest_message_age"
	// SignalOldestPending is the age of the oldest reservation without a
	// confirmed message.
	SignalOldestPending Signal = "oldest_pending_age"
	// SignalDatabaseDown is for how long PostgreSQL has not been writable.
	SignalDatabaseDown Signal = "database_down"
)

// Signals lists them.
func Signals() []Signal {
	return []Signal{SignalLag, SignalOldestMessage, SignalOldestPending, SignalDatabaseDown}
}

// Limits says when new reservations stop.
type Limits struct {
	// Over any of these no reservation is made. Each is above what a short
	// outage (R7.11.4) or the broker's late knowledge of offsets makes of it.
	Lag           int64 // messages
	OldestMessage time.Duration
	OldestPending time.Duration
	DatabaseDown  time.Duration
	// Reopen is the part of a limit that a figure must have fallen to before
	// reservations are made again, 0 to 1: so that they do not stop and go.
	Reopen float64
	// Stale is for how long a figure may be missing before it counts as over
	// its limit: what a restart of the scanners takes.
	Stale time.Duration
}

// LimitsDefault are for orders that are promised within 3 s (R1.5): beyond
// them that promise is broken already.
var LimitsDefault = Limits{Lag: 200_000, OldestMessage: 15 * time.Second, OldestPending: 10 * time.Second,
	DatabaseDown: 10 * time.Second, Reopen: 0.5, Stale: 15 * time.Second}

// offsetsLate is how much older the oldest message may seem than it is: the
// consumers report offsets every second (mq.OffsetsEvery).
const offsetsLate = time.Second

// Validate checks the limits.
func (l Limits) Validate() error {
	switch {
	case l.Lag < 1:
		return fmt.Errorf("lag limit %d: must be 1 at least", l.Lag)
	case l.OldestMessage <= offsetsLate:
		return fmt.Errorf("oldest message limit %v: must be above %v, for the broker knows offsets that late", l.OldestMessage, offsetsLate)
	case l.OldestPending <= 0 || l.DatabaseDown <= 0:
		return fmt.Errorf("oldest pending limit %v and database limit %v must be positive", l.OldestPending, l.DatabaseDown)
	case l.Reopen < 0 || l.Reopen > 1:
		return fmt.Errorf("reopen at %v of a limit: must be 0 to 1", l.Reopen)
	case l.Stale <= 0:
		return fmt.Errorf("figures may be missing for %v: must be positive", l.Stale)
	}
	return nil
}

// of is a signal's limit, in the signal's unit.
func (l Limits) of(s Signal) int64 {
	switch s {
	case SignalLag:
		return l.Lag
	case SignalOldestMessage:
		return l.OldestMessage.Milliseconds()
	case SignalOldestPending:
		return l.OldestPending.Milliseconds()
	case SignalDatabaseDown:
		return l.DatabaseDown.Milliseconds()
	}
	return 0
}
