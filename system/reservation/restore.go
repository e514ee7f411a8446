package reservation

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/system/seckill"
)

// Decided is a reservation as PostgreSQL has decided it.
type Decided struct {
	ReservationID string
	MessageID     string
	RequestID     string
	ActivityID    int64
	SKUID         int64
	UserID        int64
	Status        seckill.ReservationStatus
	OrderID       string
	ReturnStock   bool // its compensation gives the unit back
	ReservedAt    time.Time
	DecidedAt     time.Time
}

// Restore puts back the keys Redis lost of a decided reservation: the user's
// mark, the request's record, and the reservation itself. It writes over
// nothing and returns how many keys were missing; an activity that Redis
// does not know stays unknown.
//
// A reservation whose unit is to return stays lost unless the change log
// shows that it did: put back as compensated it would never return, put back
// as not compensated it might return twice. Nobody can return it meanwhile,
// for Apply passes over reservations that are not there.
func (s *Store) Restore(ctx context.Context, d Decided) (restored int, err error) {
	if d.Status == "" || d.Status.Undecided() {
		return 0, fmt.Errorf("restore %s: status %q is no decision", d.ReservationID, d.Status)
	}
	k := seckill.KeysOf(d.ActivityID, d.SKUID)
	whole := true
	if d.Status.Compensated() && d.ReturnStock {
		if whole, err = s.returned(ctx, k, d); err != nil {
			return 0, err
		}
	}
	cmd := seckill.SubmitCommand{ActivityID: d.ActivityID, SKUID: d.SKUID, UserID: d.UserID, Quantity: 1}
	mark := "1"
	if d.Status == seckill.StatusRejectedDuplicateUser { // the mark belongs to the user's other reservation
		mark = "0"
	}
	args := []any{d.ReservationID, cmd.PayloadHash(), mark}
	if whole {
		args = append(args, s.fields(d, cmd.PayloadHash())...)
	}
	n, err := s.restore.run(ctx, s.rdb, []string{k.Meta(), k.User(d.UserID), k.Request(d.RequestID), k.Reservation(d.ReservationID)}, args).Int()
	if err != nil {
		return 0, wrap("restore", err)
	}
	return max(n, 0), nil
}

// fields are those of 8.1 and of the decision; the script adds the version.
func (s *Store) fields(d Decided, payloadHash string) []any {
	us := func(t time.Time) string { return strconv.FormatInt(t.UnixMicro(), 10) }
	f := []any{"reservation_id", d.ReservationID, "message_id", d.MessageID, "request_id", d.RequestID,
		"activity_id", d.ActivityID, "sku_id", d.SKUID, "user_id", d.UserID, "status", string(d.Status),
		"payload_hash", payloadHash, "reserved_at", us(d.ReservedAt), "expires_at", us(d.ReservedAt.Add(s.cfg.Hold)),
		"send_attempts", "1", "next_retry_at", us(d.ReservedAt), "last_error_code", ""}
	if d.OrderID != "" {
		f = append(f, "order_id", d.OrderID)
	}
	if d.Status.Compensated() {
		returned := "0"
		if d.ReturnStock {
			returned = "1"
		}
		f = append(f, "compensated_at", us(d.DecidedAt), "compensation_id", seckill.OperationIDOf(d.ReservationID), "returned", returned)
	}
	return f
}

// returned looks for the return of the reservation's unit in the change log.
// Entries are named by Redis' time, so it cannot be before the reservation.
func (s *Store) returned(ctx context.Context, k seckill.Keys, d Decided) (bool, error) {
	from := strconv.FormatInt(d.ReservedAt.UnixMilli(), 10)
	for {
		entries, err := s.rdb.XRangeN(ctx, k.Log(), from, "+", LogReadMax).Result()
		if err != nil && err != redis.Nil {
			return false, wrap("read change log", err)
		}
		for _, e := range entries {
			if e.Values["op"] == "return" && e.Values["resv"] == d.ReservationID {
				return true, nil
			}
			from = "(" + e.ID
		}
		if len(entries) < LogReadMax {
			return false, nil
		}
	}
}
