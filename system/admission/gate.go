package admission

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hotsku/hotsku/system/reservation"
)

// GateTrust is for how long a gate may refuse on what it last read of the
// change log. Returned stock becomes reservable later than that
// (reservation.ReopenDefault), so no gate refuses what another sells.
const GateTrust = 200 * time.Millisecond

// GateConfig says how often the gate reads.
type GateConfig struct {
	Poll     time.Duration // between two reads of a SKU's log
	Discover time.Duration // between two looks for new activities
	Read     time.Duration // bound of one read
}

// GateConfigDefault keeps knowledge well inside GateTrust.
var GateConfigDefault = GateConfig{Poll: 20 * time.Millisecond, Discover: 500 * time.Millisecond, Read: 150 * time.Millisecond}

// ChangeLog is where the gate learns of the sale.
type ChangeLog interface {
	Activities(ctx context.Context) ([]reservation.SKU, error)
	ReadLog(ctx context.Context, activityID, skuID int64, after string) ([]reservation.Change, bool, error)
}

// Gate refuses requests for SKUs it knows to be sold out. Members, who are
// all who ever held a reservation, are never refused: theirs is an exact
// answer only Redis has. Refuses is safe for concurrent use and lock-free.
type Gate struct {
	cfg   GateConfig
	log   ChangeLog
	slog  *slog.Logger
	start time.Time // monotonic reference
	skus  atomic.Pointer[map[reservation.SKU]*skuGate]
}

// skuGate is what is known of one SKU. One writer, Run.
type skuGate struct {
	soldOut   atomic.Bool
	confirmed atomic.Int64 // ns since Gate.start at which the last read that reached the tail began; 0: never
	members   *memberSet
	position  string // in the log; writer's
}

// NewGate returns a gate that knows nothing until Run has read.
func NewGate(cfg GateConfig, log ChangeLog, logger *slog.Logger) *Gate {
	g := &Gate{cfg: cfg, log: log, slog: logger, start: time.Now()}
	g.skus.Store(&map[reservation.SKU]*skuGate{})
	return g
}

// Refuses says that the SKU was sold out within the last GateTrust and the
// user never held a reservation of it. False means: ask Redis.
func (g *Gate) Refuses(activityID, skuID, userID int64) bool {
	s := (*g.skus.Load())[reservation.SKU{ActivityID: activityID, SKUID: skuID}]
	if s == nil || !s.soldOut.Load() {
		return false
	}
	confirmed := s.confirmed.Load()
	if confirmed == 0 || int64(time.Since(g.start))-confirmed >= int64(GateTrust) {
		return false
	}
	return !s.members.has(userID)
}

// Run reads the change logs until ctx ends. A read that fails lets the
// knowledge age: the gate opens by itself.
func (g *Gate) Run(ctx context.Context) {
	poll := time.NewTicker(g.cfg.Poll)
	defer poll.Stop()
	var discovered time.Time
	for {
		if now := time.Now(); now.Sub(discovered) >= g.cfg.Discover {
			if err := g.discover(ctx); err != nil && ctx.Err() == nil {
				g.slog.Warn("gate cannot list activities", "error", err)
			}
			discovered = now
		}
		for sku, s := range *g.skus.Load() {
			if err := g.follow(ctx, sku, s); err != nil && ctx.Err() == nil {
				g.slog.Warn("gate cannot read the change log; it opens when its knowledge is too old",
					"activity_id", sku.ActivityID, "sku_id", sku.SKUID, "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		}
	}
}

func (g *Gate) discover(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Read)
	defer cancel()
	skus, err := g.log.Activities(ctx)
	if err != nil {
		return err
	}
	known := *g.skus.Load()
	var grown map[reservation.SKU]*skuGate
	for _, sku := range skus {
		if known[sku] != nil {
			continue
		}
		if grown == nil {
			grown = make(map[reservation.SKU]*skuGate, len(known)+1)
			for k, v := range known {
				grown[k] = v
			}
		}
		grown[sku] = &skuGate{members: newMemberSet(), position: reservation.LogStart}
	}
	if grown != nil {
		g.skus.Store(&grown)
	}
	return nil
}

// follow reads a SKU's log to its tail.
func (g *Gate) follow(ctx context.Context, sku reservation.SKU, s *skuGate) error {
	for {
		began := int64(time.Since(g.start))
		readCtx, cancel := context.WithTimeout(ctx, g.cfg.Read)
		changes, atTail, err := g.log.ReadLog(readCtx, sku.ActivityID, sku.SKUID, s.position)
		cancel()
		if err != nil {
			return fmt.Errorf("follow change log: %w", err)
		}
		for _, c := range changes {
			for _, user := range c.Users {
				s.members.add(user) // before the gate may close on this entry
			}
			s.soldOut.Store(c.Stock == 0)
			s.position = c.ID
		}
		if atTail {
			s.confirmed.Store(began)
			return nil
		}
	}
}
