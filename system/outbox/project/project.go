// Package project writes decisions of PostgreSQL into Redis: the projector
// consumes the outbox's events and applies each, once by the reservation's
// own record of it, however often it is delivered (invariant I9). It is the
// only way a decision reaches Redis, so that nothing says an order exists
// before its COMMIT (I8).
//
// Imports allowed: system/seckill, system/reservation.
package project

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// Store is the Redis side.
type Store interface {
	Apply(ctx context.Context, activityID, skuID int64, events []seckill.Event) (reservation.Applied, error)
}

// Config bounds the work.
type Config struct {
	Call       time.Duration // one Redis call
	BackoffMin time.Duration // between tries while Redis is down
	BackoffMax time.Duration
}

// ConfigDefault waits an outage out without hammering.
var ConfigDefault = Config{Call: time.Second, BackoffMin: 50 * time.Millisecond, BackoffMax: 2 * time.Second}

// Stats counts the projector's work. Safe to read at any time.
type Stats struct {
	Applied    atomic.Int64
	Repeated   atomic.Int64 // applied before
	Missing    atomic.Int64 // of a reservation Redis does not hold
	Unreadable atomic.Int64
	Spoilt     atomic.Int64 // of a SKU whose keys in Redis are not the system's writing
}

// Projector applies events.
type Projector struct {
	cfg   Config
	store Store
	log   *slog.Logger
	hit   func(seckill.FaultPoint)

	Stats Stats
}

// New returns a projector; hit may be nil.
func New(cfg Config, store Store, log *slog.Logger, hit func(seckill.FaultPoint)) (*Projector, error) {
	if cfg.Call <= 0 || cfg.BackoffMin <= 0 || cfg.BackoffMax < cfg.BackoffMin {
		return nil, fmt.Errorf("projector: call %v must be positive and backoff %v to %v a range", cfg.Call, cfg.BackoffMin, cfg.BackoffMax)
	}
	if store == nil || log == nil {
		return nil, errors.New("projector: store and log are required")
	}
	if hit == nil {
		hit = func(seckill.FaultPoint) {}
	}
	return &Projector{cfg: cfg, store: store, log: log, hit: hit}, nil
}

// Handle applies a batch of event bodies; nil acknowledges them. While Redis
// is down it waits and tries again; it returns an error only when ctx ends.
// Events of a SKU whose keys are spoilt are left to reconcile.
func (p *Projector) Handle(ctx context.Context, bodies [][]byte) error {
	bySKU := make(map[reservation.SKU][]seckill.Event, 1)
	for _, body := range bodies {
		e, err := seckill.DecodeEvent(body)
		if err != nil {
			// The outbox row remains in PostgreSQL, so nothing is lost; a
			// repeat cannot mend the body.
			p.Stats.Unreadable.Add(1)
			p.log.Error("event cannot be applied", "error", err, "bytes", len(body)) // not the body: it names a user
			continue
		}
		sku := reservation.SKU{ActivityID: e.ActivityID, SKUID: e.SKUID}
		bySKU[sku] = append(bySKU[sku], e)
	}
	for sku, events := range bySKU {
		for start := 0; start < len(events); start += reservation.BatchMax {
			part := events[start:min(start+reservation.BatchMax, len(events))]
			if err := p.apply(ctx, sku, part); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Projector) apply(ctx context.Context, sku reservation.SKU, events []seckill.Event) error {
	backoff := p.cfg.BackoffMin
	for {
		p.hit(seckill.FaultProjectorBeforeWrite)
		call, cancel := context.WithTimeout(ctx, p.cfg.Call)
		applied, err := p.store.Apply(call, sku.ActivityID, sku.SKUID, events)
		cancel()
		if err == nil {
			p.Stats.Applied.Add(int64(applied.Changed))
			p.Stats.Repeated.Add(int64(applied.Known))
			if applied.Missing > 0 {
				p.Stats.Missing.Add(int64(applied.Missing))
				p.log.Warn("redis does not hold reservations that were decided", "activity_id", sku.ActivityID,
					"sku_id", sku.SKUID, "missing", applied.Missing)
			}
			return nil
		}
		if errors.Is(err, reservation.ErrUnreadable) {
			// A repeat cannot mend the keys, and would hold up all other SKUs.
			// Reconcile publishes what stays unapplied again.
			p.Stats.Spoilt.Add(int64(len(events)))
			p.log.Error("keys of a SKU cannot be read; a person must look", "activity_id", sku.ActivityID, "sku_id", sku.SKUID,
				"events", len(events), "error", err)
			return nil
		}
		p.log.Warn("cannot apply events; waiting", "error", err, "events", len(events), "backoff", backoff)
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(backoff):
		}
		backoff = min(2*backoff, p.cfg.BackoffMax)
	}
}
