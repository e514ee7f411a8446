// Package dlq keeps, in one table, every message that was given up on, and
// what was done about it (R7.4.8, invariant I12): those the order consumer
// parked itself, and those the broker moved to a dead-letter topic after all
// its deliveries failed, which a Collector takes over.
//
// A letter is open until its reservation is decided, an event among them is
// sent again, or a person sets it aside. A replay sends the message once more
// with the same message_id, so that it can repeat nothing; setting aside ends
// the reservation, if it can be told and nothing ended it before, through the
// inbox door like every other end (package setaside).
//
// Imports allowed: system/seckill, system/setaside, pgx.
package dlq

import (
	"errors"
	"fmt"
	"time"

	"github.com/hotsku/hotsku/system/seckill"
)

// Class says why a message was given up on.
type Class string

// The classes.
const (
	ClassPoison      Class = "poison"              // no build can read it
	ClassNewerSchema Class = "newer_schema"        // a newer build can
	ClassRefused     Class = "refused_by_database" // PostgreSQL will not take its content
	ClassHandedBack  Class = "handed_back"         // readable: every delivery failed for another reason
)

// Classes lists them.
func Classes() []Class {
	return []Class{ClassPoison, ClassNewerSchema, ClassRefused, ClassHandedBack}
}

// ParseClass reads a class; "" is any.
func ParseClass(text string) (Class, error) {
	for _, c := range append(Classes(), "") {
		if text == string(c) {
			return c, nil
		}
	}
	return "", fmt.Errorf("class %q: must be one of %s, %s, %s or %s", text, ClassPoison, ClassNewerSchema, ClassRefused, ClassHandedBack)
}

// Kind says what the message is.
type Kind string

// The kinds.
const (
	KindOrderCreate Kind = "order_create"
	KindEvent       Kind = "event"
	KindExpiryCheck Kind = "expiry_check" // a reminder: the sweeper does without it
)

// Letter is a message that was given up on.
type Letter struct {
	ID            int64                     `json:"id"`
	Kind          Kind                      `json:"kind"`
	Class         Class                     `json:"class"`
	Topic         string                    `json:"topic"`
	Queue         int                       `json:"queue"`
	Offset        int64                     `json:"offset"`
	MessageID     string                    `json:"message_id,omitempty"`
	ReservationID string                    `json:"reservation_id,omitempty"`
	Reason        string                    `json:"reason"`
	Body          []byte                    `json:"-"`
	CreatedAt     time.Time                 `json:"created_at"`
	Replays       int                       `json:"replays"`
	ReplayedAt    *time.Time                `json:"replayed_at,omitempty"`
	SettledAt     *time.Time                `json:"settled_at,omitempty"`
	Note          string                    `json:"note,omitempty"`
	Decided       seckill.ReservationStatus `json:"decided,omitempty"` // how its reservation ended; "": undecided or not known
}

// Open says that something is left to do.
func (l Letter) Open() bool {
	return l.SettledAt == nil && !(l.Kind == KindOrderCreate && l.Decided != "")
}

// State is one word about what became of it.
func (l Letter) State() string {
	switch {
	case l.SettledAt != nil:
		return "settled"
	case !l.Open():
		return "decided"
	case l.Replays > 0:
		return "replayed"
	}
	return "open"
}

// Errors of replaying and setting aside.
var (
	ErrNoLetter = errors.New("no such dead letter: `seckill dlq list --all` lists them")
	// ErrPointless wraps the refusal of a replay that could change nothing.
	ErrPointless = errors.New("nothing to replay")
)
