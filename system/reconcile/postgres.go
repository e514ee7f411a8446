package reconcile

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

var (
	//go:embed sql/skus.sql
	skusRead string
	//go:embed sql/tokens.sql
	tokensRead string
	//go:embed sql/totals.sql
	totalsRead string
	//go:embed sql/decisions.sql
	decisionsRead string
	//go:embed sql/decided_page.sql
	decidedPage string
	//go:embed sql/republish.sql
	republish string
	//go:embed sql/save.sql
	saveReport string
)

// sku is one SKU to look after.
type sku struct {
	reservation.SKU
	total     int64
	allocator string
	now       time.Time // the database's clock
}

// allocatorToken is the allocator whose units have a row each.
const allocatorToken = "token"

func (r *Reconciler) skus(ctx context.Context) ([]sku, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Call)
	defer cancel()
	rows, _ := r.pool.Query(ctx, skusRead, r.cfg.KeepAfterEnd, r.cfg.SKUs) // CollectRows has its error
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s sku, err error) {
		return s, row.Scan(&s.ActivityID, &s.SKUID, &s.total, &s.allocator, &s.now)
	})
	if err != nil {
		return nil, fmt.Errorf("read the SKUs on sale: %w", err)
	}
	return found, nil
}

// countUnits fills in the report's units, all seen by one snapshot, and
// returns how many reservations are decided.
func (r *Reconciler) countUnits(ctx context.Context, s sku, report *Report) (decided int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Call)
	defer cancel()
	u := &report.Units
	var orphans, ledgerFree, free int64
	err = pgx.BeginTxFunc(ctx, r.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, totalsRead, s.ActivityID, s.SKUID).
			Scan(&u.Issued, &ledgerFree, &u.OrdersCreated, &u.OrdersPaid, &orphans, &decided)
		if err != nil {
			return err
		}
		var status seckill.TokenStatus
		var placed bool
		var n int64
		var some []int64
		rows, _ := tx.Query(ctx, tokensRead, s.ActivityID, s.SKUID)
		_, err = pgx.ForEachRow(rows, []any{&status, &placed, &n, &some}, func() error {
			if status == seckill.TokenAvailable {
				free += n
			}
			if !placed {
				u.Misplaced += n
				report.witness("%d tokens are %s, and no order of theirs says so: %d", n, status, some)
				return nil
			}
			switch status {
			case seckill.TokenAvailable:
				u.Available = n
			case seckill.TokenClaimed:
				u.Claimed = n
			case seckill.TokenSold:
				u.Sold = n
			case seckill.TokenReleased:
				u.Released = n
			}
			return nil
		})
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("count units: %w", err)
	}
	if s.allocator != allocatorToken {
		*u = Units{Issued: u.Issued, Available: ledgerFree, Claimed: u.OrdersCreated, Sold: u.OrdersPaid,
			Released:      u.Issued - ledgerFree - u.OrdersCreated - u.OrdersPaid,
			OrdersCreated: u.OrdersCreated, OrdersPaid: u.OrdersPaid}
		return decided, nil
	}
	if orphans > 0 {
		u.Misplaced += orphans
		report.witness("%d valid orders hold a token that does not exist", orphans)
	}
	if u.LedgerOff = ledgerFree - free; u.LedgerOff != 0 {
		report.witness("the ledger leaves %d units free, and %d tokens are: %+d", ledgerFree, free, -u.LedgerOff)
	}
	if missing := u.Issued - u.Available - u.Claimed - u.Sold - u.Released - (u.Misplaced - orphans); missing != 0 {
		report.witness("%d units were issued, and there are %d tokens: %+d", u.Issued, u.Issued-missing, -missing)
	}
	return decided, nil
}

// decisions reads what PostgreSQL decided about some reservations.
func (r *Reconciler) decisions(ctx context.Context, ids []string) (map[string]decision, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Call)
	defer cancel()
	out := make(map[string]decision, len(ids))
	var id string
	var d decision
	var seconds float64
	rows, _ := r.pool.Query(ctx, decisionsRead, ids)
	_, err := pgx.ForEachRow(rows, []any{&id, &d.status, &d.returnStock, &seconds}, func() error {
		d.age = time.Duration(seconds * float64(time.Second))
		out[id] = d
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read decisions: %w", err)
	}
	return out, nil
}

// decidedAfter returns a page of decided reservations after a position, which
// it moves on; none at the end.
func (r *Reconciler) decidedAfter(ctx context.Context, s sku, at *[2]string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Call)
	defer cancel()
	var ids []string
	rows, _ := r.pool.Query(ctx, decidedPage, s.ActivityID, s.SKUID, at[0], at[1], page)
	_, err := pgx.ForEachRow(rows, []any{&at[0], &at[1]}, func() error {
		ids = append(ids, at[1])
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list decisions: %w", err)
	}
	return ids, nil
}

// save writes the report beside the SKU's totals (R6.7c), its lists cut
// short.
func (r *Reconciler) save(ctx context.Context, report *Report) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Call)
	defer cancel()
	short := *report
	p := &short.Repair
	p.Resend, p.Republish = p.Resend[:min(len(p.Resend), WitnessMax)], p.Republish[:min(len(p.Republish), WitnessMax)]
	body, err := json.Marshal(&short)
	if err == nil {
		_, err = r.pool.Exec(ctx, saveReport, report.ActivityID, report.SKUID, body)
	}
	if err != nil {
		return fmt.Errorf("save the report of activity %d SKU %d: %w", report.ActivityID, report.SKUID, err)
	}
	return nil
}
