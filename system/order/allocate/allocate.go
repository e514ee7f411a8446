// Package allocate gives units of stock to orders inside the consumer's
// transaction, and takes them back or sells them for good when orders end. How a unit is stored (a row a unit, one counter, buckets) is
// its own affair; the transaction around it stays the same (R6.7d).
package allocate

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// SKU names what is sold.
type SKU struct {
	ActivityID int64
	SKUID      int64
}

// Claims are units and the orders they go to, side by side.
type Claims struct {
	Units          []int64
	OrderIDs       []string
	ReservationIDs []string
}

// Allocator locks units first and claims only those that found an order, so
// that a unit nobody took never leaves the free stock. Its statements run in
// the caller's transaction. Implementations are safe for concurrent use.
type Allocator interface {
	// Lock queues the statement that locks up to n free units for the rest
	// of the transaction; reading the batch's results fills units. Fewer
	// than n is no proof of exhaustion: others may hold units they will
	// give back.
	Lock(b *pgx.Batch, sku SKU, n int, units *[]int64)
	// Exhausted says whether no free unit exists beyond the locked ones this
	// transaction holds. Never true while another transaction holds one.
	Exhausted(ctx context.Context, tx pgx.Tx, sku SKU, locked int) (bool, error)
	// Claim queues the statement that turns locked units into claimed ones.
	// The batch fails with ErrUnitsLost if one of them was not free.
	Claim(b *pgx.Batch, claims Claims)
	// Sell queues the statement that turns claimed units into sold ones.
	// The batch fails with ErrUnitsLost if one was not held by its order.
	Sell(b *pgx.Batch, claims Claims)
	// Release queues the statement that takes claimed units from their
	// orders: back into the free stock with resell, retired without. The
	// batch fails with ErrUnitsLost if one was not held by its order.
	Release(b *pgx.Batch, claims Claims, resell bool)
}
