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

// Books is a SKU's account at one moment, as an auditor needs it.
type Books struct {
	Now      time.Time // Redis TIME
	Known    bool      // the SKU was warmed here; if not, all else is zero
	Status   seckill.ActivityStatus
	Stock    int64
	LogStock int64  // what the change log's last entry says the stock is
	LogTail  string // its id
	Pending  int64  // reservations without a confirmed message
}

// Books reads a SKU's account in one transaction.
func (s *Store) Books(ctx context.Context, activityID, skuID int64) (Books, error) {
	k := seckill.KeysOf(activityID, skuID)
	var now *redis.TimeCmd
	var status, stock *redis.StringCmd
	var tail *redis.XMessageSliceCmd
	var pending *redis.IntCmd
	_, err := s.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		now = p.Time(ctx)
		status = p.HGet(ctx, k.Meta(), "status")
		stock = p.Get(ctx, k.Stock())
		tail = p.XRevRangeN(ctx, k.Log(), "+", "-", 1)
		pending = p.ZCard(ctx, k.Pending())
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return Books{}, wrap("read books", err)
	}
	b := Books{Now: now.Val(), Status: seckill.ActivityStatus(status.Val()), Pending: pending.Val()}
	if errors.Is(status.Err(), redis.Nil) || errors.Is(stock.Err(), redis.Nil) || len(tail.Val()) == 0 {
		return Books{Now: b.Now}, nil
	}
	if b.Stock, err = stock.Int64(); err != nil {
		return Books{}, fmt.Errorf("read books: stock: %w", err)
	}
	last, err := decodeChange(tail.Val()[0])
	if err != nil {
		return Books{}, fmt.Errorf("read books: change log entry %s: %w", tail.Val()[0].ID, err)
	}
	b.Known, b.LogStock, b.LogTail = true, last.Stock, last.ID
	return b, nil
}

// LookupReservations returns those of the reservations that Redis holds, by
// id. One that cannot be read is an error.
func (s *Store) LookupReservations(ctx context.Context, activityID, skuID int64, ids []string) (map[string]Reservation, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	k := seckill.KeysOf(activityID, skuID)
	replies := make([]*redis.MapStringStringCmd, len(ids))
	_, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			replies[i] = p.HGetAll(ctx, k.Reservation(id))
		}
		return nil
	})
	if err != nil {
		return nil, wrap("look up reservations", err)
	}
	found := make(map[string]Reservation, len(ids))
	for i, id := range ids {
		if fields := replies[i].Val(); len(fields) > 0 {
			r, err := decodeReservation(fields)
			if err != nil {
				return nil, fmt.Errorf("look up reservation %s: %w", id, err)
			}
			found[id] = r
		}
	}
	return found, nil
}

// Replication is what the server says about itself and its replicas.
type Replication struct {
	RunID    string // changes when the server is restarted or another takes over
	Master   bool
	Replicas int
	LagBytes int64         // of the replica farthest behind
	Lag      time.Duration // since the longest silent replica was heard of
}

// Replication asks the server.
func (s *Store) Replication(ctx context.Context) (Replication, error) {
	var r Replication
	var server, replication *redis.StringCmd
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		server, replication = p.Info(ctx, "server"), p.Info(ctx, "replication")
		return nil
	}); err != nil {
		return r, wrap("read replication", err)
	}
	written := int64(0)
	var replicas []string
	for line := range strings.Lines(server.Val() + replication.Val()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case name == "run_id":
			r.RunID = value
		case name == "role":
			r.Master = value == "master"
		case name == "master_repl_offset":
			written, _ = strconv.ParseInt(value, 10, 64) // a number by Redis' own word
		case strings.HasPrefix(name, "slave") && strings.Contains(value, "offset="):
			replicas = append(replicas, value)
		}
	}
	r.Replicas = len(replicas)
	for _, text := range replicas { // ip=…,port=…,state=online,offset=…,lag=…
		for field := range strings.SplitSeq(text, ",") {
			name, value, _ := strings.Cut(field, "=")
			n, _ := strconv.ParseInt(value, 10, 64)
			switch name {
			case "offset":
				r.LagBytes = max(r.LagBytes, written-n)
			case "lag":
				r.Lag = max(r.Lag, time.Duration(n)*time.Second)
			}
		}
	}
	return r, nil
}
