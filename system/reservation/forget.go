package reservation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/system/seckill"
)

// Forget takes out of the index those of the SKUs that ended or were closed at
// least after ago by Redis' clock, and of which no reservation is pending:
// nothing can be reserved of them any more, so that nothing will be. Their
// other keys stay until they expire. It returns whom it forgot.
//
// Index and SKU lie in different hash slots, so that no script can judge and
// remove in one: a SKU that is not over when it is looked at once more
// (somebody deleted its keys and warmed it anew) goes back. A SKU that Redis
// does not know stays, for it may be about to be warmed.
func (s *Store) Forget(ctx context.Context, skus []SKU, after time.Duration) ([]SKU, error) {
	over, err := s.over(ctx, skus, after)
	if len(over) == 0 {
		return nil, err
	}
	if err := s.rdb.SRem(ctx, seckill.ActivityIndexKey, members(over)...).Err(); err != nil {
		return nil, wrap("forget activities", err)
	}
	// Whoever is told to end here still looks, and puts back.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Timeout)
	defer cancel()
	still, err := s.over(ctx, over, after)
	back := slices.DeleteFunc(over, func(sku SKU) bool { return slices.Contains(still, sku) })
	if len(back) > 0 {
		if undo := s.rdb.SAdd(ctx, seckill.ActivityIndexKey, members(back)...).Err(); undo != nil {
			err = errors.Join(err, wrap(fmt.Sprintf("put %v back into the index", back), undo))
		}
	}
	return still, err
}

func members(skus []SKU) []any {
	m := make([]any, len(skus))
	for i, sku := range skus {
		m[i] = sku.member()
	}
	return m
}

// over returns those of the SKUs that are over. What cannot be read is not.
func (s *Store) over(ctx context.Context, skus []SKU, after time.Duration) (over []SKU, err error) {
	if len(skus) == 0 {
		return nil, nil
	}
	var now *redis.TimeCmd
	meta := make([]*redis.SliceCmd, len(skus))
	pending := make([]*redis.IntCmd, len(skus))
	// Each reply has its own error, and without a connection all have.
	_, _ = s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		now = p.Time(ctx) // first: what is pending after the end only shrinks
		for i, sku := range skus {
			k := seckill.KeysOf(sku.ActivityID, sku.SKUID)
			meta[i] = p.HMGet(ctx, k.Meta(), "ends_at", "closed_at")
			pending[i] = p.ZCard(ctx, k.Pending())
		}
		return nil
	})
	if now.Err() != nil {
		return nil, wrap("look what is over", now.Err())
	}
	past := now.Val().Add(-after).UnixMicro()
	for i, sku := range skus {
		if pending[i].Err() == nil && pending[i].Val() == 0 && slices.ContainsFunc(meta[i].Val(), func(end any) bool {
			text, _ := end.(string)
			us, err := strconv.ParseInt(text, 10, 64)
			return err == nil && us <= past
		}) {
			over = append(over, sku)
		}
	}
	return over, nil
}
