package lifecycle

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hotsku/hotsku/system/order/allocate"
	"github.com/hotsku/hotsku/system/seckill"
)

var (
	//go:embed sql/order_read.sql
	orderRead string
	//go:embed sql/door_insert.sql
	doorInsert string
	//go:embed sql/order_end.sql
	orderEnd string
	//go:embed sql/reservation_end.sql
	reservationEnd string
	//go:embed sql/ledger_insert.sql
	ledgerInsert string
	//go:embed sql/outbox_insert.sql
	outboxInsert string
)

// readCommitted lets the update see what was committed while the transaction
// waited at the door.
var readCommitted = pgx.TxOptions{IsoLevel: pgx.ReadCommitted}

// move is one way an order ends.
type move struct {
	name        string // as the inbox records it
	entry       string // in the ledger
	status      seckill.OrderStatus
	reservation seckill.ReservationStatus // "" leaves the reservation ordered
	overdue     bool                      // possible after the due time, not before
}

var (
	pay    = move{"pay", "PAY", seckill.OrderPaid, "", false}
	cancel = move{"cancel", "CANCEL", seckill.OrderCancelled, seckill.StatusCancelled, false}
	expire = move{"expire", "EXPIRE", seckill.OrderExpired, seckill.StatusExpired, true}
)

// ended is an order that this transaction ended.
type ended struct {
	orderID, reservationID    string
	activityID, skuID, userID int64
	unit                      int64
	resell                    bool
	status                    seckill.OrderStatus
	reservation               seckill.ReservationStatus
}

// returns says that the unit goes back on sale.
func (e *ended) returns() bool { return e.reservation.ReturnsStock(e.resell) }

func (e *ended) compensation() seckill.Event {
	return seckill.Event{
		SchemaVersion: seckill.EventSchemaVersion, EventType: seckill.EventCompensate,
		OperationID: seckill.OperationIDOf(e.reservationID), ReservationID: e.reservationID,
		ActivityID: e.activityID, SKUID: e.skuID, UserID: e.userID, OrderID: e.orderID,
		Status: e.reservation, ReturnStock: e.returns(),
	}
}

// read finds the order as it stands, for its owner.
func (d *Decider) read(ctx context.Context, c Claim) (Outcome, error) {
	var o Outcome
	var userID, activityID int64
	err := d.cfg.Pool.QueryRow(ctx, orderRead, c.OrderID).Scan(&o.Status, &userID, &activityID, &o.ReservationID, &o.RequestID, &o.SKUID)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return o, ErrUnknownOrder
	case err != nil:
		return o, fmt.Errorf("read order %s: %w", c.OrderID, err)
	case userID != c.UserID || activityID != c.ActivityID:
		return Outcome{}, ErrNotOwner
	}
	return o, nil
}

// attempt runs the transaction once. After an error nothing of it is in the
// database, unless the error is the COMMIT's.
func (d *Decider) attempt(ctx context.Context, m move, ids []string) ([]ended, error) {
	// A transaction under way is worth finishing when the process drains; its
	// own deadline bounds it.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), d.cfg.TxTimeout)
	defer stop()
	conn, err := d.cfg.Pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("acquire connection: %w", err)
	}
	defer conn.Release()

	var entered int64
	var done []ended
	b := &pgx.Batch{}
	b.BeginTx(readCommitted)
	b.Queue(doorInsert, seckill.InboxOrderEnd, m.name, ids, m.overdue).Exec(func(tag pgconn.CommandTag) error {
		entered = tag.RowsAffected()
		return nil
	})
	b.Queue(orderEnd, string(m.status), ids, m.overdue).Query(func(rows pgx.Rows) (err error) {
		done, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (ended, error) {
			e := ended{status: m.status, reservation: m.reservation}
			return e, row.Scan(&e.orderID, &e.reservationID, &e.activityID, &e.skuID, &e.userID, &e.unit, &e.resell)
		})
		return err
	})
	results := conn.SendBatch(ctx, b)
	tx := results.Tx()
	// Its error says nothing new: a connection in doubt is not put back.
	defer func() { _ = tx.Rollback(ctx) }()
	if err := results.Close(); err != nil {
		return nil, fmt.Errorf("decide: %w", err)
	}
	switch {
	case entered == 0 && len(done) == 0:
		return nil, nil
	case entered != int64(len(done)):
		return nil, fmt.Errorf("%w: %d entered, %d ended", errLostRace, entered, len(done))
	}
	if err := d.write(ctx, tx, m, done); err != nil {
		return nil, err
	}
	if err := tx.Commit(ctx); err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	return done, nil
}

// write makes the second round trip: what follows from the decision.
func (d *Decider) write(ctx context.Context, tx pgx.Tx, m move, done []ended) error {
	n := len(done)
	activities, skus, units := make([]int64, n), make([]int64, n), make([]int64, n)
	orders, reservations, payloads := make([]string, n), make([]string, n), make([]string, n)
	returns := make([]bool, n)
	var sold, resold, retired allocate.Claims
	for i := range done {
		e := &done[i]
		activities[i], skus[i], units[i], orders[i], reservations[i] = e.activityID, e.skuID, e.unit, e.orderID, e.reservationID
		returns[i] = e.returns()
		claims := &retired
		switch {
		case m.reservation == "":
			claims = &sold
		case returns[i]:
			claims = &resold
		}
		claims.Units = append(claims.Units, e.unit)
		claims.OrderIDs = append(claims.OrderIDs, e.orderID)
		claims.ReservationIDs = append(claims.ReservationIDs, e.reservationID)
		payload, err := json.Marshal(e.compensation())
		if err != nil {
			return fmt.Errorf("encode event of %s: %w", e.reservationID, err)
		}
		payloads[i] = string(payload)
	}
	b := &pgx.Batch{}
	if len(sold.Units) > 0 {
		d.cfg.Allocator.Sell(b, sold)
	}
	if len(resold.Units) > 0 {
		d.cfg.Allocator.Release(b, resold, true)
	}
	if len(retired.Units) > 0 {
		d.cfg.Allocator.Release(b, retired, false)
	}
	b.Queue(ledgerInsert, m.entry, activities, skus, reservations, orders, units, returns)
	if m.reservation != "" {
		b.Queue(reservationEnd, string(m.reservation), reservations, returns).Exec(func(tag pgconn.CommandTag) error {
			if tag.RowsAffected() != int64(n) {
				return fmt.Errorf("%w: %d of %d", errContradiction, tag.RowsAffected(), n)
			}
			return nil
		})
		b.Queue(outboxInsert, seckill.EventCompensate, reservations, payloads)
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
