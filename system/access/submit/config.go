package submit

import (
	"fmt"
	"time"
)

// Config bounds the path.
type Config struct {
	// InFlight is how many requests may wait for Redis; one more is
	// RATE_LIMITED at once.
	InFlight int
	// Reservers is how many batches are at Redis at once.
	Reservers int
	// QueueWait is how long a request may wait for its batch.
	QueueWait time.Duration
	// ReserveTimeout is how long after its dispatch an answer waits for Redis.
	ReserveTimeout time.Duration
	// CallTimeout bounds one call to Redis, whoever waits for it.
	CallTimeout time.Duration
	// Markers is how many batches of marks are at Redis at once.
	Markers int
	// Senders is how many batches are at the broker at once; more than two
	// only adds timeouts.
	Senders int
	// SendLinger is how long a sender waits to fill a batch.
	SendLinger time.Duration
	// SendTimeout is how long after its reservation an answer waits for the
	// broker's confirmation.
	SendTimeout time.Duration
	// AnswerBudget is how long after its arrival an accepted request is
	// answered at the latest, confirmed or not: the limits above may add up to
	// more than anyone should wait.
	AnswerBudget time.Duration
}

// InFlightMax bounds Config.InFlight, and with it the queue's memory.
const InFlightMax = 1 << 20

// ConfigDefault is measured for two cores shared with everything else.
var ConfigDefault = Config{
	InFlight:       512,
	Reservers:      8,
	QueueWait:      20 * time.Millisecond,
	ReserveTimeout: 50 * time.Millisecond,
	CallTimeout:    time.Second,
	Markers:        4,
	Senders:        2,
	SendLinger:     2 * time.Millisecond,
	SendTimeout:    80 * time.Millisecond,
	AnswerBudget:   40 * time.Millisecond,
}

// Validate checks the bounds.
func (c Config) Validate() error {
	switch {
	case c.InFlight < 1 || c.InFlight > InFlightMax:
		return fmt.Errorf("in-flight limit %d: must be 1 to %d", c.InFlight, InFlightMax)
	case c.Reservers < 1 || c.Reservers > 64:
		return fmt.Errorf("reservers %d: must be 1 to 64", c.Reservers)
	case c.Senders < 1 || c.Senders > 16:
		return fmt.Errorf("senders %d: must be 1 to 16", c.Senders)
	case c.Markers < 1 || c.Markers > 16:
		return fmt.Errorf("markers %d: must be 1 to 16", c.Markers)
	case c.CallTimeout < c.ReserveTimeout:
		return fmt.Errorf("call timeout %v: must not be below the reserve timeout %v", c.CallTimeout, c.ReserveTimeout)
	case c.QueueWait <= 0 || c.ReserveTimeout <= 0 || c.SendTimeout <= 0:
		return fmt.Errorf("queue wait %v, reserve timeout %v and send timeout %v must be positive", c.QueueWait, c.ReserveTimeout, c.SendTimeout)
	case c.AnswerBudget <= 0:
		return fmt.Errorf("answer budget %v: must be positive", c.AnswerBudget)
	case c.SendLinger < 0 || c.SendLinger >= c.SendTimeout:
		return fmt.Errorf("send linger %v: must be below the send timeout %v", c.SendLinger, c.SendTimeout)
	}
	return nil
}
