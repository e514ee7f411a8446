package seckill

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Topics and consumer groups at the broker.
const (
	TopicOrderCreate = "seckill_order_create"
	TopicEvent       = "seckill_event"
	TopicExpiry      = "seckill_expiry" // delayed
	GroupOrder       = "seckill_order_consumer"
	GroupProjector   = "projector"
	GroupExpiry      = "seckill_expiry_consumer"
	GroupDeadLetters = "dead_letters" // takes over what the broker gave up on
)

// InboxOrderEnd is the inbox's group for what ends an order: payment,
// cancellation and expiry compete for one entry, EndIDOf its reservation.
const InboxOrderEnd = "order_end"

// MessageSchemaVersion is the newest version of OrderCreateMessage this build
// understands; a newer one is set aside, classified, never guessed at.
const MessageSchemaVersion = 1

// EventTypeOrderCreateRequested is the event_type of OrderCreateMessage.
const EventTypeOrderCreateRequested = "SECKILL_ORDER_CREATE_REQUESTED"

// OrderCreateMessage asks the consumers to turn a reservation into an order
// (specification 8.3). MessageID is the business identity by which it is
// deduplicated; MessageKey is the reservation id. OrderID is always empty.
type OrderCreateMessage struct {
	SchemaVersion        int       `json:"schema_version"`
	EventType            string    `json:"event_type"`
	MessageID            string    `json:"message_id"`
	MessageKey           string    `json:"message_key"`
	RequestID            string    `json:"request_id"`
	ReservationID        string    `json:"reservation_id"`
	ActivityID           int64     `json:"activity_id"`
	SKUID                int64     `json:"sku_id"`
	UserID               int64     `json:"user_id"`
	OrderID              string    `json:"order_id"`
	ReservedAt           time.Time `json:"reserved_at"`
	ReservationExpiresAt time.Time `json:"reservation_expires_at"`
	RetryCount           int       `json:"retry_count"` // 0 from access, the send attempt from the scanner
	PayloadHash          string    `json:"payload_hash"`
	ActivityVersion      int64     `json:"activity_version"`
	Traceparent          string    `json:"traceparent"`
	CreatedAt            time.Time `json:"created_at"`
}

// ErrNewerSchema is wrapped by DecodeOrderCreate for a message of a version
// this build does not know.
var ErrNewerSchema = errors.New("message schema is newer than this build")

// ErrPoison is wrapped by DecodeOrderCreate for a message that no retry can
// mend.
var ErrPoison = errors.New("poison message")

// Encode returns the message's JSON.
func (m *OrderCreateMessage) Encode() ([]byte, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode order-create message: %w", err)
	}
	return body, nil
}

// DecodeOrderCreate reads and checks a message. Errors wrap ErrNewerSchema
// or ErrPoison; both are permanent, and name no value of the message. Even
// then the message returned holds what could be read, so that it can be
// classified. A trace context that is none is left out: only observation
// hangs on it.
func DecodeOrderCreate(body []byte) (OrderCreateMessage, error) {
	var m OrderCreateMessage
	dec := json.NewDecoder(bytes.NewReader(body))
	err := dec.Decode(&m)
	m.Traceparent = string(ParseTraceparent(m.Traceparent))
	if err != nil {
		return m, fmt.Errorf("%w: %w", ErrPoison, unnamed(err))
	}
	if len(bytes.TrimSpace(body[dec.InputOffset():])) > 0 {
		return m, fmt.Errorf("%w: data after the message", ErrPoison)
	}
	if m.SchemaVersion > MessageSchemaVersion {
		return m, fmt.Errorf("%w: version %d, known %d", ErrNewerSchema, m.SchemaVersion, MessageSchemaVersion)
	}
	if err := m.check(); err != nil {
		return m, fmt.Errorf("%w: %w", ErrPoison, err)
	}
	return m, nil
}

// unnamed is what is wrong with a JSON text without its values, which may be
// a user's id.
func unnamed(err error) error {
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		return &FieldError{mistyped.Field, "must be of type " + mistyped.Type.String()}
	}
	return err
}

