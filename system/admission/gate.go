package admission

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hotsku/hotsku/system/reservation"
)

// GateTrust is for how long a gate may refuse on what it last read of the
// change log. Returned stock becomes reservable later than that
// (reservation.ReopenDefault), so no gate refuses what another sells.
const GateTrust = 200 * time.Millisecond

// gateForget is for how long an SKU must be missing in the index before the
// gate lets go of it: an index that was lost for a moment opens no gate.
const gateForget = time.Minute

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
	blind bool // the last look for activities failed; Run's
}

// skuGate is what is known of one SKU. One writer, Run.
type skuGate struct {
	soldOut   atomic.Bool
	confirmed atomic.Int64 // ns since Gate.start at which the last read that reached the tail began; 0: never
	members   *memberSet
	position  string    // of the last entry applied; writer's
	blind     bool      // the last read failed; writer's
	missing   time.Time // since when the index does not list it; zero: it does; writer's
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

// Knows says whether the SKU was ever warmed, as far as the gate has seen.
func (g *Gate) Knows(activityID, skuID int64) bool {
	return (*g.skus.Load())[reservation.SKU{ActivityID: activityID, SKUID: skuID}] != nil
}

// Run reads the change logs until ctx ends. A read that fails lets the
// knowledge age: the gate opens by itself.
func (g *Gate) Run(ctx context.Context) {
	poll := time.NewTicker(g.cfg.Poll)
	defer poll.Stop()
	var discovered time.Time
	for {
		if now := time.Now(); now.Sub(discovered) >= g.cfg.Discover {
			err := g.discover(ctx, now)
			if err != nil && ctx.Err() == nil && !g.blind {
				g.slog.Warn("gate cannot list activities", "error", err)
			}
			g.blind, discovered = err != nil, now
		}
		for sku, s := range *g.skus.Load() {
			err := g.follow(ctx, sku, s)
			if err != nil && ctx.Err() == nil && !s.blind { // once an outage, not fifty times a second
				g.slog.Warn("gate cannot read the change log; it opens when its knowledge is too old",
					"activity_id", sku.ActivityID, "sku_id", sku.SKUID, "error", err)
			}
			s.blind = err != nil
		}
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		}
	}
}

// discover takes up what the index lists, and lets go of what it has not
// listed for gateForget: a sale that is over.
func (g *Gate) discover(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Read)
	defer cancel()
	skus, err := g.log.Activities(ctx)
	if err != nil && !errors.Is(err, reservation.ErrUnreadable) {
		return err
	}
	known := *g.skus.Load()
	next := make(map[reservation.SKU]*skuGate, len(known)+1)
	changed := false
	for _, sku := range skus {
		s := known[sku]
		if s == nil {
			s, changed = &skuGate{members: newMemberSet(), position: reservation.LogStart}, true
		}
		s.missing, next[sku] = time.Time{}, s
	}
	for sku, s := range known {
		if next[sku] != nil {
			continue
		}
		if s.missing.IsZero() {
			s.missing = now
		}
		if now.Sub(s.missing) >= gateForget {
			changed = true
			continue
		}
		next[sku] = s
	}
	if changed {
		g.skus.Store(&next)
	}
	return err
}

// follow reads a SKU's log to its tail. It reads the last applied entry once
// more: a log without it is not the log that was read (Redis lost its data,
// or came back with older data), and what was learnt of that one is void.
func (g *Gate) follow(ctx context.Context, sku reservation.SKU, s *skuGate) error {
	for {
		after, err := before(s.position)
		if err != nil {
			return fmt.Errorf("follow change log: %w", err)
		}
		began := int64(time.Since(g.start))
		readCtx, cancel := context.WithTimeout(ctx, g.cfg.Read)
		changes, atTail, err := g.log.ReadLog(readCtx, sku.ActivityID, sku.SKUID, after)
		cancel()
		if err != nil {
			return fmt.Errorf("follow change log: %w", err)
		}
		if s.position != reservation.LogStart {
			if len(changes) == 0 || changes[0].ID != s.position {
				g.slog.Warn("the change log is not the one the gate knew; reading it anew",
					"activity_id", sku.ActivityID, "sku_id", sku.SKUID, "position", s.position)
				s.forget()
				continue
			}
			changes = changes[1:]
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

// forget opens the gate until the log was read to its tail again. Members
// stay: one too many only takes the way to Redis.
func (s *skuGate) forget() {
	s.confirmed.Store(0)
	s.soldOut.Store(false)
	s.position = reservation.LogStart
}

// before is the position right before an entry of the log, so that a read
// after it begins with that entry; LogStart itself has none before it.
func before(position string) (string, error) {
	if position == reservation.LogStart {
		return position, nil
	}
	ms, seq, _ := strings.Cut(position, "-")
	m, merr := strconv.ParseUint(ms, 10, 64)
	n, nerr := strconv.ParseUint(seq, 10, 64)
	switch {
	case merr != nil || nerr != nil || m == 0 && n == 0:
		return "", fmt.Errorf("position %q is no stream id", position)
	case n > 0:
		return ms + "-" + strconv.FormatUint(n-1, 10), nil
	}
	return strconv.FormatUint(m-1, 10) + "-18446744073709551615", nil // the highest sequence number
}
