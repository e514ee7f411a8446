package seckill

import (
	"encoding/json"
	"fmt"
	"time"
)

// EventTypeExpiryCheck is the event_type of ExpiryCheck.
const EventTypeExpiryCheck = "ORDER_EXPIRY_CHECK"

// ExpiryCheckSchemaVersion is the newest version of ExpiryCheck this build
// understands.
const ExpiryCheckSchemaVersion = 1

// ExpiryCheckMax is how many orders one check names at most.
const ExpiryCheckMax = 200

// ExpiryCheck asks, by a delayed message, to expire the orders that are
// unpaid when their time has come. One names many orders created together: the
// broker takes delayed messages one by one only. It is a reminder, no
// authority: PostgreSQL decides by each order's own due time, and a sweeper
// finds what no message reminds of.
type ExpiryCheck struct {
	SchemaVersion int       `json:"schema_version"`
	EventType     string    `json:"event_type"`
	DueAt         time.Time `json:"due_at"` // the latest of its orders
	OrderIDs      []string  `json:"order_ids"`
}

// NewExpiryCheck returns the check of orders due at dueAt.
func NewExpiryCheck(dueAt time.Time, orderIDs []string) ExpiryCheck {
	return ExpiryCheck{SchemaVersion: ExpiryCheckSchemaVersion, EventType: EventTypeExpiryCheck, DueAt: dueAt, OrderIDs: orderIDs}
}

// Encode returns the check's JSON.
func (c *ExpiryCheck) Encode() ([]byte, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode expiry check: %w", err)
	}
	return body, nil
}

// DecodeExpiryCheck reads and checks a message. Errors wrap ErrNewerSchema or
// ErrPoison.
func DecodeExpiryCheck(body []byte) (ExpiryCheck, error) {
	var c ExpiryCheck
	if err := json.Unmarshal(body, &c); err != nil {
		return c, fmt.Errorf("%w: %w", ErrPoison, err)
	}
	switch {
	case c.SchemaVersion > ExpiryCheckSchemaVersion:
		return c, fmt.Errorf("%w: version %d, known %d", ErrNewerSchema, c.SchemaVersion, ExpiryCheckSchemaVersion)
	case c.SchemaVersion < 1:
		return c, fmt.Errorf("%w: %w", ErrPoison, &FieldError{"schema_version", "must be at least 1"})
	case c.EventType != EventTypeExpiryCheck:
		return c, fmt.Errorf("%w: %w", ErrPoison, &FieldError{"event_type", "must be " + EventTypeExpiryCheck})
	case c.DueAt.IsZero():
		return c, fmt.Errorf("%w: %w", ErrPoison, &FieldError{"due_at", "is required"})
	case len(c.OrderIDs) == 0 || len(c.OrderIDs) > ExpiryCheckMax:
		return c, fmt.Errorf("%w: %w", ErrPoison, &FieldError{"order_ids", fmt.Sprintf("%d: must be 1 to %d", len(c.OrderIDs), ExpiryCheckMax)})
	}
	for _, id := range c.OrderIDs {
		if !ValidOrderID(id) {
			return c, fmt.Errorf("%w: %w", ErrPoison, &FieldError{"order_ids", fmt.Sprintf("%.40q is no order id", id)})
		}
	}
	return c, nil
}
