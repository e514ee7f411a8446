// Package setaside ends reservations that no machine could decide: they are
// handed to a person (R7.8.5, R7.4.8). PostgreSQL decides this end like every
// other, through the inbox door: the transaction inserts the inbox row of the
// reservation's message first, so that the message, should it still arrive,
// finds the reservation decided, and a reservation whose message was decided
// stays as it is.
//
// A unit set aside stays with its reservation: no compensation follows, the
// user keeps the mark of having bought, and the query shows SET_ASIDE.
//
// Imports allowed: system/seckill, pgx.
package setaside

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hotsku/hotsku/system/seckill"
)

//go:embed sql/set_aside.sql
var setAside string

// BatchMax is how many reservations one call takes at most.
const BatchMax = 100

// Reservation is what must be known of a reservation to end it.
type Reservation struct {
	ReservationID string
	MessageID     string
	RequestID     string
	ActivityID    int64
	SKUID         int64
	UserID        int64
	ReservedAt    time.Time
	Traceparent   string // may be empty
}

// OfMessage is the reservation an order-create message is about.
func OfMessage(m *seckill.OrderCreateMessage) Reservation {
	return Reservation{ReservationID: m.ReservationID, MessageID: m.MessageID, RequestID: m.RequestID,
		ActivityID: m.ActivityID, SKUID: m.SKUID, UserID: m.UserID, ReservedAt: m.ReservedAt, Traceparent: m.Traceparent}
}

// Check says what is missing. The error is a *seckill.FieldError.
func (r *Reservation) Check() error {
	switch {
	case !seckill.ValidReservationID(r.ReservationID):
		return &seckill.FieldError{Field: "reservation_id", Reason: "is no reservation id"}
	case !printable(r.MessageID) || len(r.MessageID) > 64:
		return &seckill.FieldError{Field: "message_id", Reason: "is no message id"}
	case r.ActivityID <= 0:
		return &seckill.FieldError{Field: "activity_id", Reason: "must be positive"}
	case r.SKUID <= 0:
		return &seckill.FieldError{Field: "sku_id", Reason: "must be positive"}
	case r.UserID <= 0:
		return &seckill.FieldError{Field: "user_id", Reason: "must be positive"}
	case r.ReservedAt.IsZero():
		return &seckill.FieldError{Field: "reserved_at", Reason: "is required"}
	}
	return seckill.ValidateRequestID(r.RequestID)
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != ""
}

// Querier is a pool, a connection or a transaction of package pgx.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// End sets up to BatchMax reservations aside and returns the ids of those it
// ended; the others were decided before, or are being decided and were left.
// Repeating a call changes nothing. After an error whose COMMIT may have
// happened, repeating it tells nothing new but harms nothing.
func End(ctx context.Context, db Querier, reservations []Reservation) (ended []string, err error) {
	n := len(reservations)
	if n == 0 || n > BatchMax {
		return nil, fmt.Errorf("set aside: %d reservations, must be 1 to %d", n, BatchMax)
	}
	ids, messages, requests, payloads := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	activities, skus, users, reservedAt := make([]int64, n), make([]int64, n), make([]int64, n), make([]time.Time, n)
	seen := make(map[string]struct{}, n)
	for i := range reservations {
		r := &reservations[i]
		if err := r.Check(); err != nil {
			return nil, fmt.Errorf("set aside %q: %w", r.ReservationID, err)
		}
		if _, again := seen[r.ReservationID]; again {
			return nil, errors.New("set aside: " + r.ReservationID + " is given twice")
		}
		seen[r.ReservationID] = struct{}{}
		payload, err := json.Marshal(seckill.Event{
			SchemaVersion: seckill.EventSchemaVersion, EventType: seckill.EventSetAside, ReservationID: r.ReservationID,
			ActivityID: r.ActivityID, SKUID: r.SKUID, UserID: r.UserID, Status: seckill.StatusSetAside, Traceparent: r.Traceparent,
		})
		if err != nil {
			return nil, fmt.Errorf("set aside %s: encode event: %w", r.ReservationID, err)
		}
		ids[i], messages[i], requests[i], payloads[i] = r.ReservationID, r.MessageID, r.RequestID, string(payload)
		activities[i], skus[i], users[i], reservedAt[i] = r.ActivityID, r.SKUID, r.UserID, r.ReservedAt
	}
	rows, err := db.Query(ctx, setAside, seckill.GroupOrder, ids, messages, activities, skus, users, requests, reservedAt, payloads)
	if err == nil {
		ended, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil {
		return nil, fmt.Errorf("set aside: %w", err)
	}
	return ended, nil
}
