// Package reconcile holds the three stores against each other and mends what
// may be mended (specification 12.5, R11, I3). It decides nothing: PostgreSQL
// did or will, by the message every reservation has, and by the event every
// decision left. So all it ever does is to send the one again under its own
// message_id, and to have the other published again; the inbox and the
// operation id absorb what was there already. That is safe at any time, by
// several processes, and twice.
//
// It judges by id, never by sums alone: +1 here and -1 there are two findings.
// Each check counts what is in no place or in two:
//
//   - units: each token issued is free, claimed by exactly one unpaid order,
//     sold to exactly one paid one, or released; the ledger agrees; all seen by
//     one snapshot of PostgreSQL;
//   - reservations: each that Redis ever made, by its change log, is ordered,
//     compensated, awaiting its compensation, on its way, or set aside; none
//     ended in one store otherwise than in the other. Redis is read first, so
//     that a decision it shows must be found in PostgreSQL.
//   - stock: Redis' stock is what its change log leaves of it.
//
// Imports allowed: system/seckill, system/reservation, system/valve, pgx.
package reconcile

import (
	"errors"
	"fmt"
	"time"
)

// Config says when to look and what is too long.
type Config struct {
	Every time.Duration // between the ends and starts of rounds
	// StuckAfter is how long a reservation may be overdue for its resend
	// before nobody is taken to look after it.
	StuckAfter time.Duration
	// LostAfter is how long a message that the broker confirmed may stay
	// undecided before it is taken for lost: above what a backlog takes.
	LostAfter time.Duration
	// UnappliedAfter is how long a decision may be missing in Redis before
	// its event is published again.
	UnappliedAfter time.Duration
	// RepairLimit bounds what one round sends and publishes again a SKU.
	RepairLimit int
	// KeepAfterEnd is how long after its end a sale is looked after.
	KeepAfterEnd time.Duration
	SKUs         int           // looked after at most, the latest sales first
	Call         time.Duration // bound of one call of a store
}

// ConfigDefault finds a lost message within a minute.
var ConfigDefault = Config{Every: 15 * time.Second, StuckAfter: 10 * time.Second, LostAfter: 45 * time.Second,
	UnappliedAfter: 15 * time.Second, RepairLimit: 2000, KeepAfterEnd: 24 * time.Hour, SKUs: 64, Call: 5 * time.Second}

// Validate checks the bounds.
func (c Config) Validate() error {
	switch {
	case c.Every <= 0 || c.Call <= 0:
		return fmt.Errorf("reconcile: every %v and call %v must be positive", c.Every, c.Call)
	case c.StuckAfter <= 0 || c.LostAfter <= 0 || c.UnappliedAfter <= 0:
		return errors.New("reconcile: the times after which something is stuck, lost or unapplied must be positive")
	case c.RepairLimit < 1 || c.RepairLimit > 100_000:
		return fmt.Errorf("reconcile: repair limit %d: must be 1 to 100000", c.RepairLimit)
	case c.SKUs < 1 || c.SKUs > 10_000 || c.KeepAfterEnd < 0:
		return fmt.Errorf("reconcile: %d SKUs kept %v after the end: must be 1 to 10000, and not negative", c.SKUs, c.KeepAfterEnd)
	}
	return nil
}
