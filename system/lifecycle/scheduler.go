package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hotsku/hotsku/system/seckill"
)

// EventSender hands the outbox's events to the broker.
type EventSender interface {
	SendEvents(ctx context.Context, events []seckill.Event) error
}

// CheckSender hands the broker a check that it is to deliver after some time.
// nil means that the broker confirmed it.
type CheckSender interface {
	SendExpiryCheck(ctx context.Context, c seckill.ExpiryCheck, after time.Duration) error
}

// spread is how far the due times of the orders of one check may lie apart:
// the check comes when the last is due.
const spread = 2 * time.Second

// Scheduler sends the outbox's events and, with them, the checks that remind
// of the due times of new orders. A check that could not be sent is counted
// and left to the sweeper: the broker's trouble with it must not hold up the
// events. Safe for concurrent use if its senders are.
type Scheduler struct {
	events EventSender
	checks CheckSender
	now    func() time.Time
	log    *slog.Logger

	Scheduled atomic.Int64 // orders, repeats included
	Fails     atomic.Int64 // checks not confirmed
}

// NewScheduler returns a scheduler. now says how long it is until an order is
// due; PostgreSQL's clock decides when it is.
func NewScheduler(events EventSender, checks CheckSender, now func() time.Time, log *slog.Logger) (*Scheduler, error) {
	if events == nil || checks == nil || now == nil || log == nil {
		return nil, errors.New("lifecycle scheduler: events, checks, clock and log are required")
	}
	return &Scheduler{events: events, checks: checks, now: now, log: log}, nil
}

// SendEvents sends the events; its error is theirs alone.
func (s *Scheduler) SendEvents(ctx context.Context, events []seckill.Event) error {
	if err := s.events.SendEvents(ctx, events); err != nil {
		return err
	}
	for _, c := range checksOf(events) {
		if err := s.checks.SendExpiryCheck(ctx, c, max(0, c.DueAt.Sub(s.now()))); err != nil {
			s.Fails.Add(1)
			s.log.Warn("expiry check not confirmed; the sweeper will find its orders", "orders", len(c.OrderIDs), "error", err)
			continue
		}
		s.Scheduled.Add(int64(len(c.OrderIDs)))
	}
	return nil
}

// checksOf groups the new orders among the events by due time.
func checksOf(events []seckill.Event) []seckill.ExpiryCheck {
	var created []*seckill.Event
	for i := range events {
		if e := &events[i]; e.EventType == seckill.EventOrderCreated && e.OrderID != "" && !e.PaymentDueAt.IsZero() {
			created = append(created, e)
		}
	}
	slices.SortStableFunc(created, func(a, b *seckill.Event) int { return a.PaymentDueAt.Compare(b.PaymentDueAt) })
	var checks []seckill.ExpiryCheck
	for len(created) > 0 {
		first := created[0].PaymentDueAt
		n, _ := slices.BinarySearchFunc(created, first.Add(spread), func(e *seckill.Event, t time.Time) int {
			return cmp.Or(e.PaymentDueAt.Compare(t), -1) // all that are due until then
		})
		n = min(n, seckill.ExpiryCheckMax)
		ids := make([]string, n)
		for i := range ids {
			ids[i] = created[i].OrderID
		}
		checks = append(checks, seckill.NewExpiryCheck(created[n-1].PaymentDueAt, ids))
		created = created[n:]
	}
	return checks
}
