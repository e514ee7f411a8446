package valve

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

// SpreadMax is how long after a figure could be measured over its limit every
// watcher has closed: the publisher's interval and call, the watcher's
// interval, and what is left for the way.
const SpreadMax = time.Second

// WatcherConfig says how often a watcher reads, and what it bears.
type WatcherConfig struct {
	Limits Limits
	Poll   time.Duration // between two reads
	Call   time.Duration // bound of one read
	// RedisDown is for how long no read may have succeeded before the watcher
	// closes: Redis does not answer, and each request would find out for
	// itself, slowly.
	RedisDown time.Duration
}

// WatcherConfigDefault reads five times a second.
var WatcherConfigDefault = WatcherConfig{Limits: LimitsDefault, Poll: 200 * time.Millisecond, Call: time.Second, RedisDown: 2 * time.Second}

// Validate checks the bounds.
func (c WatcherConfig) Validate() error {
	switch {
	case c.Poll <= 0 || c.Poll > SpreadMax/4:
		return fmt.Errorf("valves: poll %v: must be positive and at most %v", c.Poll, SpreadMax/4)
	case c.Call <= 0 || c.RedisDown < c.Call:
		return fmt.Errorf("valves: read bound %v must be positive, and Redis' time %v not below it", c.Call, c.RedisDown)
	}
	if err := c.Limits.Validate(); err != nil {
		return fmt.Errorf("valves: %w", err)
	}
	return nil
}

// Board is where figures are posted.
type Board interface {
	Signals(ctx context.Context) ([]reservation.Signal, error)
}

// Watcher says whether reservations may be made. Closed is safe for
// concurrent use, and one atomic load.
type Watcher struct {
	cfg   WatcherConfig
	board Board
	log   *slog.Logger
	// Gauges hold what was read last and which signals are over, for metrics.
	Gauges map[Signal]*Gauge

	closed atomic.Pointer[string]
	reason string    // what closed holds; Run's
	read   time.Time // when the last read that succeeded began
}

// Gauge is what a watcher knows of a signal.
type Gauge struct {
	Value atomic.Int64 // as posted last
	Over  atomic.Int64 // 1: it stops reservations

	posted time.Time // when, by this process' clock; Run's
}

// NewWatcher returns an open watcher that knows nothing yet: Limits.Stale
// runs from now.
func NewWatcher(cfg WatcherConfig, board Board, log *slog.Logger) (*Watcher, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if board == nil || log == nil {
		return nil, errors.New("valves: board and log are required")
	}
	w := &Watcher{cfg: cfg, board: board, log: log, Gauges: map[Signal]*Gauge{}}
	now := time.Now()
	for _, s := range Signals() {
		w.Gauges[s] = &Gauge{posted: now}
	}
	w.read = now
	w.closed.Store(new(string))
	return w, nil
}

// Closed is the reason why no reservation may be made now, or "".
func (w *Watcher) Closed() string { return *w.closed.Load() }

// Run reads until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	tick := time.NewTicker(w.cfg.Poll)
	defer tick.Stop()
	for {
		w.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (w *Watcher) look(ctx context.Context) {
	began := time.Now()
	call, cancel := context.WithTimeout(ctx, w.cfg.Call)
	posted, err := w.board.Signals(call)
	cancel()
	if ctx.Err() != nil {
		return
	}
	now := time.Now()
	reason := ""
	if err == nil {
		w.read = began
	} else if now.Sub(w.read) >= w.cfg.RedisDown {
		reason = seckill.ReasonRedis
	}
	for _, p := range posted {
		if g := w.Gauges[Signal(p.Name)]; g != nil { // a newer build may post others
			g.Value.Store(p.Value)
			g.posted = now.Add(-p.Age)
		}
	}
	for _, s := range Signals() {
		switch why := w.judge(s, now); {
		case why == seckill.ReasonOrderLag && reason != seckill.ReasonRedis, reason == "":
			reason = why
		}
	}
	if reason == w.reason {
		return
	}
	if reason == seckill.ReasonRedis {
		w.log.Error("valve closed: no reservations are made", "reason", reason, "error", err)
	}
	w.reason = reason
	w.closed.Store(&reason)
}

// judge is the reason why the signal stops reservations, or "".
func (w *Watcher) judge(s Signal, now time.Time) string {
	g, limit := w.Gauges[s], w.cfg.Limits.of(s)
	was := g.Over.Load() == 1
	value := g.Value.Load()
	missing := now.Sub(g.posted)
	reason := ""
	switch {
	case missing >= w.cfg.Limits.Stale:
		reason = seckill.ReasonOrderLagUnknown
	case value > limit, was && float64(value) > float64(limit)*w.cfg.Limits.Reopen:
		reason = seckill.ReasonOrderLag
	}
	over := reason != ""
	if over == was {
		return reason
	}
	if over {
		g.Over.Store(1)
		w.log.Error("valve closed: no reservations are made", "reason", reason, "signal", string(s),
			"value", value, "limit", limit, "posted_before", missing)
	} else {
		g.Over.Store(0)
		w.log.Info("valve opened for a signal", "signal", string(s), "value", value, "limit", limit)
	}
	return reason
}
