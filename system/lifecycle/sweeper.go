package lifecycle

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hotsku/hotsku/system/pause"
)

//go:embed sql/sweep_lease.sql
var sweepLease string

// SweeperConfig says how the sweeper looks for overdue orders.
type SweeperConfig struct {
	// Every is the time between two looks that found nothing.
	Every time.Duration
	// Grace is how long after its due time an order is left to its check.
	Grace time.Duration
	// Lease is how long the orders a sweeper took stay its own: those of one
	// that died rest until then.
	Lease time.Duration
	// Batch is how many orders are taken at once, at most BatchMax.
	Batch int
}

// SweeperConfigDefault leaves the work to the checks and finds what they
// missed within seconds.
var SweeperConfigDefault = SweeperConfig{Every: time.Second, Grace: 5 * time.Second, Lease: 30 * time.Second, Batch: BatchMax}

// Validate says what is wrong, in one line.
func (c SweeperConfig) Validate() error {
	switch {
	case c.Every < 10*time.Millisecond || c.Every > time.Hour:
		return fmt.Errorf("sweeper: every %v: must be 10ms to 1h", c.Every)
	case c.Grace < 0 || c.Grace > time.Hour:
		return fmt.Errorf("sweeper: grace %v: must be 0 to 1h", c.Grace)
	case c.Lease < time.Second || c.Lease > time.Hour:
		return fmt.Errorf("sweeper: lease %v: must be 1s to 1h", c.Lease)
	case c.Batch < 1 || c.Batch > BatchMax:
		return fmt.Errorf("sweeper: batch %d: must be 1 to %d", c.Batch, BatchMax)
	}
	return nil
}

// Sweeper expires overdue orders that no check reminded of. Any number may
// run: they share the work by leases kept in the orders.
type Sweeper struct {
	cfg     SweeperConfig
	decider *Decider
	log     *slog.Logger

	Expired atomic.Int64
	Fails   atomic.Int64 // looks that failed
}

// NewSweeper returns a sweeper.
func NewSweeper(cfg SweeperConfig, d *Decider, log *slog.Logger) (*Sweeper, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if d == nil || log == nil {
		return nil, errors.New("sweeper: decider and log are required")
	}
	return &Sweeper{cfg: cfg, decider: d, log: log}, nil
}

// Run sweeps until ctx ends; failures are waited out.
func (s *Sweeper) Run(ctx context.Context) {
	delay := backoffMin
	for ctx.Err() == nil {
		taken, err := s.Sweep(ctx)
		next := s.cfg.Every
		switch {
		case err != nil:
			s.Fails.Add(1)
			s.log.Warn("sweep failed; trying again", "error", err, "delay", delay)
			next, delay = delay, min(2*delay, max(backoffMax, s.cfg.Every))
		case taken == s.cfg.Batch:
			continue // there may be more
		default:
			delay = backoffMin
		}
		_ = pause.For(ctx, next) // the loop looks at ctx
	}
}

// Sweep takes one batch of overdue orders and expires them. It returns how
// many it took.
func (s *Sweeper) Sweep(ctx context.Context) (taken int, err error) {
	ids, err := s.lease(ctx)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	n, err := s.decider.Expire(ctx, ids)
	s.Expired.Add(int64(n))
	return len(ids), err
}

func (s *Sweeper) lease(ctx context.Context) ([]string, error) {
	// Not given up by a drain: orders leased unseen would rest.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), s.decider.cfg.TxTimeout)
	defer stop()
	rows, _ := s.decider.cfg.Pool.Query(ctx, sweepLease, s.cfg.Batch, s.cfg.Grace, s.cfg.Lease)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("lease overdue orders: %w", err)
	}
	return ids, nil
}
