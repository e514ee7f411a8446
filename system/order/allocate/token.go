package allocate

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrUnitsLost is returned when a unit locked earlier in the transaction was
// no longer free, or a unit was not held by the order that ends. It cannot
// happen while the unit or its order is locked.
var ErrUnitsLost = errors.New("allocate: a unit is not where it must be")

var (
	//go:embed sql/token_lock.sql
	tokenLock string
	//go:embed sql/token_count.sql
	tokenCount string
	//go:embed sql/token_claim.sql
	tokenClaim string
	//go:embed sql/token_sell.sql
	tokenSell string
	//go:embed sql/token_release.sql
	tokenRelease string
)

// Token allocates rows of inventory_token, one a unit (specification 6.7).
type Token struct{}

var _ Allocator = Token{}

// Lock implements Allocator.
func (Token) Lock(b *pgx.Batch, sku SKU, n int, units *[]int64) {
	b.Queue(tokenLock, sku.ActivityID, sku.SKUID, n).Query(func(rows pgx.Rows) error {
		var err error
		*units, err = pgx.AppendRows(*units, rows, pgx.RowTo[int64])
		return err
	})
}

// Exhausted implements Allocator: the tokens visible as AVAILABLE are
// exactly those locked here. A token that another open transaction locked or
// even claimed is still visible as AVAILABLE, so it keeps this false.
func (Token) Exhausted(ctx context.Context, tx pgx.Tx, sku SKU, locked int) (bool, error) {
	var visible int
	if err := tx.QueryRow(ctx, tokenCount, sku.ActivityID, sku.SKUID, locked+1).Scan(&visible); err != nil {
		return false, fmt.Errorf("count free tokens: %w", err)
	}
	return visible == locked, nil
}

// Claim implements Allocator.
func (Token) Claim(b *pgx.Batch, claims Claims) {
	b.Queue(tokenClaim, claims.Units, claims.ReservationIDs, claims.OrderIDs).Exec(all("claimed", claims))
}

// Sell implements Allocator.
func (Token) Sell(b *pgx.Batch, claims Claims) {
	b.Queue(tokenSell, claims.Units, claims.OrderIDs).Exec(all("sold", claims))
}

// Release implements Allocator.
func (Token) Release(b *pgx.Batch, claims Claims, resell bool) {
	b.Queue(tokenRelease, claims.Units, claims.OrderIDs, resell).Exec(all("released", claims))
}

// all holds a statement to having changed every unit.
func all(done string, claims Claims) func(pgconn.CommandTag) error {
	return func(tag pgconn.CommandTag) error {
		if n := tag.RowsAffected(); n != int64(len(claims.Units)) {
			return fmt.Errorf("%w: %s %d of %d", ErrUnitsLost, done, n, len(claims.Units))
		}
		return nil
	}
}