func (m *OrderCreateMessage) check() error {
	switch {
	case m.SchemaVersion < 1:
		return &FieldError{"schema_version", "must be at least 1"}
	case m.EventType != EventTypeOrderCreateRequested:
		return &FieldError{"event_type", "must be " + EventTypeOrderCreateRequested}
	case !ValidReservationID(m.ReservationID):
		return &FieldError{"reservation_id", "is no reservation id"}
	case m.MessageKey != m.ReservationID:
		return &FieldError{"message_key", "must equal reservation_id"}
	case !strings.HasPrefix(m.MessageID, MessageIDPrefix) || len(m.MessageID) > 64:
		return &FieldError{"message_id", "is no message id"}
	case m.ActivityID <= 0:
		return &FieldError{"activity_id", "must be positive"}
	case m.SKUID <= 0:
		return &FieldError{"sku_id", "must be positive"}
	case m.UserID <= 0:
		return &FieldError{"user_id", "must be positive"}
	case m.ReservedAt.IsZero():
		return &FieldError{"reserved_at", "is required"}
	case m.ReservationExpiresAt.Before(m.ReservedAt):
		return &FieldError{"reservation_expires_at", "must not be before reserved_at"}
	}
	if err := ValidateRequestID(m.RequestID); err != nil {
		return err
	}
	cmd := SubmitCommand{ActivityID: m.ActivityID, SKUID: m.SKUID, UserID: m.UserID, Quantity: 1}
	if m.PayloadHash != PayloadHashPrefix+cmd.PayloadHash() {
		return &FieldError{"payload_hash", "does not match activity, SKU and user"}
	}
	return nil
}

// Event types of the outbox.
const (
	EventOrderCreated = "ORDER_CREATED"          // the order exists: its COMMIT came first
	EventCompensate   = "RESERVATION_COMPENSATE" // the reservation ended otherwise
	EventSetAside     = "RESERVATION_SET_ASIDE"  // it was handed to a person; its unit stays with it
)

// EventSchemaVersion is the version of Event.
const EventSchemaVersion = 1

// Event is what the outbox publishes about a decided reservation; the
// projector applies it to Redis, any number of times with one effect.
type Event struct {
	SchemaVersion int               `json:"schema_version"`
	EventType     string            `json:"event_type"`
	OperationID   string            `json:"operation_id"` // cmp_…, the identity of a compensation
	ReservationID string            `json:"reservation_id"`
	ActivityID    int64             `json:"activity_id"`
	SKUID         int64             `json:"sku_id"`
	UserID        int64             `json:"user_id"`
	OrderID       string            `json:"order_id,omitempty"`
	Status        ReservationStatus `json:"status"`
	ReturnStock   bool              `json:"return_stock"`
	Traceparent   string            `json:"traceparent,omitempty"`
	// PaymentDueAt is when the order expires unless it is paid; of
	// EventOrderCreated only.
	PaymentDueAt time.Time `json:"payment_due_at,omitzero"`
}

// DecodeEvent reads and checks an event. Errors wrap ErrNewerSchema or
// ErrPoison.
func DecodeEvent(body []byte) (Event, error) {
	var e Event
	err := json.Unmarshal(body, &e)
	e.Traceparent = string(ParseTraceparent(e.Traceparent))
	if err != nil {
		return e, fmt.Errorf("%w: %w", ErrPoison, unnamed(err))
	}
	switch {
	case e.SchemaVersion > EventSchemaVersion:
		return e, fmt.Errorf("%w: version %d, known %d", ErrNewerSchema, e.SchemaVersion, EventSchemaVersion)
	case e.EventType != EventOrderCreated && e.EventType != EventCompensate && e.EventType != EventSetAside:
		return e, fmt.Errorf("%w: event_type %q", ErrPoison, e.EventType)
	case !ValidReservationID(e.ReservationID), e.ActivityID <= 0, e.SKUID <= 0, e.UserID <= 0, e.Status == "":
		return e, fmt.Errorf("%w: incomplete event for %q", ErrPoison, e.ReservationID)
	case e.EventType == EventCompensate && e.OperationID == "":
		return e, fmt.Errorf("%w: compensation without operation_id for %q", ErrPoison, e.ReservationID)
	}
	return e, nil
}
