package order

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/hotsku/hotsku/system/seckill"
)

// reasonLimitBytes bounds the reason kept with a dead letter.
const reasonLimitBytes = 500

// rejectable says that parking the message may end its reservation. A message
// of a newer schema decides nothing: its reservation is left to a build that
// understands it.
func (l *deadLetter) rejectable() bool {
	return l.class != classNewerSchema && l.identified()
}

// park sets a message aside in one transaction: a dead letter and, with
// reject, the rejection of its reservation and the compensation, unless
// message or reservation were decided before.
func (p *Processor) park(ctx context.Context, letter deadLetter, reject bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.cfg.TxTimeout)
	defer cancel()
	conn, err := p.cfg.Pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("acquire connection: %w", err)
	}
	defer conn.Release()

	start := p.cfg.Now()
	m := &letter.message
	fresh := make(map[string]struct{})
	decided := make(map[string]struct{})
	b := &pgx.Batch{}
	b.BeginTx(readCommitted)
	if reject {
		p.queueGate(b, m.sku(), false)
		b.Queue(p.sql.inboxInsert, p.cfg.Group, []string{m.MessageID}, []string{m.delivery.Topic}, []string{m.ReservationID}).
			Query(collectSet(&fresh, 1))
		b.Queue(p.sql.decidedRead, []string{m.ReservationID}).Query(collectSet(&decided, 1))
	}
	b.Queue(p.sql.deadLetterInsert, m.delivery.Topic, m.delivery.Queue, m.delivery.Offset,
		storable(m.MessageID, 64), storable(m.ReservationID, 64), letter.class,
		storable(letter.cause.Error(), reasonLimitBytes), m.delivery.Body)
	results := conn.SendBatch(ctx, b)
	tx := results.Tx()
	defer rollback(ctx, tx)
	if err := results.Close(); err != nil {
		if !reject {
			return fmt.Errorf("%w: %w", errUnparkable, err)
		}
		return fmt.Errorf("park: %w", err)
	}
	var v verdict
	if len(fresh) > 0 && len(decided) == 0 {
		v.decisions = []decision{{message: m, status: seckill.StatusRejectedPoison}}
	}
	if err := p.write(ctx, tx, m.sku(), offer{}, v.decisions); err != nil {
		return fmt.Errorf("park: %w", err)
	}
	if err := tx.Commit(ctx); err != nil {
		p.stats.CommitsUnknown.Add(1)
		return fmt.Errorf("park: commit: %w", err)
	}
	p.committed(v, start)
	p.stats.Parked.Add(1)
	return nil
}

// storable makes any string acceptable to a text column.
func storable(s string, limitBytes int) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
	for len(s) > limitBytes {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return s
}
