package order

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/hotsku/hotsku/system/order/allocate"
	"github.com/hotsku/hotsku/system/seckill"
)

// readCommitted lets each statement of the first round trip see what was
// committed while it waited at the gate or on an inbox entry.
var readCommitted = pgx.TxOptions{IsoLevel: pgx.ReadCommitted}

// attempt runs the transaction once over messages of one SKU. After an error
// nothing of it is in the database, unless the error is a COMMIT's.
func (p *Processor) attempt(ctx context.Context, sku allocate.SKU, messages []message, exclusive bool) error {
	p.hit(seckill.FaultConsumerBeforeTx)
	// A transaction under way is worth finishing when the process drains;
	// its own deadline bounds it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.cfg.TxTimeout)
	defer cancel()
	conn, err := p.cfg.Pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("acquire connection: %w", err)
	}
	defer conn.Release()

	start := p.cfg.Now()
	tx, f, err := p.open(ctx, conn.Conn(), sku, messages, exclusive)
	if err != nil {
		return err
	}
	defer rollback(ctx, tx)
	v := decide(messages, f, p.cfg.IDs.NewOrderID)
	if v.short > 0 {
		if err := p.proveExhausted(ctx, tx, sku, len(f.units)); err != nil {
			return err
		}
	}
	if err := p.write(ctx, tx, sku, f.offer, v.decisions); err != nil {
		return err
	}
	p.hit(seckill.FaultConsumerInTx)
	if err := tx.Commit(ctx); err != nil {
		p.stats.CommitsUnknown.Add(1)
		return fmt.Errorf("commit: %w", err)
	}
	p.hit(seckill.FaultConsumerAfterCommit)
	p.committed(v, start)
	return nil
}

// open begins the transaction and makes the first round trip.
func (p *Processor) open(ctx context.Context, conn *pgx.Conn, sku allocate.SKU, messages []message, exclusive bool) (pgx.Tx, facts, error) {
	n := len(messages)
	messageIDs, topics, reservations, users := make([]string, n), make([]string, n), make([]string, n), make([]int64, n)
	for i := range messages {
		m := &messages[i]
		messageIDs[i], topics[i], reservations[i], users[i] = m.MessageID, m.delivery.Topic, m.ReservationID, m.UserID
	}
	f := facts{units: make([]int64, 0, n)}

	b := &pgx.Batch{}
	b.BeginTx(readCommitted)
	p.queueGate(b, sku, exclusive)
	b.Queue(p.sql.inboxInsert, p.cfg.Group, messageIDs, topics, reservations).Query(collectSet(&f.fresh, n))
	b.Queue(p.sql.activityRead, sku.ActivityID, sku.SKUID).QueryRow(func(row pgx.Row) error {
		o := &f.offer
		err := row.Scan(&o.status, &o.version, &o.resell, &o.priceCents, &o.now)
		if errors.Is(err, pgx.ErrNoRows) {
			return errUnknownSKU
		}
		o.paymentDue = o.now.Add(p.cfg.PaymentWindow)
		return err
	})
	b.Queue(p.sql.decidedRead, reservations).Query(collectSet(&f.decided, n))
	b.Queue(p.sql.buyersRead, sku.ActivityID, sku.SKUID, users).Query(collectSet(&f.buyers, n))
	p.cfg.Allocator.Lock(b, sku, n, &f.units)

	results := conn.SendBatch(ctx, b)
	tx := results.Tx()
	if err := results.Close(); err != nil {
		rollback(ctx, tx)
		return nil, facts{}, fmt.Errorf("first round trip: %w", err)
	}
	return tx, f, nil
}

// proveExhausted returns nil if no unit exists beyond the locked ones, and
// errInDoubt if another transaction may still give one back.
func (p *Processor) proveExhausted(ctx context.Context, tx pgx.Tx, sku allocate.SKU, locked int) error {
	if locked == 0 {
		p.stats.ClaimsEmpty.Add(1)
	}
	exhausted, err := p.cfg.Allocator.Exhausted(ctx, tx, sku, locked)
	if err != nil {
		return err
	}
	if !exhausted {
		p.stats.ShortInDoubt.Add(1)
		return errInDoubt
	}
	return nil
}

func (p *Processor) queueGate(b *pgx.Batch, sku allocate.SKU, exclusive bool) {
	gate := p.sql.gateShared
	if exclusive {
		gate = p.sql.gateExclusive
	}
	b.Queue(gate, sku.ActivityID, sku.SKUID)
}

// rollback ends a transaction that may have ended already. Its error says
// nothing new: a connection in doubt is not put back into the pool.
func rollback(ctx context.Context, tx pgx.Tx) { _ = tx.Rollback(ctx) }

// collectSet reads rows of one column into a set made for n of them.
func collectSet[T comparable](set *map[T]struct{}, n int) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		*set = make(map[T]struct{}, n)
		var value T
		_, err := pgx.ForEachRow(rows, []any{&value}, func() error {
			(*set)[value] = struct{}{}
			return nil
		})
		return err
	}
}

// hit reports that a fault point was reached.
func (p *Processor) hit(point seckill.FaultPoint) {
	if p.cfg.Hit != nil {
		p.cfg.Hit(point)
	}
}
