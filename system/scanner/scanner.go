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
// What stays unconfirmed beyond its time is handed to a person (R7.8.5):
// PostgreSQL sets it aside through the inbox door, so that it ends once,
// whether its message arrives after all or not.
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
	PendingCounts(ctx context.Context, skus []reservation.SKU) ([]int64, error)
	Forget(ctx context.Context, skus []reservation.SKU, after time.Duration) ([]reservation.SKU, error)
	ClaimDue(ctx context.Context, activityID, skuID int64, limit int, b reservation.Backoff) ([]reservation.Reservation, error)
	MarkSent(ctx context.Context, activityID, skuID int64, reservationIDs []string) error
	NoteFailure(ctx context.Context, activityID, skuID int64, reservationIDs []string, code string) error
	SetAside(ctx context.Context, activityID, skuID int64, reservationIDs []string) error
}

// Sender is the broker side. nil means confirmed; any error means unknown.
type Sender interface {
	SendOrderCreates(messages []seckill.OrderCreateMessage) error
}

// Desk is where reservations go that no sending brings home. SetAside ends up
// to reservation.BatchMax of them and returns the ids of those it ended; when
// it succeeds the others are decided otherwise.
type Desk interface {
	SetAside(ctx context.Context, reservations []reservation.Reservation) (ended []string, err error)
}

// Config says how eagerly to resend, and for how long.
type Config struct {
	Poll    time.Duration // between looks for what is due
	Call    time.Duration // bound of one call to Redis or PostgreSQL
	Backoff reservation.Backoff
	// A reservation is handed over to a person when both are reached: it was
	// reserved HandOverAfter ago, and claimed for sending more than
	// HandOverAttempts times. The time alone would give up, untried, on what
	// waited for a scanner; the attempts alone would give up within a short
	// outage.
	HandOverAfter    time.Duration
	HandOverAttempts int64
	// ForgetAfter is how long after its end a SKU is looked after, and known
	// to the gates: until nobody asks for it any more.
	ForgetAfter time.Duration
}

// Bounds of forgetting.
const (
	forgetEvery = 10 * time.Second
	forgetMin   = time.Minute
)

// ConfigDefault resends after 1, 2, 4, 8, 10, 10 … seconds, so that what a long
// outage left is home 10 s after it, and hands over what three times its hold
// has not brought home.
var ConfigDefault = Config{Poll: 100 * time.Millisecond, Call: time.Second,
	Backoff:       reservation.Backoff{Base: time.Second, Max: 10 * time.Second},
	HandOverAfter: 3 * reservation.HoldDefault, HandOverAttempts: 8, ForgetAfter: 10 * time.Minute}

// Validate checks the configuration.
func (c Config) Validate() error {
	switch {
	case c.Poll <= 0 || c.Call <= 0:
		return fmt.Errorf("scanner: poll %v and call %v must be positive", c.Poll, c.Call)
	case c.Backoff.Base <= 0 || c.Backoff.Max < c.Backoff.Base:
		return fmt.Errorf("scanner: backoff %v to %v is no range", c.Backoff.Base, c.Backoff.Max)
	case c.HandOverAfter < c.Backoff.Max:
		return fmt.Errorf("scanner: hand over after %v: must not be below the longest backoff %v", c.HandOverAfter, c.Backoff.Max)
	case c.HandOverAttempts < 1:
		return fmt.Errorf("scanner: hand over after %d attempts: must be 1 at least", c.HandOverAttempts)
	case c.ForgetAfter < forgetMin:
		return fmt.Errorf("scanner: forget after %v: must be %v at least", c.ForgetAfter, forgetMin)
	}
	return nil
}

// Stats counts the scanner's work. Safe to read at any time.
type Stats struct {
	Claimed    atomic.Int64
	Resent     atomic.Int64 // confirmed
	Unknown    atomic.Int64
	Unreadable atomic.Int64 // claims of reservations that cannot be read
	HandedOver atomic.Int64 // set aside for a person
}

// Params of New. Store, Sender, Desk, Now and Log are required.
type Params struct {
	Config    Config
	Store     Store
	Sender    Sender
	Desk      Desk
	ErrorCode func(error) string // names a failure for last_error_code; nil: all are SEND_UNKNOWN
	Now       func() time.Time
	Log       *slog.Logger
	Hit       func(seckill.FaultPoint) // nil: none
}

// Scanner looks for due reservations until stopped.
type Scanner struct {
	cfg    Config
	store  Store
	sender Sender
	desk   Desk
	codeOf func(error) string
	now    func() time.Time
	log    *slog.Logger
	hit    func(seckill.FaultPoint)

	Stats Stats
}

// New returns a scanner; Run runs it.
func New(p Params) (*Scanner, error) {
	if err := p.Config.Validate(); err != nil {
		return nil, err
	}
	if p.Store == nil || p.Sender == nil || p.Desk == nil || p.Now == nil || p.Log == nil {
		return nil, errors.New("scanner: store, sender, desk, now and log are required")
	}
	if p.ErrorCode == nil {
		p.ErrorCode = func(error) string { return "SEND_UNKNOWN" }
	}
	if p.Hit == nil {
		p.Hit = func(seckill.FaultPoint) {}
	}
	return &Scanner{cfg: p.Config, store: p.Store, sender: p.Sender, desk: p.Desk, codeOf: p.ErrorCode, now: p.Now, log: p.Log, hit: p.Hit}, nil
}

