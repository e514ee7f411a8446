package reservation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/system/seckill"
)

// Backoff is how a reservation's resends are spaced: Base, doubled at each
// attempt, at most Max. It is also the lease of the scanner that claimed it.
type Backoff struct{ Base, Max time.Duration }

// ErrUnreadable says that keys in Redis lack fields, or hold what is none or
// of another type: not the system's writing. They are left to a person.
var ErrUnreadable = errors.New("cannot be read")

// ClaimDue hands the caller up to limit (at most BatchMax) reservations whose
// send is due, leased until their next retry. An error that wraps
// ErrUnreadable is about others of them, which are leased too; those returned
// are sound.
func (s *Store) ClaimDue(ctx context.Context, activityID, skuID int64, limit int, backoff Backoff) ([]Reservation, error) {
	k := seckill.KeysOf(activityID, skuID)
	replies, err := s.claimDue.run(ctx, s.rdb, []string{k.Pending()},
		[]any{limit, backoff.Base.Microseconds(), backoff.Max.Microseconds(), k.Reservation("")}).Slice()
	if err != nil {
		return nil, wrap("claim due", err)
	}
	due := make([]Reservation, 0, len(replies))
	var errs []error
	for _, reply := range replies {
		flat, ok := reply.([]any)
		if !ok {
			return nil, fmt.Errorf("claim due: reply holds %T, want an array", reply)
		}
		fields := make(map[string]string, len(flat)/2)
		for i := 0; i+1 < len(flat); i += 2 {
			fields[fmt.Sprint(flat[i])] = fmt.Sprint(flat[i+1])
		}
		r, err := decodeReservation(fields)
		if err != nil {
			errs = append(errs, fmt.Errorf("claim due: %w: %w", ErrUnreadable, err))
			continue
		}
		due = append(due, r)
	}
	return due, errors.Join(errs...)
}

// PendingCount is how many reservations have no confirmed message.
func (s *Store) PendingCount(ctx context.Context, activityID, skuID int64) (int64, error) {
	n, err := s.rdb.ZCard(ctx, seckill.KeysOf(activityID, skuID).Pending()).Result()
	if err != nil {
		return 0, wrap("count pending", err)
	}
	return n, nil
}

// PendingCounts is PendingCount for many SKUs, in one round trip. An error
// that wraps ErrUnreadable is about SKUs whose index is none, which count 0;
// the other counts are sound.
func (s *Store) PendingCounts(ctx context.Context, skus []SKU) ([]int64, error) {
	if len(skus) == 0 {
		return nil, nil
	}
	replies := make([]*redis.IntCmd, len(skus))
	// Each reply has its own error, and without a connection all have.
	_, _ = s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, sku := range skus {
			replies[i] = p.ZCard(ctx, seckill.KeysOf(sku.ActivityID, sku.SKUID).Pending())
		}
		return nil
	})
	counts := make([]int64, len(skus))
	var errs []error
	for i, r := range replies {
		switch err := wrap("count pending", r.Err()); {
		case r.Err() == nil:
			counts[i] = r.Val()
		case errors.Is(err, ErrUnreadable):
			errs = append(errs, fmt.Errorf("activity %d SKU %d: %w", skus[i].ActivityID, skus[i].SKUID, err))
		default:
			return nil, err
		}
	}
	return counts, errors.Join(errs...)
}

// Bounds of one look for the oldest pending reservation.
const (
	pendingPage    = 1000  // ids of one reply: 0.1 ms of Redis' time
	pendingScanMax = 20000 // ids looked at
	pendingOldest  = 4     // of them, whose times are read
)

// OldestPending is the age of the oldest reservation without a confirmed
// message since it was reserved, by Redis' clock; 0 if there is none. The index is
// ordered by what is due, not by age, so it reads ids, which ascend with time:
// beyond pendingScanMax pending, or where the clocks of access processes
// differ, it may miss the oldest by as much.
func (s *Store) OldestPending(ctx context.Context, activityID, skuID int64) (time.Duration, error) {
	k := seckill.KeysOf(activityID, skuID)
	var oldest []string // ascending
	for from := int64(0); from < pendingScanMax; from += pendingPage {
		page, err := s.rdb.ZRange(ctx, k.Pending(), from, from+pendingPage-1).Result()
		if err != nil {
			return 0, wrap("oldest pending", err)
		}
		oldest = append(oldest, page...)
		slices.Sort(oldest)
		oldest = oldest[:min(len(oldest), pendingOldest)]
		if len(page) < pendingPage {
			break
		}
	}
	if len(oldest) == 0 {
		return 0, nil
	}
	var now *redis.TimeCmd
	reserved := make([]*redis.StringCmd, len(oldest))
	if _, err := s.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		now = p.Time(ctx)
		for i, id := range oldest {
			reserved[i] = p.HGet(ctx, k.Reservation(id), "reserved_at")
		}
		return nil
	}); err != nil && !errors.Is(err, redis.Nil) {
		return 0, wrap("oldest pending", err)
	}
	var age time.Duration
	for _, r := range reserved {
		if us, err := r.Int64(); err == nil { // gone in between, or a person's to read
			age = max(age, now.Val().Sub(time.UnixMicro(us)))
		}
	}
	return age, nil
}

// MarkSent notes that the broker confirmed the messages of up to BatchMax
// reservations. Best effort: nothing depends on it but the scanner's work.
func (s *Store) MarkSent(ctx context.Context, activityID, skuID int64, reservationIDs []string) error {
	k := seckill.KeysOf(activityID, skuID)
	return s.note(ctx, "mark sent", s.markSent, k, []string{k.Pending()}, reservationIDs)
}

// SetAside notes that PostgreSQL set up to BatchMax reservations aside. It
// repeats harmlessly, and changes none that was decided otherwise.
func (s *Store) SetAside(ctx context.Context, activityID, skuID int64, reservationIDs []string) error {
	k := seckill.KeysOf(activityID, skuID)
	return s.note(ctx, "set aside", s.setAside, k, []string{k.Meta(), k.Pending()}, reservationIDs)
}

// note runs a script over reservations named both as keys and arguments.
func (s *Store) note(ctx context.Context, op string, sc script, k seckill.Keys, keys []string, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	args := make([]any, len(ids))
	for i, id := range ids {
		keys = append(keys, k.Reservation(id))
		args[i] = id
	}
	if err := sc.run(ctx, s.rdb, keys, args).Err(); err != nil {
		return wrap(op, err)
	}
	return nil
}

// NoteFailure notes why a send of up to BatchMax reservations was not
// confirmed: a short code. Best effort, for whoever looks into it.
func (s *Store) NoteFailure(ctx context.Context, activityID, skuID int64, reservationIDs []string, code string) error {
	if len(reservationIDs) == 0 {
		return nil
	}
	k := seckill.KeysOf(activityID, skuID)
	keys := make([]string, len(reservationIDs))
	for i, id := range reservationIDs {
		keys[i] = k.Reservation(id)
	}
	if err := s.noteFailure.run(ctx, s.rdb, keys, []any{code}).Err(); err != nil {
		return wrap("note failure", err)
	}
	return nil
}
