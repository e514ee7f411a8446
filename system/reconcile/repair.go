package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// sendMax is how many messages one send carries.
const sendMax = 100

// driven is when a reservation's message was last sent again, and how often.
type driven struct {
	at    time.Time // Redis' clock
	times int
}

// due says that it may be sent once more: the wait doubles each time, so that
// a cause that lasts makes no storm.
func (d driven) due(now time.Time, first time.Duration) bool {
	return d.times == 0 || now.Sub(d.at) >= first<<min(d.times-1, 6)
}

// plan fills in what there is to mend. Reservations sent again lately are left
// to that.
func (a *audit) plan(dryRun bool) {
	p := &a.report.Repair
	p.DryRun = dryRun
	p.ResendDue, p.RepublishDue = len(a.resend), len(a.republish)
	keep := make(map[string]driven, len(a.resend))
	var due []reservation.Reservation
	for _, r := range a.resend {
		d := a.driven[a.sku.SKU][r.ReservationID]
		keep[r.ReservationID] = d
		if d.due(a.limits.now, a.cfg.LostAfter) && len(due) < a.cfg.RepairLimit {
			due = append(due, r)
			p.Resend = append(p.Resend, r.ReservationID)
		}
	}
	a.resend = due
	a.driven[a.sku.SKU] = keep // what is decided is forgotten
	if n := a.cfg.RepairLimit; len(a.republish) > n {
		a.republish = a.republish[:n]
	}
	p.Republish = a.republish
}

// mend does it. What fails is noted, and found again by the next round.
func (a *audit) mend(ctx context.Context) {
	p := &a.report.Repair
	for part := range slices.Chunk(a.resend, sendMax) {
		if ctx.Err() != nil {
			return
		}
		if err := a.send(part); err != nil {
			p.Failed = append(p.Failed, err.Error())
			break // the broker is not well: the rest would wait for nothing
		}
		p.Resent += len(part)
		for _, r := range part {
			d := a.driven[a.sku.SKU][r.ReservationID]
			a.driven[a.sku.SKU][r.ReservationID] = driven{a.limits.now, d.times + 1}
		}
		if err := a.markSent(ctx, part); err != nil {
			p.Failed = append(p.Failed, err.Error())
		}
	}
	if len(a.republish) > 0 {
		n, err := a.publishAgain(ctx, a.republish)
		p.Republished = n
		if err != nil {
			p.Failed = append(p.Failed, err.Error())
		}
	}
	a.stats.Resent.Add(int64(p.Resent))
	a.stats.Republished.Add(int64(p.Republished))
	if len(p.Resend)+len(p.Republish) > 0 {
		a.log.Warn("mended", "activity_id", a.sku.ActivityID, "sku_id", a.sku.SKUID, "resent", p.Resent, "of", len(p.Resend),
			"republished", p.Republished, "of_unapplied", len(p.Republish), "failed", p.Failed)
	}
}

// send sends messages again, as they were born.
func (a *audit) send(part []reservation.Reservation) error {
	if a.sender == nil {
		return errors.New("no broker was given to send to")
	}
	messages := make([]seckill.OrderCreateMessage, len(part))
	for i := range part {
		messages[i] = part[i].Message(a.now())
	}
	if err := a.sender.SendOrderCreates(messages); err != nil {
		return fmt.Errorf("send %d messages again: %w", len(part), err)
	}
	return nil
}

// markSent takes what was sent from the scanner's list.
func (a *audit) markSent(ctx context.Context, part []reservation.Reservation) error {
	for few := range slices.Chunk(part, reservation.BatchMax) {
		ids := make([]string, len(few))
		for i := range few {
			ids[i] = few[i].ReservationID
		}
		call, cancel := context.WithTimeout(ctx, a.cfg.Call)
		err := a.store.MarkSent(call, a.sku.ActivityID, a.sku.SKUID, ids)
		cancel()
		if err != nil {
			return fmt.Errorf("sent, but not marked: %w", err)
		}
	}
	return nil
}

// publishAgain hands events to the outbox publisher once more.
func (a *audit) publishAgain(ctx context.Context, ids []string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Call)
	defer cancel()
	tag, err := a.pool.Exec(ctx, republish, ids, a.cfg.UnappliedAfter)
	if err != nil {
		return 0, fmt.Errorf("publish %d events again: %w", len(ids), err)
	}
	return int(tag.RowsAffected()), nil
}
