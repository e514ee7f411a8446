// Package outbox publishes the events that order transactions left in
// event_outbox. An event is published at least once: it is marked only after
// the broker confirmed it, and consumers of events take repeats in their
// stride (R7.4.6, R7.6.4, R7.10.7).
//
// Several publishers share the work by leases kept in the rows. A publisher
// that dies leaves its leases to run out by the database's clock.
package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hotsku/hotsku/system/pause"
	"github.com/hotsku/hotsku/system/seckill"
)

// Sender hands events to the broker. nil means that the broker confirmed all
// of them; an error means that any of them may or may not have arrived. Its
// context carries a deadline and outlives a drain. It must be safe for
// concurrent use if Config.Workers exceeds 1.
type Sender interface {
	SendEvents(ctx context.Context, events []seckill.Event) error
}

// Defaults of Config.
const (
	WorkersDefault     = 1
	BatchLimitDefault  = 100
	LeaseForDefault    = 10 * time.Second
	SendTimeoutDefault = 3 * time.Second
	StoreTimeout       = 5 * time.Second
	IdleMinDefault     = 20 * time.Millisecond
	IdleMaxDefault     = 200 * time.Millisecond
	BackoffMin         = 50 * time.Millisecond
	BackoffMax         = 2 * time.Second
)

// Config is what a Publisher works with. Zero values take the defaults where
// there are any.
type Config struct {
	Pool   *pgxpool.Pool
	Sender Sender
	// Workers is how many batches are under way at once.
	Workers int
	// BatchLimit is the most events sent at once.
	BatchLimit int
	// LeaseFor is how long a dead publisher's events stay untouched. It must
	// exceed SendTimeout, or a slow send is repeated by another publisher.
	LeaseFor time.Duration
	// SendTimeout bounds one call of SendEvents.
	SendTimeout time.Duration
	// While there is nothing to do the outbox is looked at after IdleMin,
	// then less and less often down to every IdleMax.
	IdleMin, IdleMax time.Duration
	// Wait waits for d or until ctx ends; default is a timer.
	Wait func(ctx context.Context, d time.Duration) error
	// Hit is told of each fault point reached; nil in production.
	Hit func(seckill.FaultPoint)
	// Log takes a line for each failure; default is to discard.
	Log *slog.Logger
}

// Publisher moves events from the outbox to the broker.
type Publisher struct {
	cfg   Config
	stats Stats
}

// New checks the configuration and returns a Publisher.
func New(c Config) (*Publisher, error) {
	if c.Workers == 0 {
		c.Workers = WorkersDefault
	}
	if c.BatchLimit == 0 {
		c.BatchLimit = BatchLimitDefault
	}
	if c.LeaseFor == 0 {
		c.LeaseFor = LeaseForDefault
	}
	if c.SendTimeout == 0 {
		c.SendTimeout = min(SendTimeoutDefault, c.LeaseFor/2)
	}
	if c.IdleMin == 0 {
		c.IdleMin = IdleMinDefault
	}
	if c.IdleMax == 0 {
		c.IdleMax = max(IdleMaxDefault, c.IdleMin)
	}
	if c.Wait == nil {
		c.Wait = pause.For
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.Pool == nil:
		return nil, errors.New("outbox publisher: no pool")
	case c.Sender == nil:
		return nil, errors.New("outbox publisher: no sender")
	case c.Workers < 1 || c.Workers > 64:
		return nil, fmt.Errorf("outbox publisher: %d workers: must be 1 to 64", c.Workers)
	case c.BatchLimit < 1 || c.BatchLimit > 1000:
		return nil, fmt.Errorf("outbox publisher: batch limit %d: must be 1 to 1000", c.BatchLimit)
	case c.SendTimeout <= 0 || c.LeaseFor <= c.SendTimeout:
		return nil, fmt.Errorf("outbox publisher: lease of %v must exceed the send timeout of %v", c.LeaseFor, c.SendTimeout)
	case c.IdleMin <= 0 || c.IdleMax < c.IdleMin:
		return nil, fmt.Errorf("outbox publisher: idle waits of %v to %v: must be positive and ascend", c.IdleMin, c.IdleMax)
	}
	return &Publisher{cfg: c}, nil
}

// Stats returns the counters, live.
func (p *Publisher) Stats() *Stats { return &p.stats }

// Run publishes until ctx ends, then finishes the batches under way and
// returns. Failures of broker and database are waited out, not returned.
func (p *Publisher) Run(ctx context.Context) {
	var workers sync.WaitGroup
	for range p.cfg.Workers {
		workers.Go(func() { p.work(ctx) })
	}
	workers.Wait()
}

// work runs one worker: settle what the last send left, lease what is due in
// the same round trip, send it.
func (p *Publisher) work(ctx context.Context) {
	var last outcome
	idle, failures := p.cfg.IdleMin, 0
	for ctx.Err() == nil {
		events, err := p.exchange(ctx, last, p.cfg.BatchLimit)
		if err != nil {
			// last is kept: settling it twice is harmless.
			p.stats.StoreFails.Add(1)
			p.pause(ctx, &failures, "outbox not reachable", err)
			continue
		}
		last = outcome{}
		if len(events.ids) == 0 {
			if p.cfg.Wait(ctx, idle) != nil {
				break
			}
			idle = min(2*idle, p.cfg.IdleMax)
			continue
		}
		idle = p.cfg.IdleMin
		if err := p.send(ctx, events.events); err != nil {
			last.unknown = events.ids
			p.stats.SendsUnknown.Add(1)
			p.pause(ctx, &failures, "events not confirmed", err)
			continue
		}
		failures = 0
		last.confirmed = events.ids
		p.stats.Published.Add(int64(len(events.ids)))
	}
	p.settle(ctx, last)
}

func (p *Publisher) send(ctx context.Context, events []seckill.Event) error {
	p.hit(seckill.FaultOutboxBeforePublish)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.cfg.SendTimeout)
	defer cancel()
	if err := p.cfg.Sender.SendEvents(ctx, events); err != nil {
		return err
	}
	p.hit(seckill.FaultOutboxAfterPublish)
	return nil
}

// settle records the last batch of a worker that drains. Should it fail, the
// lease runs out and the events are published again.
func (p *Publisher) settle(ctx context.Context, last outcome) {
	if last.empty() {
		return
	}
	if _, err := p.exchange(ctx, last, 0); err != nil {
		p.stats.StoreFails.Add(1)
		p.cfg.Log.Warn("outbox: drained without marking the last events, they will be repeated", "error", err)
	}
}

// pause waits out the n-th failure in a row.
func (p *Publisher) pause(ctx context.Context, failures *int, what string, err error) {
	delay := BackoffMax
	if n := *failures; n < 20 && BackoffMin<<n < delay {
		delay = BackoffMin << n
	}
	*failures++
	p.cfg.Log.Warn("outbox: "+what, "error", err, "delay", delay, "failures", *failures)
	_ = p.cfg.Wait(ctx, delay) // the caller looks at ctx
}

func (p *Publisher) hit(point seckill.FaultPoint) {
	if p.cfg.Hit != nil {
		p.cfg.Hit(point)
	}
}
