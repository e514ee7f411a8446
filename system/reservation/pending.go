package reservation

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/system/seckill"
)

// Reservation is a reservation as Redis holds it: the thirteen fields of 8.1,
// activity_version, and what came of it.
type Reservation struct {
	ReservationID   string
	MessageID       string
	RequestID       string
	ActivityID      int64
	SKUID           int64
	UserID          int64
	Status          seckill.ReservationStatus
	PayloadHash     string
	ReservedAt      time.Time
	ExpiresAt       time.Time
	SendAttempts    int64
	NextRetryAt     time.Time
	LastErrorCode   string
	ActivityVersion int64
	Traceparent     string // W3C trace context of the request; empty: the reservation's own
	OrderID         string
	CompensatedAt   time.Time // zero: not compensated
	Returned        bool      // the compensation gave the unit back to the stock
}

// Message is the message that turns r into an order: the same message_id at
// every attempt (R7.7.4). now is when it is made.
func (r *Reservation) Message(now time.Time) seckill.OrderCreateMessage {
	return seckill.OrderCreateMessage{
		SchemaVersion: seckill.MessageSchemaVersion, EventType: seckill.EventTypeOrderCreateRequested,
		MessageID: r.MessageID, MessageKey: r.ReservationID, RequestID: r.RequestID,
		ReservationID: r.ReservationID, ActivityID: r.ActivityID, SKUID: r.SKUID, UserID: r.UserID,
		ReservedAt: r.ReservedAt, ReservationExpiresAt: r.ExpiresAt, RetryCount: int(r.SendAttempts),
		PayloadHash: seckill.PayloadHashPrefix + r.PayloadHash, ActivityVersion: r.ActivityVersion,
		Traceparent: cmp.Or(r.Traceparent, string(seckill.TraceOf(r.ReservationID, false))), CreatedAt: now.UTC(),
	}
}

// LookupReservation returns one reservation; found is false if Redis does not
// know it, which proves nothing (R15.11).
func (s *Store) LookupReservation(ctx context.Context, activityID, skuID int64, reservationID string) (r Reservation, found bool, err error) {
	fields, err := s.rdb.HGetAll(ctx, seckill.KeysOf(activityID, skuID).Reservation(reservationID)).Result()
	if err != nil {
		return r, false, wrap("look up reservation", err)
	}
	if len(fields) == 0 {
		return r, false, nil
	}
	r, err = decodeReservation(fields)
	if err != nil {
		return r, false, fmt.Errorf("look up reservation %s: %w", reservationID, err)
	}
	return r, true, nil
}

// LookupRequest returns the reservation a request id led to.
func (s *Store) LookupRequest(ctx context.Context, activityID, skuID int64, requestID string) (r Reservation, found bool, err error) {
	id, err := s.rdb.HGet(ctx, seckill.KeysOf(activityID, skuID).Request(requestID), "reservation_id").Result()
	if err == redis.Nil {
		return r, false, nil
	}
	if err != nil {
		return r, false, wrap("look up request", err)
	}
	return s.LookupReservation(ctx, activityID, skuID, id)
}

func decodeReservation(f map[string]string) (Reservation, error) {
	r := Reservation{
		ReservationID: f["reservation_id"], MessageID: f["message_id"], RequestID: f["request_id"],
		Status: seckill.ReservationStatus(f["status"]), PayloadHash: f["payload_hash"],
		LastErrorCode: f["last_error_code"], Traceparent: f["traceparent"], OrderID: f["order_id"],
		Returned: f["returned"] == "1",
	}
	var reservedUS, expiresUS, retryUS, compensatedUS int64
	for _, p := range []struct {
		name string
		dst  *int64
	}{
		{"activity_id", &r.ActivityID}, {"sku_id", &r.SKUID}, {"user_id", &r.UserID},
		{"reserved_at", &reservedUS}, {"expires_at", &expiresUS}, {"send_attempts", &r.SendAttempts},
		{"next_retry_at", &retryUS}, {"activity_version", &r.ActivityVersion}, {"compensated_at", &compensatedUS},
	} {
		text, ok := f[p.name]
		if !ok {
			if p.name == "compensated_at" {
				continue
			}
			return r, fmt.Errorf("reservation %q has no field %s", r.ReservationID, p.name)
		}
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return r, fmt.Errorf("reservation %q: field %s: %w", r.ReservationID, p.name, err)
		}
		*p.dst = v
	}
	r.ReservedAt, r.ExpiresAt = time.UnixMicro(reservedUS).UTC(), time.UnixMicro(expiresUS).UTC()
	r.NextRetryAt = time.UnixMicro(retryUS).UTC()
	if compensatedUS > 0 {
		r.CompensatedAt = time.UnixMicro(compensatedUS).UTC()
	}
	return r, nil
}
