package reservation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/system/seckill"
)

// KeepAfterEnd is how long an activity's keys outlive its end. The moment is
// fixed when the activity is warmed, never counted from a request, so that no
// late request can find a purchase forgotten.
const KeepAfterEnd = 7 * 24 * time.Hour

// Activity is what Redis must know of a SKU on sale.
type Activity struct {
	ActivityID int64
	SKUID      int64
	Stock      int64
	Version    int64
	StartsAt   time.Time
	EndsAt     time.Time
}

// ErrExists says that the activity was warmed before.
var ErrExists = errors.New("activity is in redis already")

// ErrUnknownActivity says that Redis does not know the activity.
var ErrUnknownActivity = errors.New("activity is not in redis")

// Warm makes a SKU reservable. Nothing is changed if it is there already.
func (s *Store) Warm(ctx context.Context, a Activity) error {
	k := seckill.KeysOf(a.ActivityID, a.SKUID)
	// First: a sale that no scanner knows of would strand what its scanner
	// should send, while an index entry without a sale harms nobody.
	if err := s.rdb.SAdd(ctx, seckill.ActivityIndexKey, SKU{a.ActivityID, a.SKUID}.member()).Err(); err != nil {
		return wrap("index activity", err)
	}
	made, err := s.warm.run(ctx, s.rdb, []string{k.Meta(), k.Stock(), k.SoldOut(), k.Log()}, []any{
		string(seckill.ActivityRunning), a.Version, a.StartsAt.UnixMicro(), a.EndsAt.UnixMicro(),
		a.EndsAt.Add(KeepAfterEnd).Unix(), a.Stock}).Int64()
	if err != nil {
		return wrap("warm activity", err)
	}
	if made == 0 {
		return fmt.Errorf("warm activity %d SKU %d: %w", a.ActivityID, a.SKUID, ErrExists)
	}
	return nil
}

// SetStatus opens or closes a SKU for new reservations.
func (s *Store) SetStatus(ctx context.Context, activityID, skuID int64, status seckill.ActivityStatus) error {
	known, err := s.setStatus.run(ctx, s.rdb, []string{seckill.KeysOf(activityID, skuID).Meta()}, []any{string(status)}).Int64()
	if err != nil {
		return wrap("set activity status", err)
	}
	if known == 0 {
		return fmt.Errorf("set status of activity %d SKU %d: %w", activityID, skuID, ErrUnknownActivity)
	}
	return nil
}

// SKU names one SKU of an activity.
type SKU struct{ ActivityID, SKUID int64 }

// member is the SKU's entry of the index.
func (s SKU) member() string {
	return strconv.FormatInt(s.ActivityID, 10) + ":" + strconv.FormatInt(s.SKUID, 10)
}

// Activities lists every SKU that was warmed here and not forgotten since. An error that wraps
// ErrUnreadable is about entries that name none; those returned are sound.
func (s *Store) Activities(ctx context.Context) ([]SKU, error) {
	members, err := s.rdb.SMembers(ctx, seckill.ActivityIndexKey).Result()
	if err != nil {
		return nil, wrap("list activities", err)
	}
	skus := make([]SKU, 0, len(members))
	var errs []error
	for _, m := range members {
		a, sku, _ := strings.Cut(m, ":")
		aid, aerr := strconv.ParseInt(a, 10, 64)
		sid, serr := strconv.ParseInt(sku, 10, 64)
		if err := errors.Join(aerr, serr); err != nil {
			errs = append(errs, fmt.Errorf("list activities: %w: member %q: %w", ErrUnreadable, m, err))
			continue
		}
		skus = append(skus, SKU{aid, sid})
	}
	return skus, errors.Join(errs...)
}

// Stock is the number of units that may still be reserved.
func (s *Store) Stock(ctx context.Context, activityID, skuID int64) (int64, error) {
	n, err := s.rdb.Get(ctx, seckill.KeysOf(activityID, skuID).Stock()).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, fmt.Errorf("stock of activity %d SKU %d: %w", activityID, skuID, ErrUnknownActivity)
	}
	if err != nil {
		return 0, wrap("read stock", err)
	}
	return n, nil
}
