package activity

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hotsku/hotsku/system/seckill"
)

var (
	//go:embed sql/activity_read.sql
	activityRead string
	//go:embed sql/skus_read.sql
	skusRead string
	//go:embed sql/counts_read.sql
	countsRead string
)

// Summary is an activity as PostgreSQL knows it at one moment.
type Summary struct {
	ActivityID int64                  `json:"activity_id"`
	Status     seckill.ActivityStatus `json:"status"`
	Version    int64                  `json:"version"`
	StartsAt   time.Time              `json:"starts_at"`
	EndsAt     time.Time              `json:"ends_at"`
	Resell     bool                   `json:"resell"`
	UpdatedAt  time.Time              `json:"updated_at"` // of a closed activity: when it was closed
	SKUs       []SKU                  `json:"skus"`
}

// SKU is one SKU's stock and what became of it. Statuses without a row are
// absent from the counts.
type SKU struct {
	SKUID        int64                               `json:"sku_id"`
	Stock        int64                               `json:"stock"`
	PriceCents   int64                               `json:"price_cents"`
	Allocator    string                              `json:"allocator"`
	Tokens       map[seckill.TokenStatus]int64       `json:"tokens"`
	Orders       map[seckill.OrderStatus]int64       `json:"orders"`
	Reservations map[seckill.ReservationStatus]int64 `json:"reservations"`
}

// Show reads an activity and its counts in one snapshot. ErrNotFound if
// there is none.
func (s *Store) Show(ctx context.Context, activityID int64) (Summary, error) {
	sum := Summary{ActivityID: activityID}
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, s.pool, snapshot, func(tx pgx.Tx) error { return sum.read(ctx, tx) })
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return Summary{}, fmt.Errorf("show activity %d: %w", activityID, err)
	}
	return sum, nil
}

func (s *Summary) read(ctx context.Context, tx pgx.Tx) error {
	err := tx.QueryRow(ctx, activityRead, s.ActivityID).
		Scan(&s.Status, &s.Version, &s.StartsAt, &s.EndsAt, &s.Resell, &s.UpdatedAt)
	if err != nil {
		return err
	}
	rows, _ := tx.Query(ctx, skusRead, s.ActivityID)
	s.SKUs, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (SKU, error) {
		sku := SKU{
			Tokens:       map[seckill.TokenStatus]int64{},
			Orders:       map[seckill.OrderStatus]int64{},
			Reservations: map[seckill.ReservationStatus]int64{},
		}
		return sku, row.Scan(&sku.SKUID, &sku.Stock, &sku.PriceCents, &sku.Allocator)
	})
	if err != nil {
		return err
	}
	var skuID, count int64
	var kind, status string
	rows, _ = tx.Query(ctx, countsRead, s.ActivityID)
	_, err = pgx.ForEachRow(rows, []any{&skuID, &kind, &status, &count}, func() error {
		for i := range s.SKUs {
			if s.SKUs[i].SKUID == skuID {
				s.SKUs[i].add(kind, status, count)
			}
		}
		return nil
	})
	return err
}

func (k *SKU) add(kind, status string, count int64) {
	switch kind {
	case "token":
		k.Tokens[seckill.TokenStatus(status)] = count
	case "order":
		k.Orders[seckill.OrderStatus(status)] = count
	case "reservation":
		k.Reservations[seckill.ReservationStatus(status)] = count
	}
}