// Run scans until ctx ends. Failures are logged and tried again at the next
// poll: what is due stays due.
func (s *Scanner) Run(ctx context.Context) {
	tick, tidy := time.NewTicker(s.cfg.Poll), time.NewTicker(forgetEvery)
	defer tick.Stop()
	defer tidy.Stop()
	for {
		if err := s.Scan(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("scan failed; what is due stays due", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-tidy.C:
			if err := s.Forget(ctx); err != nil && ctx.Err() == nil {
				s.log.Warn("cannot forget what is over", "error", err)
			}
		}
	}
}

// Forget lets go of the SKUs that are over and of which nothing is pending, so
// that scanners and gates do not look after every sale there ever was.
func (s *Scanner) Forget(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, s.cfg.Call)
	defer cancel()
	skus, err := s.store.Activities(call)
	if err != nil && !errors.Is(err, reservation.ErrUnreadable) { // which every scan tells of
		return err
	}
	forgotten, err := s.store.Forget(call, skus, s.cfg.ForgetAfter)
	for _, sku := range forgotten {
		s.log.Info("forgotten: the sale is over and nothing of it is pending", "activity_id", sku.ActivityID, "sku_id", sku.SKUID)
	}
	return err
}

// Scan resends everything that is due now, once.
func (s *Scanner) Scan(ctx context.Context) error {
	skus, err := s.waiting(ctx)
	var errs []error
	if err != nil {
		err = fmt.Errorf("scan: %w", err)
		if !errors.Is(err, reservation.ErrUnreadable) {
			return err
		}
		errs = append(errs, err)
	}
	for _, sku := range skus {
		err := s.scanSKU(ctx, sku)
		if err != nil {
			errs = append(errs, err)
		}
		if errors.Is(err, errUnconfirmed) { // the broker is the same for all
			break
		}
	}
	return errors.Join(errs...)
}

// waiting are the SKUs of which anything is pending, found in two round trips
// however many there are. Its error is Activities' or PendingCounts'.
func (s *Scanner) waiting(ctx context.Context) ([]reservation.SKU, error) {
	call, cancel := context.WithTimeout(ctx, s.cfg.Call)
	defer cancel()
	skus, err := s.store.Activities(call)
	if err != nil && !errors.Is(err, reservation.ErrUnreadable) {
		return nil, err
	}
	counts, cerr := s.store.PendingCounts(call, skus)
	if cerr != nil && !errors.Is(cerr, reservation.ErrUnreadable) {
		return nil, cerr
	}
	var waiting []reservation.SKU
	for i, n := range counts {
		if n > 0 {
			waiting = append(waiting, skus[i])
		}
	}
	return waiting, errors.Join(err, cerr)
}

func (s *Scanner) scanSKU(ctx context.Context, sku reservation.SKU) error {
	for ctx.Err() == nil {
		call, cancel := context.WithTimeout(ctx, s.cfg.Call)
		due, err := s.store.ClaimDue(call, sku.ActivityID, sku.SKUID, reservation.BatchMax, s.cfg.Backoff)
		cancel()
		if errors.Is(err, reservation.ErrUnreadable) {
			s.Stats.Unreadable.Add(1)
			s.log.Error("reservations cannot be read; a person must look", "activity_id", sku.ActivityID, "sku_id", sku.SKUID, "error", err)
		} else if err != nil {
			return fmt.Errorf("scan activity %d SKU %d: %w", sku.ActivityID, sku.SKUID, err)
		}
		s.Stats.Claimed.Add(int64(len(due)))
		full := len(due) == reservation.BatchMax
		if due, err = s.handOver(ctx, sku, due); err != nil {
			return err
		}
		if err := s.resend(ctx, sku, due); err != nil {
			return err
		}
		if !full {
			return nil
		}
	}
	return ctx.Err()
}

// errUnconfirmed is wrapped by the error of a resend that the broker did not
// confirm.
var errUnconfirmed = errors.New("not confirmed")

func (s *Scanner) resend(ctx context.Context, sku reservation.SKU, due []reservation.Reservation) error {
	if len(due) == 0 {
		return nil
	}
	messages := make([]seckill.OrderCreateMessage, len(due))
	ids := idsOf(due)
	for i := range due {
		messages[i] = due[i].Message(s.now())
	}
	s.hit(seckill.FaultScannerBeforeResend)
	if err := s.sender.SendOrderCreates(messages); err != nil {
		s.Stats.Unknown.Add(int64(len(due)))
		err = fmt.Errorf("resend %d messages of activity %d SKU %d: %w: %w", len(due), sku.ActivityID, sku.SKUID, errUnconfirmed, err)
		return errors.Join(err, s.note(ctx, func(ctx context.Context) error {
			return s.store.NoteFailure(ctx, sku.ActivityID, sku.SKUID, ids, s.codeOf(err))
		}))
	}
	s.Stats.Resent.Add(int64(len(due)))
	s.log.Info("resent", "activity_id", sku.ActivityID, "sku_id", sku.SKUID, "messages", len(due))
	if err := s.note(ctx, func(ctx context.Context) error {
		return s.store.MarkSent(ctx, sku.ActivityID, sku.SKUID, ids)
	}); err != nil {
		return fmt.Errorf("resent %d messages, but did not mark them: %w", len(due), err)
	}
	return nil
}

// note makes a note of what was done. A scanner that is told to end still does:
// unnoted, another would do it once more.
func (s *Scanner) note(ctx context.Context, write func(context.Context) error) error {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Call)
	defer cancel()
	return write(call)
}

func idsOf(reservations []reservation.Reservation) []string {
	ids := make([]string, len(reservations))
	for i := range reservations {
		ids[i] = reservations[i].ReservationID
	}
	return ids
}
