package order

import (
	"embed"
	"fmt"
	"io/fs"
)

// SQL holds the transaction's statements, sql/name.sql: the default of
// Config.SQL.
//
//go:embed sql/*.sql
var SQL embed.FS

// statements are those of the two round trips.
type statements struct {
	gateShared, gateExclusive, inboxInsert, activityRead, decidedRead, buyersRead string
	ordersInsert, itemsInsert, reservationsInsert, ledgerInsert, outboxInsert     string
	deadLetterInsert                                                              string
}

func loadStatements(files fs.FS) (s statements, err error) {
	for name, dst := range map[string]*string{
		"gate_shared.sql":         &s.gateShared,
		"gate_exclusive.sql":      &s.gateExclusive,
		"inbox_insert.sql":        &s.inboxInsert,
		"activity_read.sql":       &s.activityRead,
		"decided_read.sql":        &s.decidedRead,
		"buyers_read.sql":         &s.buyersRead,
		"orders_insert.sql":       &s.ordersInsert,
		"items_insert.sql":        &s.itemsInsert,
		"reservations_insert.sql": &s.reservationsInsert,
		"ledger_insert.sql":       &s.ledgerInsert,
		"outbox_insert.sql":       &s.outboxInsert,
		"dead_letter_insert.sql":  &s.deadLetterInsert,
	} {
		body, err := fs.ReadFile(files, "sql/"+name)
		if err != nil {
			return s, fmt.Errorf("order processor: load statement: %w", err)
		}
		*dst = string(body)
	}
	return s, nil
}
