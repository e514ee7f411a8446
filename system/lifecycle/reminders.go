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
	"github.com/hotsku/hotsku/system/seckill"
)

//go:embed sql/open_read.sql
var openRead string

// Back-off of Reminders while the database is not able.
const (
	backoffMin = 50 * time.Millisecond
	backoffMax = 2 * time.Second
)

// Reminders handles the checks the broker delivers.
type Reminders struct {
	decider *Decider
	checks  CheckSender
	now     func() time.Time
	log     *slog.Logger

	Stats ReminderStats
}

// ReminderStats counts the checks handled. Safe to read at any time.
type ReminderStats struct {
	Checks     atomic.Int64
	Expired    atomic.Int64 // orders
	Postponed  atomic.Int64 // checks that came before their time and were sent again
	Unreadable atomic.Int64
	SendFails  atomic.Int64 // postponed checks not confirmed: the sweeper's
}

// NewReminders returns a handler that sends checks that come too early again
// by checks. now only says for how long.
func NewReminders(d *Decider, checks CheckSender, now func() time.Time, log *slog.Logger) (*Reminders, error) {
	if d == nil || checks == nil || now == nil || log == nil {
		return nil, errors.New("lifecycle reminders: decider, sender, clock and log are required")
	}
	return &Reminders{decider: d, checks: checks, now: now, log: log}, nil
}

// Handle decides a batch of message bodies; nil acknowledges them. While the
// database is not able it waits and tries again; it returns an error only
// when ctx ends. A repeat changes nothing.
func (r *Reminders) Handle(ctx context.Context, bodies [][]byte) error {
	for _, body := range bodies {
		c, err := seckill.DecodeExpiryCheck(body)
		if err != nil {
			// It is a reminder: the orders it meant are the sweeper's.
			r.Stats.Unreadable.Add(1)
			r.log.Error("expiry check cannot be read; its orders are left to the sweeper", "error", err, "bytes", len(body))
			continue
		}
		r.Stats.Checks.Add(1)
		if err := r.persist(ctx, func() error { return r.handle(ctx, c) }); err != nil {
			return err
		}
	}
	return nil
}

// handle expires what is due and postpones what is not: the broker's delays
// come in levels, and its clock is not the database's.
func (r *Reminders) handle(ctx context.Context, c seckill.ExpiryCheck) error {
	if wait := c.DueAt.Sub(r.now()); wait > 0 {
		r.postpone(ctx, c, wait)
		return nil
	}
	n, err := r.decider.Expire(ctx, c.OrderIDs)
	r.Stats.Expired.Add(int64(n))
	if err != nil {
		return err
	}
	open, wait, err := r.decider.open(ctx, c.OrderIDs)
	if err != nil {
		return err
	}
	if len(open) > 0 {
		r.postpone(ctx, seckill.NewExpiryCheck(r.now().Add(wait), open), wait)
	}
	return nil
}

func (r *Reminders) postpone(ctx context.Context, c seckill.ExpiryCheck, wait time.Duration) {
	if err := r.checks.SendExpiryCheck(ctx, c, wait); err != nil {
		r.Stats.SendFails.Add(1)
		r.log.Warn("expiry check not confirmed; the sweeper will find its orders", "orders", len(c.OrderIDs), "error", err)
		return
	}
	r.Stats.Postponed.Add(1)
}

func (r *Reminders) persist(ctx context.Context, try func() error) error {
	delay := backoffMin
	for {
		err := try()
		if err == nil {
			return nil
		}
		r.log.Warn("cannot expire orders; waiting", "error", err, "delay", delay)
		if werr := pause.For(ctx, delay); werr != nil {
			return fmt.Errorf("lifecycle: drained with checks undecided: %w", errors.Join(werr, err))
		}
		delay = min(2*delay, backoffMax)
	}
}

// open returns those of the orders that are unpaid and not yet due, and how
// long until all are.
func (d *Decider) open(ctx context.Context, ids []string) (open []string, wait time.Duration, err error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), d.cfg.TxTimeout)
	defer stop()
	rows, _ := d.cfg.Pool.Query(ctx, openRead, ids)
	var id string
	var micros int64
	_, err = pgx.ForEachRow(rows, []any{&id, &micros}, func() error {
		open, wait = append(open, id), max(wait, time.Duration(micros)*time.Microsecond)
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read unpaid orders: %w", err)
	}
	return open, wait, nil
}
