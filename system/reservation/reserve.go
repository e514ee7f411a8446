package reservation

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/hotsku/hotsku/system/seckill"
)

// Verdict is what the reserve script decided about one request.
type Verdict string

// The verdicts of reserve.lua; any other is an error (R9.1.2).
const (
	VerdictCreated       Verdict = "CREATED"
	VerdictReplayed      Verdict = "REPLAYED"
	VerdictConflict      Verdict = "CONFLICT"
	VerdictDuplicateUser Verdict = "DUPLICATE_USER"
	VerdictNotOpen       Verdict = "NOT_OPEN"
	VerdictSoldOut       Verdict = "SOLD_OUT"
)

// Candidate is a request on its way to the script with the ids it will have
// if it wins: they exist before the script runs (R7.7.1).
type Candidate struct {
	RequestID     string
	UserID        int64
	PayloadHash   string
	ReservationID string
	MessageID     string
	Traceparent   string // W3C trace context, kept with the reservation; empty: none
}

// Outcome is the script's decision about one candidate. ReservationID is the
// reservation found or made; Status and OrderID are a replay's present state.
type Outcome struct {
	Verdict       Verdict
	ReservationID string
	Status        string
	OrderID       string
}

// Batch is what the outcomes of one call share.
type Batch struct {
	ReservedAt      time.Time // Redis TIME: the moment of acceptance
	ExpiresAt       time.Time
	ActivityVersion int64
	Outcomes        []Outcome // one a candidate, in their order
}

// Reserve judges up to BatchMax candidates for one SKU in one script call.
// On ErrUnavailable it is not known whether any were reserved: what was is in
// the pending index, and the scanner brings it home.
func (s *Store) Reserve(ctx context.Context, activityID, skuID int64, candidates []Candidate) (Batch, error) {
	n := len(candidates)
	if n == 0 || n > BatchMax {
		return Batch{}, fmt.Errorf("reserve: %d candidates, must be 1 to %d", n, BatchMax)
	}
	k := seckill.KeysOf(activityID, skuID)
	keys := make([]string, 5+3*n)
	keys[0], keys[1], keys[2], keys[3], keys[4] = k.Meta(), k.Stock(), k.SoldOut(), k.Pending(), k.Log()
	args := make([]any, 0, 5+6*n)
	args = append(args, activityID, skuID, n, s.cfg.Hold.Microseconds(), s.cfg.FirstRetry.Microseconds())
	for i := range candidates {
		c := &candidates[i]
		keys[5+i] = k.User(c.UserID)
		keys[5+n+i] = k.Request(c.RequestID)
		keys[5+2*n+i] = k.Reservation(c.ReservationID)
		args = append(args, c.RequestID, c.UserID, c.PayloadHash, c.ReservationID, c.MessageID, c.Traceparent)
	}
	reply, err := s.reserve.run(ctx, s.rdb, keys, args).StringSlice()
	if err != nil {
		return Batch{}, wrap("reserve", err)
	}
	return decodeBatch(reply, n)
}

func decodeBatch(reply []string, n int) (Batch, error) {
	if len(reply) != 3+4*n {
		return Batch{}, fmt.Errorf("reserve: reply has %d parts, want %d", len(reply), 3+4*n)
	}
	var head [3]int64
	for i := range head {
		v, err := strconv.ParseInt(reply[i], 10, 64)
		if err != nil {
			return Batch{}, fmt.Errorf("reserve: part %d of the reply: %w", i, err)
		}
		head[i] = v
	}
	b := Batch{ReservedAt: time.UnixMicro(head[0]).UTC(), ExpiresAt: time.UnixMicro(head[1]).UTC(),
		ActivityVersion: head[2], Outcomes: make([]Outcome, n)}
	for i := range b.Outcomes {
		part := reply[3+4*i:]
		o := Outcome{Verdict(part[0]), part[1], part[2], part[3]}
		switch o.Verdict {
		case VerdictCreated, VerdictReplayed, VerdictConflict, VerdictDuplicateUser, VerdictNotOpen, VerdictSoldOut:
		default:
			return Batch{}, fmt.Errorf("reserve: unknown verdict %q", part[0])
		}
		b.Outcomes[i] = o
	}
	return b, nil
}
