package snapshot

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/hotsku/hotsku/verify/rundir"
)

var (
	//go:embed sql/table_of_activities.sql
	tableOfActivitiesSQL string
	//go:embed sql/table_of_reservations.sql
	tableOfReservationsSQL string
	//go:embed sql/table_of_orders.sql
	tableOfOrdersSQL string
	//go:embed sql/counters.sql
	countersSQL string
	//go:embed sql/undone.sql
	undoneSQL string
)

// Counters are the database's own, taken before and after the load.
type Counters struct {
	Commits  int64
	WALBytes int64 // write-ahead log position
}

// Counters reads them now.
func (s *Stores) Counters(ctx context.Context) (Counters, error) {
	var c Counters
	err := s.query(ctx, countersSQL, &c.Commits, &c.WALBytes)
	if err != nil {
		return c, fmt.Errorf("read database counters: %w", err)
	}
	return c, nil
}

// undone counts the events the outbox still holds, and the orders that are
// past their time to be paid and have not ended.
func (s *Stores) undone(ctx context.Context) (events, overdue int64, err error) {
	if err := s.query(ctx, undoneSQL, &events, &overdue); err != nil {
		return 0, 0, fmt.Errorf("count unpublished events and overdue orders: %w", err)
	}
	return events, overdue, nil
}

func (s *Stores) postgresVersion(ctx context.Context) (v string, err error) {
	if err := s.query(ctx, "SHOW server_version", &v); err != nil {
		return "", fmt.Errorf("ask PostgreSQL for its version: %w", err)
	}
	v, _, _ = strings.Cut(v, " ")
	return v, nil
}

// query reads one row. A connection that broke is made again at the next
// call.
func (s *Stores) query(ctx context.Context, sql string, into ...any) error {
	ctx, cancel := s.call(ctx)
	defer cancel()
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	return conn.QueryRow(ctx, sql).Scan(into...)
}

func (s *Stores) connect(ctx context.Context) (*pgx.Conn, error) {
	if s.pg != nil && !s.pg.IsClosed() {
		return s.pg, nil
	}
	cfg, err := pgx.ParseConfig(s.cfg.Postgres)
	if err != nil {
		return nil, fmt.Errorf("read the PostgreSQL URL: %w", err)
	}
	cfg.RuntimeParams["application_name"] = "hotsku-snapshot"
	cfg.RuntimeParams["timezone"] = "UTC"
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s.pg = conn
	return conn, nil
}

// tableQuery is the query that copies a table: the rows of the planned
// activities, and those that belong to no activity at all, which no system
// should leave. Rows of other sales in the same database stay out.
func tableQuery(table string) string {
	query, key := tableOfActivitiesSQL, ""
	switch table {
	case "consumer_inbox", "dead_letter":
		query, key = tableOfReservationsSQL, "reservation_id"
	case "event_outbox":
		query, key = tableOfReservationsSQL, "aggregate_id"
	case "order_items":
		query, key = tableOfOrdersSQL, "order_id"
	}
	return strings.NewReplacer("table_name", table, "key_column", key).Replace(query)
}

// takePostgres copies every table as one transaction sees them.
func (s *Stores) takePostgres(ctx context.Context, dir rundir.Dir) error {
	call, cancel := s.call(ctx)
	conn, err := s.connect(call)
	cancel()
	if err != nil {
		return err
	}
	activities := make([]int64, len(s.cfg.Activities))
	for i, a := range s.cfg.Activities {
		activities[i] = a.ActivityID
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	for _, table := range rundir.Tables() {
		if err := writeRows(dir.Table(table), func(w *rundir.RowWriter) error { return copyTable(ctx, tx, table, activities, w) }); err != nil {
			return errors.Join(fmt.Errorf("table %s: %w", table, err), tx.Rollback(ctx))
		}
	}
	return tx.Commit(ctx)
}

func copyTable(ctx context.Context, tx pgx.Tx, table string, activities []int64, w *rundir.RowWriter) error {
	rows, err := tx.Query(ctx, tableQuery(table), activities)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var row []byte
		if err := rows.Scan(&row); err != nil {
			return err
		}
		if err := w.Write(json.RawMessage(row)); err != nil {
			return err
		}
	}
	return rows.Err()
}
