// Package activity creates, closes and shows activities in PostgreSQL: the
// offer, its stock, and one inventory token a unit, made and verified before
// anything is sold (R6.7a). Warming Redis from it is another's work.
package activity

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hotsku/hotsku/system/seckill"
)

// Errors of the Store.
var (
	ErrExists   = errors.New("activity exists already: choose another activity id")
	ErrNotFound = errors.New("no such activity")
)

// StockMax is the largest stock of one SKU.
const StockMax = 1_000_000

var (
	//go:embed sql/activity_insert.sql
	activityInsert string
	//go:embed sql/sku_insert.sql
	skuInsert string
	//go:embed sql/tokens_insert.sql
	tokensInsert string
	//go:embed sql/tokens_verify.sql
	tokensVerify string
	//go:embed sql/issue_insert.sql
	issueInsert string
	//go:embed sql/analyze.sql
	analyze string
	//go:embed sql/gates_exclusive.sql
	gatesExclusive string
	//go:embed sql/close.sql
	closeActivity string
	//go:embed sql/exists.sql
	exists string
)

// Params describes an activity of one SKU.
type Params struct {
	ActivityID int64
	SKUID      int64
	// Stock is how many units are offered, 1 to StockMax.
	Stock int
	// Tokens is how many inventory tokens are made: Stock if 0, and never
	// more. Fewer is for experiments about an edge that promises too much.
	Tokens     int
	PriceCents int64
	StartsAt   time.Time
	EndsAt     time.Time
	// Resell puts a cancelled or expired order's unit back on sale; else it
	// is retired.
	Resell bool
}

// Validate returns a *seckill.FieldError for the first field that is wrong.
func (p *Params) Validate() error {
	switch {
	case p.ActivityID <= 0:
		return &seckill.FieldError{Field: "activity id", Reason: "must be a positive integer"}
	case p.SKUID <= 0:
		return &seckill.FieldError{Field: "sku id", Reason: "must be a positive integer"}
	case p.Stock < 1 || p.Stock > StockMax:
		return &seckill.FieldError{Field: "stock", Reason: fmt.Sprintf("%d: must be 1 to %d", p.Stock, StockMax)}
	case p.Tokens < 0 || p.Tokens > p.Stock:
		return &seckill.FieldError{Field: "tokens", Reason: fmt.Sprintf("%d: must be 1 to the stock of %d, or 0 for as many", p.Tokens, p.Stock)}
	case p.PriceCents < 0:
		return &seckill.FieldError{Field: "price", Reason: fmt.Sprintf("%d cents: must not be negative", p.PriceCents)}
	case p.StartsAt.IsZero() || !p.StartsAt.Before(p.EndsAt):
		return &seckill.FieldError{Field: "start", Reason: "must be given and be before the end"}
	}
	return nil
}

// Store keeps activities. Safe for concurrent use except Create.
type Store struct {
	pool *pgxpool.Pool
	rng  *rand.Rand
}

// New returns a Store; rng draws the token ids.
func New(pool *pgxpool.Pool, rng *rand.Rand) (*Store, error) {
	if pool == nil || rng == nil {
		return nil, errors.New("activity store: pool and rng are required")
	}
	return &Store{pool: pool, rng: rng}, nil
}

// Create writes activity, stock, tokens and the ledger's ISSUE entry in one
// transaction, which it commits only after counting the tokens. ErrExists if
// the activity id is taken.
func (s *Store) Create(ctx context.Context, p Params) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if p.Tokens == 0 {
		p.Tokens = p.Stock
	}
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return s.create(ctx, tx, p) })
	if err != nil {
		return fmt.Errorf("create activity %d: %w", p.ActivityID, err)
	}
	// Statistics of the empty table would plan the first claims badly.
	if _, err := s.pool.Exec(ctx, analyze); err != nil {
		return fmt.Errorf("create activity %d: created, but not analyzed: %w", p.ActivityID, err)
	}
	return nil
}

func (s *Store) create(ctx context.Context, tx pgx.Tx, p Params) error {
	tag, err := tx.Exec(ctx, activityInsert, p.ActivityID, p.StartsAt, p.EndsAt, p.Resell)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return ErrExists
	}
	if _, err := tx.Exec(ctx, skuInsert, p.ActivityID, p.SKUID, p.Stock, p.Tokens, p.PriceCents); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, tokensInsert, p.ActivityID, p.SKUID, s.tokenIDs(p.Tokens)); err != nil {
		return err
	}
	var issued int
	if err := tx.QueryRow(ctx, issueInsert, p.ActivityID, p.SKUID).Scan(&issued); err != nil {
		return err
	}
	var count, distinct, first, last int
	if err := tx.QueryRow(ctx, tokensVerify, p.ActivityID, p.SKUID).Scan(&count, &distinct, &first, &last); err != nil {
		return err
	}
	if issued != p.Tokens || count != p.Tokens || distinct != p.Tokens || first != 0 || last != p.Tokens-1 {
		return fmt.Errorf("made %d tokens, found %d, issued %d: nothing kept", p.Tokens, count, issued)
	}
	return nil
}

// tokenIDs draws n distinct positive ids. They are random so that the
// primary key says nothing about the order of claiming.
func (s *Store) tokenIDs(n int) []int64 {
	ids := make([]int64, 0, n)
	seen := make(map[int64]struct{}, n)
	for len(ids) < n {
		id := 1 + s.rng.Int64N(1<<63-1)
		if _, again := seen[id]; !again {
			seen[id] = struct{}{}
			ids = append(ids, id)
		}
	}
	return ids
}

// Close ends an activity; closing a closed one changes nothing. When it
// returns no order of the activity is under way, and none will be created:
// order transactions hold their SKU's gate shared while they read the
// status, and this waits for all of them.
func (s *Store) Close(ctx context.Context, activityID int64) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, gatesExclusive, activityID); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, closeActivity, activityID)
		if err != nil || tag.RowsAffected() > 0 {
			return err
		}
		var found bool
		if err := tx.QueryRow(ctx, exists, activityID).Scan(&found); err != nil {
			return err
		}
		if !found {
			return ErrNotFound
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("close activity %d: %w", activityID, err)
	}
	return nil
}
