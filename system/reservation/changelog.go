package reservation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/system/seckill"
)

// Change is one entry of the change log: one change of a SKU's stock.
type Change struct {
	ID    string  // stream id, ascending
	Op    string  // "init", "reserve", "return"
	Users []int64 // who reserved, or whose unit came back
	Stock int64   // after it

	Reservations []string // theirs, in the same order
}

// LogStart is the position before the first entry.
const LogStart = "0-0"

// LogReadMax is how many entries one ReadLog returns at most.
const LogReadMax = 500

// ReadLog returns the entries after the given position, oldest first.
// atTail says that nothing lay beyond them when Redis answered.
func (s *Store) ReadLog(ctx context.Context, activityID, skuID int64, after string) (changes []Change, atTail bool, err error) {
	streams, err := s.rdb.XRead(ctx, &redis.XReadArgs{
		Streams: []string{seckill.KeysOf(activityID, skuID).Log(), after}, Count: LogReadMax, Block: -1,
	}).Result()
	if errors.Is(err, redis.Nil) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, wrap("read change log", err)
	}
	if len(streams) != 1 {
		return nil, false, fmt.Errorf("read change log: %d streams in the reply, want 1", len(streams))
	}
	for _, m := range streams[0].Messages {
		c, err := decodeChange(m)
		if err != nil {
			return nil, false, fmt.Errorf("read change log: entry %s: %w", m.ID, err)
		}
		changes = append(changes, c)
	}
	return changes, len(changes) < LogReadMax, nil
}

func decodeChange(m redis.XMessage) (Change, error) {
	text := func(name string) string { s, _ := m.Values[name].(string); return s }
	c := Change{ID: m.ID, Op: text("op")}
	var err error
	if c.Stock, err = strconv.ParseInt(text("stock"), 10, 64); err != nil {
		return c, fmt.Errorf("stock: %w", err)
	}
	if ids := text("resv"); ids != "" {
		c.Reservations = strings.Split(ids, ",")
	}
	if users := text("user"); users != "" {
		for u := range strings.SplitSeq(users, ",") {
			id, err := strconv.ParseInt(u, 10, 64)
			if err != nil {
				return c, fmt.Errorf("user: %w", err)
			}
			c.Users = append(c.Users, id)
		}
	}
	return c, nil
}
