package reconcile

import (
	"context"
	"time"

	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/valve"
)

// page is how many reservations are looked at in one call of each store.
const page = 200

// audit is the work on one SKU in one round.
type audit struct {
	*Reconciler
	sku    sku
	limits limits
	report *Report

	initial int64 // stock at the start of the change log
	noStock int64 // reservations that had no unit behind them
	// what to mend
	resend    []reservation.Reservation
	republish []string
}

// audit judges one SKU.
func (r *Reconciler) audit(ctx context.Context, s sku) (*audit, error) {
	a := &audit{Reconciler: r, sku: s, limits: limits{Config: r.cfg},
		report: &Report{ActivityID: s.ActivityID, SKUID: s.SKUID, At: s.now.UTC()}}
	books, err := a.books(ctx)
	if err != nil {
		return nil, err
	}
	if books.Known {
		a.limits.now = books.Now
		if err := a.readBacklog(ctx); err != nil {
			return nil, err
		}
		if err := a.walk(ctx); err != nil {
			return nil, err
		}
	}
	// After the walk: what is decided here and not in the log's walk is then
	// missing there, not late.
	decided, err := r.countUnits(ctx, s, a.report)
	if err != nil {
		return nil, err
	}
	v := &a.report.Reservations
	if !books.Known {
		v.NotInRedis = decided
	} else if decided > v.Ordered+v.Compensated+v.CompensationPending+v.SetAside {
		if err := a.findMissing(ctx); err != nil {
			return nil, err
		}
	}
	a.close(books)
	return a, nil
}

func (a *audit) books(ctx context.Context) (reservation.Books, error) {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Call)
	defer cancel()
	return a.store.Books(ctx, a.sku.ActivityID, a.sku.SKUID)
}

// readBacklog learns how old the oldest message is that the consumers have
// not taken: a reservation older than that is not in the broker any more.
func (a *audit) readBacklog(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Call)
	defer cancel()
	signals, err := a.store.Signals(ctx)
	if err != nil {
		return err
	}
	for _, s := range signals {
		if s.Name == string(valve.SignalOldestMessage) && s.Age < valve.LimitsDefault.Stale {
			a.limits.known, a.limits.backlog = true, time.Duration(s.Value)*time.Millisecond+s.Age
		}
	}
	return nil
}

// walk follows the change log from its start: every reservation ever made is
// in it, and what it leaves of the stock is what the stock must be.
func (a *audit) walk(ctx context.Context) error {
	after, stock := reservation.LogStart, int64(0)
	var ids []string
	seen := make(map[[16]byte]struct{})
	for {
		call, cancel := context.WithTimeout(ctx, a.cfg.Call)
		changes, atTail, err := a.store.ReadLog(call, a.sku.ActivityID, a.sku.SKUID, after)
		cancel()
		if err != nil {
			return err
		}
		for _, c := range changes {
			after = c.ID
			switch c.Op {
			case "init":
				a.initial, stock = c.Stock, c.Stock
			case "reserve":
				stock -= int64(len(c.Reservations))
				for _, id := range c.Reservations {
					tag, ok := seckill.ReservationTag([]byte(id))
					if _, again := seen[tag]; again || !ok {
						a.report.Reservations.Contradicted++
						a.report.witness("%q is made twice by the change log, or is no reservation", id)
						continue
					}
					seen[tag] = struct{}{}
					ids = append(ids, id)
				}
			case "return":
				stock++
			}
			if stock != c.Stock {
				a.report.Redis.LogBreak += abs(stock - c.Stock)
				a.report.witness("change log entry %s leaves %d units by its own word and %d by those before it: %+d", c.ID, c.Stock, stock, c.Stock-stock)
				stock = c.Stock
			}
		}
		for len(ids) >= page || (atTail && len(ids) > 0) {
			n := min(page, len(ids))
			if err := a.judgePage(ctx, ids[:n]); err != nil {
				return err
			}
			ids = ids[n:]
		}
		if atTail {
			return nil
		}
	}
}

// judgePage says where reservations are: Redis first, then PostgreSQL.
func (a *audit) judgePage(ctx context.Context, ids []string) error {
	call, cancel := context.WithTimeout(ctx, a.cfg.Call)
	held, err := a.store.LookupReservations(call, a.sku.ActivityID, a.sku.SKUID, ids)
	cancel()
	if err != nil {
		return err
	}
	decided, err := a.decisions(ctx, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		var r *reservation.Reservation
		var d *decision
		if found, ok := held[id]; ok {
			r = &found
		}
		if found, ok := decided[id]; ok {
			d = &found
		}
		a.place(id, r, d)
	}
	return nil
}

func (a *audit) place(id string, r *reservation.Reservation, d *decision) {
	v := &a.report.Reservations
	f := judge(r, d, &a.limits)
	counts := [places]*int64{&v.Ordered, &v.Compensated, &v.CompensationPending, &v.InProcess, &v.SetAside,
		&v.Stuck, &v.Lost, &v.Vanished, &v.Contradicted}
	v.Made++
	*counts[f.place]++
	if d != nil && d.status == seckill.StatusRejectedNoFinalStock {
		a.noStock++
	}
	if f.place == placeCompensationPending && d.returnStock {
		a.report.Units.ReleasePending++
	}
	if f.words != "" {
		a.report.witness("%s %s", id, f.words)
	}
	if f.unapplied {
		v.Unapplied++
		a.republish = append(a.republish, id)
	}
	if f.place == placeStuck || f.place == placeLost {
		a.resend = append(a.resend, *r)
	}
}

// findMissing counts decisions about reservations that Redis does not hold.
func (a *audit) findMissing(ctx context.Context) error {
	var at [2]string
	for {
		ids, err := a.decidedAfter(ctx, a.sku, &at)
		if err != nil || len(ids) == 0 {
			return err
		}
		call, cancel := context.WithTimeout(ctx, a.cfg.Call)
		held, err := a.store.LookupReservations(call, a.sku.ActivityID, a.sku.SKUID, ids)
		cancel()
		if err != nil {
			return err
		}
		for _, id := range ids {
			if _, ok := held[id]; !ok {
				a.report.Reservations.NotInRedis++
				a.report.witness("%s was decided, and Redis does not hold it", id)
			}
		}
	}
}

// close adds it all up.
func (a *audit) close(b reservation.Books) {
	r := a.report
	v, u := &r.Reservations, &r.Units
	r.Redis.Known, r.Redis.Stock, r.Redis.Pending = b.Known, b.Stock, b.Pending
	if b.Known {
		if b.Stock != b.LogStock {
			r.Redis.LogBreak += abs(b.Stock - b.LogStock)
			r.witness("Redis' stock is %d, and its change log leaves %d: %+d", b.Stock, b.LogStock, b.Stock-b.LogStock)
		}
		held := v.InProcess + v.Stuck + v.Lost + v.Vanished + v.SetAside + a.noStock + u.ReleasePending
		r.Redis.Drift = u.Available - b.Stock - held + a.initial - u.Issued
	}
	r.Delta = u.delta() + v.delta() + r.Redis.LogBreak
}
