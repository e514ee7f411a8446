package outbox

import (
	"context"
	_ "embed"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/hotsku/hotsku/system/seckill"
)

var (
	//go:embed sql/lease.sql
	leaseDue string
	//go:embed sql/mark_published.sql
	markPublished string
	//go:embed sql/release.sql
	release string
)

// Stats counts what a Publisher did. Safe for concurrent use.
type Stats struct {
	Published    atomic.Int64 // events confirmed by the broker, repeats included
	Batches      atomic.Int64 // leases that found events
	SendsUnknown atomic.Int64 // sends without a confirmation
	StoreFails   atomic.Int64 // round trips to the database that failed
	Undecodable  atomic.Int64 // rows that are no event: left unpublished, in sight
}

// outcome is what became of a batch, by event id.
type outcome struct {
	confirmed []int64
	unknown   []int64 // to be leased again at once
}

func (o *outcome) empty() bool { return len(o.confirmed)+len(o.unknown) == 0 }

// batch is events leased to this publisher, side by side with their ids.
type batch struct {
	ids    []int64
	events []seckill.Event
}

// exchange records the outcome of the last batch and leases up to limit
// events, in one round trip and one transaction: one flush a batch.
func (p *Publisher) exchange(ctx context.Context, last outcome, limit int) (batch, error) {
	// Not given up by a drain: events leased unseen would rest until their
	// lease runs out.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), StoreTimeout)
	defer cancel()
	var next batch
	b := &pgx.Batch{}
	if len(last.confirmed) > 0 {
		b.Queue(markPublished, last.confirmed)
	}
	if len(last.unknown) > 0 {
		b.Queue(release, last.unknown)
	}
	if limit > 0 {
		b.Queue(leaseDue, limit, p.cfg.LeaseFor).Query(func(rows pgx.Rows) error {
			var id int64
			var payload []byte
			_, err := pgx.ForEachRow(rows, []any{&id, &payload}, func() error {
				event, err := seckill.DecodeEvent(payload)
				if err != nil {
					p.stats.Undecodable.Add(1)
					p.cfg.Log.Error("outbox: row is no event", "event_id", id, "error", err)
					return nil
				}
				next.ids, next.events = append(next.ids, id), append(next.events, event)
				return nil
			})
			return err
		})
	}
	if err := p.cfg.Pool.SendBatch(ctx, b).Close(); err != nil {
		return batch{}, fmt.Errorf("outbox: exchange: %w", err)
	}
	if len(next.ids) > 0 {
		p.stats.Batches.Add(1)
	}
	return next, nil
}
