package dlq

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	//go:embed sql/list.sql
	listLetters string
	//go:embed sql/read.sql
	readLetter string
	//go:embed sql/read_for_update.sql
	readLetterForUpdate string
	//go:embed sql/mark_replayed.sql
	markReplayed string
	//go:embed sql/settle.sql
	settle string
	//go:embed sql/claim_due.sql
	claimDue string
	//go:embed sql/summary.sql
	summary string
)

// ListMax is how many letters one List returns at most.
const ListMax = 1000

// Filter says which letters to list.
type Filter struct {
	All   bool  // those with nothing left to do, too
	Class Class // "": any
	After int64 // letters of a higher id only
	Limit int   // 1 to ListMax
}

// List returns letters by ascending id.
func List(ctx context.Context, pool *pgxpool.Pool, f Filter) ([]Letter, error) {
	if f.Limit < 1 || f.Limit > ListMax {
		return nil, fmt.Errorf("list dead letters: limit %d: must be 1 to %d", f.Limit, ListMax)
	}
	rows, _ := pool.Query(ctx, listLetters, f.All, string(f.Class), f.After, f.Limit) // CollectRows has its error
	letters, err := pgx.CollectRows(rows, scanLetter)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return letters, nil
}

// Read returns one letter; ErrNoLetter if there is none.
func Read(ctx context.Context, pool *pgxpool.Pool, id int64) (Letter, error) {
	return read(ctx, pool, readLetter, id)
}

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func read(ctx context.Context, db querier, sql string, id int64) (Letter, error) {
	rows, _ := db.Query(ctx, sql, id)
	letter, err := pgx.CollectExactlyOneRow(rows, scanLetter)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoLetter
	}
	if err != nil {
		return Letter{}, fmt.Errorf("dead letter %d: %w", id, err)
	}
	return letter, nil
}

func scanLetter(row pgx.CollectableRow) (Letter, error) {
	var l Letter
	err := row.Scan(&l.ID, &l.Kind, &l.Class, &l.Topic, &l.Queue, &l.Offset, &l.MessageID, &l.ReservationID,
		&l.Reason, &l.Body, &l.CreatedAt, &l.Replays, &l.ReplayedAt, &l.SettledAt, &l.Note, &l.Decided)
	return l, err
}

// Backlog is the open letters of one class.
type Backlog struct {
	Class  Class
	Open   int64
	Oldest time.Duration // age of the oldest
}

// Summary counts the open letters; classes without one are absent.
func Summary(ctx context.Context, pool *pgxpool.Pool) ([]Backlog, error) {
	rows, _ := pool.Query(ctx, summary)
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Backlog, error) {
		var b Backlog
		var seconds float64
		err := row.Scan(&b.Class, &b.Open, &seconds)
		b.Oldest = time.Duration(seconds * float64(time.Second))
		return b, err
	})
	if err != nil {
		return nil, fmt.Errorf("summarize dead letters: %w", err)
	}
	return out, nil
}
