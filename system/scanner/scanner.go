// Package scanner resends reservations whose send was never confirmed
// (specification 7.7, 7.8, 7.10): the access process died after the script,
// the send timed out, or the confirmation was lost. It is the one part that
// takes responsibility for a reservation once its request is gone; no client
// retry is needed (15.10).
//
// Redis holds what is due; claiming leases it, so that several scanners share
// the work and a dead one gives it back. The message is the original one,
// with the same message_id (R7.7.3): if it had arrived after all, the inbox
// absorbs the second.
//
// Imports allowed: system/seckill, system/reservation.
package scanner

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
	Activities(ctx context.Context) ([]reservation.SKU, error)
	ClaimDue(ctx context.Context, activityID, skuID int64, limit int, b reservation.Backoff) ([]reservation.Reservation, error)
	MarkSent(ctx context.Context, activityID, skuID int64, reservationIDs []string) error
}

// Sender is the broker side. nil means confirmed; any error means unknown.
type Sender interface {
	SendOrderCreates(messages []seckill.OrderCreateMessage) error
}

// Config says how eagerly to resend.
type Config struct {
	Poll    time.Duration // between looks for what is due
	Call    time.Duration // bound of one Redis call
	Backoff reservation.Backoff
}

// ConfigDefault resends after 1, 2, 4 … 30 seconds.
var ConfigDefault = Config{Poll: 100 * time.Millisecond, Call: time.Second,
	Backoff: reservation.Backoff{Base: time.Second, Max: 30 * time.Second}}

// Validate checks the configuration.
func (c Config) Validate() error {
	switch {
	case c.Poll <= 0 || c.Call <= 0:
		return fmt.Errorf("scanner: poll %v and call %v must be positive", c.Poll, c.Call)
	case c.Backoff.Base <= 0 || c.Backoff.Max < c.Backoff.Base:
		return fmt.Errorf("scanner: backoff %v to %v is no range", c.Backoff.Base, c.Backoff.Max)
	}
	return nil
}

// Stats counts the scanner's work. Safe to read at any time.
type Stats struct {
	Claimed atomic.Int64
	Resent  atomic.Int64 // confirmed
	Unknown atomic.Int64
}

// Scanner looks for due reservations until stopped.
type Scanner struct {
	cfg    Config
	store  Store
	sender Sender
	now    func() time.Time
	log    *slog.Logger
	hit    func(seckill.FaultPoint)

	Stats Stats
}

// New returns a scanner; hit may be nil.
func New(cfg Config, store Store, sender Sender, now func() time.Time, log *slog.Logger, hit func(seckill.FaultPoint)) (*Scanner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if store == nil || sender == nil || now == nil || log == nil {
		return nil, errors.New("scanner: store, sender, now and log are required")
	}
	if hit == nil {
		hit = func(seckill.FaultPoint) {}
	}
	return &Scanner{cfg: cfg, store: store, sender: sender, now: now, log: log, hit: hit}, nil
}

// Run scans until ctx ends. Failures are logged and tried again at the next
// poll: what is due stays due.
func (s *Scanner) Run(ctx context.Context) {
	tick := time.NewTicker(s.cfg.Poll)
	defer tick.Stop()
	for {
		if err := s.Scan(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("scan failed; what is due stays due", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Scan resends everything that is due now, once.
func (s *Scanner) Scan(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, s.cfg.Call)
	skus, err := s.store.Activities(call)
	cancel()
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	var errs []error
	for _, sku := range skus {
		if err := s.scanSKU(ctx, sku); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (s *Scanner) scanSKU(ctx context.Context, sku reservation.SKU) error {
	for ctx.Err() == nil {
		call, cancel := context.WithTimeout(ctx, s.cfg.Call)
		due, err := s.store.ClaimDue(call, sku.ActivityID, sku.SKUID, reservation.BatchMax, s.cfg.Backoff)
		cancel()
		if err != nil {
			return fmt.Errorf("scan activity %d SKU %d: %w", sku.ActivityID, sku.SKUID, err)
		}
		if len(due) > 0 {
			if err := s.resend(ctx, sku, due); err != nil {
				return err
			}
		}
		if len(due) < reservation.BatchMax {
			return nil
		}
	}
	return ctx.Err()
}

func (s *Scanner) resend(ctx context.Context, sku reservation.SKU, due []reservation.Reservation) error {
	s.Stats.Claimed.Add(int64(len(due)))
	messages := make([]seckill.OrderCreateMessage, len(due))
	ids := make([]string, len(due))
	for i := range due {
		messages[i] = due[i].Message(s.now())
		ids[i] = due[i].ReservationID
	}
	s.hit(seckill.FaultScannerBeforeResend)
	if err := s.sender.SendOrderCreates(messages); err != nil {
		s.Stats.Unknown.Add(int64(len(due)))
		return fmt.Errorf("resend %d messages of activity %d SKU %d: %w", len(due), sku.ActivityID, sku.SKUID, err)
	}
	s.Stats.Resent.Add(int64(len(due)))
	s.log.Info("resent", "activity_id", sku.ActivityID, "sku_id", sku.SKUID, "messages", len(due))
	// A scanner that is told to end still notes what it sent: unnoted, another
	// would send it once more.
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Call)
	defer cancel()
	if err := s.store.MarkSent(call, sku.ActivityID, sku.SKUID, ids); err != nil {
		return fmt.Errorf("resent %d messages, but did not mark them: %w", len(due), err)
	}
	return nil
}
