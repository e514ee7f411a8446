package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

const (
	scanCount   = 1000 // keys looked at by one SCAN
	pipelineMax = 500  // commands of one pipeline
	logPage     = 1000 // entries of one XRANGE
)

func (s *Stores) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.cfg.CallTimeout)
}

// pending counts reservations without a confirmed message.
func (s *Stores) pending(ctx context.Context) (int64, error) {
	ctx, cancel := s.call(ctx)
	defer cancel()
	total := int64(0)
	for _, a := range s.cfg.Activities {
		n, err := s.redis.ZCard(ctx, seckill.KeysOf(a.ActivityID, a.SKUID).Pending()).Result()
		if err != nil {
			return 0, fmt.Errorf("count pending reservations: %w", err)
		}
		total += n
	}
	return total, nil
}

func (s *Stores) redisVersion(ctx context.Context) (string, error) {
	ctx, cancel := s.call(ctx)
	defer cancel()
	info, err := s.redis.Info(ctx, "server").Result()
	if err != nil {
		return "", fmt.Errorf("ask Redis for its version: %w", err)
	}
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, "redis_version:"); ok {
			return strings.TrimSpace(v), nil
		}
	}
	return "", errors.New("no redis_version in the answer to INFO")
}

func (s *Stores) takeRedis(ctx context.Context, dir rundir.Dir) error {
	return errors.Join(
		writeRows(dir.RedisKeys(), func(w *rundir.RowWriter) error {
			for _, a := range s.cfg.Activities {
				if err := s.copyKeys(ctx, seckill.KeysOf(a.ActivityID, a.SKUID), w); err != nil {
					return err
				}
			}
			return nil
		}),
		writeRows(dir.RedisLog(), func(w *rundir.RowWriter) error {
			for _, a := range s.cfg.Activities {
				if err := s.copyLog(ctx, a, w); err != nil {
					return err
				}
			}
			return nil
		}))
}

// writeRows closes the file only if copy succeeded: a snapshot that failed
// halfway reads as truncated.
func writeRows(path string, copy func(*rundir.RowWriter) error) error {
	w, err := rundir.CreateRows(path)
	if err != nil {
		return err
	}
	if err := copy(w); err != nil {
		w.Abort()
		return err
	}
	return w.Close()
}

func (s *Stores) copyKeys(ctx context.Context, keys seckill.Keys, w *rundir.RowWriter) error {
	seen := map[string]struct{}{} // SCAN may give a key twice
	var cursor uint64
	for {
		call, cancel := s.call(ctx)
		names, next, err := s.redis.Scan(call, cursor, keys.Prefix()+"*", scanCount).Result()
		cancel()
		if err != nil {
			return fmt.Errorf("scan %s*: %w", keys.Prefix(), err)
		}
		fresh := names[:0]
		for _, name := range names {
			if _, dup := seen[name]; !dup && name != keys.Log() {
				seen[name] = struct{}{}
				fresh = append(fresh, name)
			}
		}
		for len(fresh) > 0 {
			n := min(len(fresh), pipelineMax)
			if err := s.copyValues(ctx, fresh[:n], w); err != nil {
				return err
			}
			fresh = fresh[n:]
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// copyValues writes the keys with type, expiry and value. A key that ended
// between two calls is left out.
func (s *Stores) copyValues(ctx context.Context, names []string, w *rundir.RowWriter) error {
	ctx, cancel := s.call(ctx)
	defer cancel()
	types := make([]*redis.StatusCmd, len(names))
	expiries := make([]*redis.DurationCmd, len(names))
	if _, err := s.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, name := range names {
			types[i], expiries[i] = p.Type(ctx, name), p.ExpireTime(ctx, name)
		}
		return nil
	}); err != nil {
		return fmt.Errorf("read types: %w", err)
	}
	values := make([]redis.Cmder, len(names))
	if _, err := s.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, name := range names {
			switch types[i].Val() {
			case "string":
				values[i] = p.Get(ctx, name)
			case "hash":
				values[i] = p.HGetAll(ctx, name)
			case "zset":
				values[i] = p.ZRangeWithScores(ctx, name, 0, -1)
			case "set":
				values[i] = p.SMembers(ctx, name)
			}
		}
		return nil
	}); err != nil && !errors.Is(err, redis.Nil) {
		return fmt.Errorf("read values: %w", err)
	}
	for i, name := range names {
		key := rundir.RedisKey{Key: name, Type: types[i].Val(), ExpireAt: -1}
		if d := expiries[i].Val(); d > 0 {
			key.ExpireAt = int64(d / time.Second)
		}
		switch v := values[i].(type) {
		case nil:
			if key.Type == "none" {
				continue
			}
			return fmt.Errorf("key %s has the unexpected type %s", name, key.Type)
		case *redis.StringCmd:
			if errors.Is(v.Err(), redis.Nil) {
				continue
			}
			key.String = v.Val()
		case *redis.MapStringStringCmd:
			key.Hash = v.Val()
		case *redis.StringSliceCmd:
			key.Set = v.Val()
		case *redis.ZSliceCmd:
			key.ZSet = map[string]float64{}
			for _, z := range v.Val() {
				member, _ := z.Member.(string) // members are strings on the wire
				key.ZSet[member] = z.Score
			}
		}
		if err := w.Write(key); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stores) copyLog(ctx context.Context, a rundir.Activity, w *rundir.RowWriter) error {
	key, from := seckill.KeysOf(a.ActivityID, a.SKUID).Log(), "-"
	for {
		call, cancel := s.call(ctx)
		page, err := s.redis.XRangeN(call, key, from, "+", logPage).Result()
		cancel()
		if err != nil {
			return fmt.Errorf("read change log %s: %w", key, err)
		}
		for _, m := range page {
			entry, err := logEntry(a, m)
			if err != nil {
				return fmt.Errorf("change log %s entry %s: %w", key, m.ID, err)
			}
			if err := w.Write(entry); err != nil {
				return err
			}
		}
		if len(page) < logPage {
			return nil
		}
		from = "(" + page[len(page)-1].ID
	}
}

// logEntry reads one entry as the scripts write it.
func logEntry(a rundir.Activity, m redis.XMessage) (rundir.LogEntry, error) {
	e := rundir.LogEntry{ActivityID: a.ActivityID, SKUID: a.SKUID, ID: m.ID, Reservations: []string{}, Users: []int64{}}
	text := func(field string) string {
		v, _ := m.Values[field].(string) // absent reads as empty
		return v
	}
	var err error
	if e.Op = text("op"); e.Op == "" {
		return e, errors.New("has no op")
	}
	if e.Stock, err = strconv.ParseInt(text("stock"), 10, 64); err != nil {
		return e, fmt.Errorf("stock: %w", err)
	}
	if e.AtUS, err = strconv.ParseInt(text("at"), 10, 64); err != nil {
		return e, fmt.Errorf("at: %w", err)
	}
	if v := text("open_at"); v != "" {
		if e.OpenAtUS, err = strconv.ParseInt(v, 10, 64); err != nil {
			return e, fmt.Errorf("open_at: %w", err)
		}
	}
	if v := text("resv"); v != "" {
		e.Reservations = strings.Split(v, ",")
	}
	if v := text("user"); v != "" {
		for u := range strings.SplitSeq(v, ",") {
			id, err := strconv.ParseInt(u, 10, 64)
			if err != nil {
				return e, fmt.Errorf("user: %w", err)
			}
			e.Users = append(e.Users, id)
		}
	}
	return e, nil
}
