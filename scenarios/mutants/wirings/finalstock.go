package wirings

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/order"
	"github.com/hotsku/hotsku/system/order/allocate"
)

var (
	//go:embed sql/units_any.sql
	unitsAny string
	//go:embed sql/units_taken_count.sql
	unitsTakenCount string
	//go:embed sql/units_take.sql
	unitsTake string
)

// noFinalStockCheck believes Redis: where there is no free unit it sells
// another's.
func noFinalStockCheck(w *app.Wiring, fire Fire) {
	w.Order = func(ctx context.Context, c *order.Config) error {
		c.Allocator = credulous{fire: fire}
		if _, err := c.Pool.Exec(ctx, "DROP INDEX IF EXISTS uq_orders_valid_token"); err != nil {
			return fmt.Errorf("drop the index: %w", err)
		}
		return nil
	}
}

type credulous struct {
	allocate.Token
	fire Fire
}

func (credulous) Lock(b *pgx.Batch, sku allocate.SKU, n int, units *[]int64) {
	b.Queue(unitsAny, sku.ActivityID, sku.SKUID, n).Query(func(rows pgx.Rows) error {
		var err error
		*units, err = pgx.AppendRows(*units, rows, pgx.RowTo[int64])
		return err
	})
}

func (c credulous) Claim(b *pgx.Batch, claims allocate.Claims) {
	b.Queue(unitsTakenCount, claims.Units).QueryRow(func(row pgx.Row) error {
		var activityID, n int64
		if err := row.Scan(&activityID, &n); err != nil {
			return err
		}
		if n > 0 {
			c.fire(activityID, fmt.Sprintf("sold %d units again", n))
		}
		return nil
	})
	b.Queue(unitsTake, claims.Units, claims.ReservationIDs, claims.OrderIDs)
}
