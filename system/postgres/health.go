package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed sql/writable.sql
var writable string

// ErrReadOnly says that the server answers and takes no writes: a standby, or
// a primary that was told so.
var ErrReadOnly = errors.New("postgres: the server is read-only")

// CheckWritable says whether orders could be written now.
func CheckWritable(ctx context.Context, pool *pgxpool.Pool) error {
	var ok bool
	if err := pool.QueryRow(ctx, writable).Scan(&ok); err != nil {
		return fmt.Errorf("postgres: check: %w", err)
	}
	if !ok {
		return ErrReadOnly
	}
	return nil
}
