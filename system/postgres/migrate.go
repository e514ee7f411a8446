package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/hotsku/hotsku/migrations"
)

// ErrSchemaOutdated is returned by CheckSchema when migrations are pending.
var ErrSchemaOutdated = errors.New("postgres: the schema is not up to date: run `seckill migrate`")

// Migrate applies the pending migrations in order, each in a transaction of
// its own, and returns how many there were. Several processes may call it at
// once: a session lock lets one through at a time.
func Migrate(ctx context.Context, pool *pgxpool.Pool) (applied int, err error) {
	provider, err := provider(pool)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, provider.Close()) }()
	results, err := provider.Up(ctx)
	if err != nil {
		return 0, fmt.Errorf("postgres: migrate: %w", err)
	}
	return len(results), nil
}

// CheckSchema returns ErrSchemaOutdated if a migration is pending; a role
// asks before it starts to work.
func CheckSchema(ctx context.Context, pool *pgxpool.Pool) (err error) {
	provider, err := provider(pool)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, provider.Close()) }()
	current, target, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("postgres: read schema version: %w", err)
	}
	if current < target {
		return ErrSchemaOutdated
	}
	return nil
}

func provider(pool *pgxpool.Pool) (*goose.Provider, error) {
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return nil, fmt.Errorf("postgres: migration lock: %w", err)
	}
	db := stdlib.OpenDBFromPool(pool)
	p, err := goose.NewProvider(goose.DialectPostgres, db, migrations.FS,
		goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("postgres: read migrations: %w", err), db.Close())
	}
	return p, nil
}
