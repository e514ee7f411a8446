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
// no longer free. It cannot happen while the lock is held.
var ErrUnitsLost = errors.New("allocate: a locked unit is not free any more")

var (
	//go:embed sql/token_lock.sql
	tokenLock string
	//go:embed sql/token_count.sql
	tokenCount string
	//go:embed sql/token_claim.sql
	tokenClaim string
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
	b.Queue(tokenClaim, claims.Units, claims.ReservationIDs, claims.OrderIDs).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() != int64(len(claims.Units)) {
			return fmt.Errorf("%w: claimed %d of %d", ErrUnitsLost, tag.RowsAffected(), len(claims.Units))
		}
		return nil
	})
}
