package order

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hotsku/hotsku/system/order/allocate"
	"github.com/hotsku/hotsku/system/pause"
	"github.com/hotsku/hotsku/system/seckill"
)

// Defaults of Config.
const (
	BatchLimitDefault = 200
	RerunLimitDefault = 3
	TxTimeoutDefault  = 10 * time.Second
	BackoffMinDefault = 20 * time.Millisecond
	BackoffMaxDefault = 2 * time.Second

	PaymentWindowDefault = 15 * time.Minute
)

// PaymentWindowMax bounds Config.PaymentWindow.
const PaymentWindowMax = 7 * 24 * time.Hour

// Config is what a Processor works with. Zero values take the defaults where
// there are any.
type Config struct {
	// Pool should be opened with postgres.ConsumerSettings. Its size bounds
	// how many calls of Process make progress at once.
	Pool *pgxpool.Pool
	// IDs names the orders.
	IDs *seckill.IDGenerator
	// Allocator gives out the units; default allocate.Token.
	Allocator allocate.Allocator
	// SQL holds the statements by file name; default SQL.
	SQL fs.FS
	// Group is the inbox's consumer group; default seckill.GroupOrder.
	Group string
	// BatchLimit is the most messages one transaction takes; measured best
	// at 100 to 200.
	BatchLimit int
	// PaymentWindow is how long a new order may stay unpaid before it
	// expires, by the database's clock.
	PaymentWindow time.Duration
	// RerunLimit is how often a lost race is run again at once; after it, a
	// unique violation counts as the message's own, anything else as
	// transient.
	RerunLimit int
	// TxTimeout bounds one attempt, waiting for a connection included.
	TxTimeout time.Duration
	// Back-off between attempts while the database is not able: exponential
	// from BackoffMin to BackoffMax, of which a random half is waited.
	BackoffMin, BackoffMax time.Duration
	// Rand draws the jitter. Required; the Processor alone may use it.
	Rand *rand.Rand
	// Now is the process's clock, for durations only; default time.Now.
	// Deadlines of reservations are judged by the database's clock.
	Now func() time.Time
	// Wait waits for d or until ctx ends; default is a timer.
	Wait func(ctx context.Context, d time.Duration) error
	// Hit is told of each fault point reached; nil in production.
	Hit func(seckill.FaultPoint)
	// Decided is told of the decisions of a transaction after its commit; nil:
	// nobody is. It must not block, nor keep what it is given.
	Decided func([]Decided)
	// Log takes a line for each back-off and each parked message; default
	// is to discard.
	Log *slog.Logger
}

// Processor decides order-create messages. Safe for concurrent use; keep one
// queue on one caller, for a duplicate in two batches under way waits for
// the other's commit.
type Processor struct {
	cfg   Config
	sql   statements
	stats Stats

	randMu sync.Mutex // guards cfg.Rand
}

// New checks the configuration and returns a Processor.
func New(c Config) (*Processor, error) {
	if c.Allocator == nil {
		c.Allocator = allocate.Token{}
	}
	if c.SQL == nil {
		c.SQL = SQL
	}
	if c.Group == "" {
		c.Group = seckill.GroupOrder
	}
	if c.BatchLimit == 0 {
		c.BatchLimit = BatchLimitDefault
	}
	if c.RerunLimit == 0 {
		c.RerunLimit = RerunLimitDefault
	}
	if c.TxTimeout == 0 {
		c.TxTimeout = TxTimeoutDefault
	}
	if c.BackoffMin == 0 {
		c.BackoffMin = BackoffMinDefault
	}
	if c.BackoffMax == 0 {
		c.BackoffMax = BackoffMaxDefault
	}
	if c.PaymentWindow == 0 {
		c.PaymentWindow = PaymentWindowDefault
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Wait == nil {
		c.Wait = pause.For
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.Pool == nil:
		return nil, errors.New("order processor: no pool")
	case c.IDs == nil:
		return nil, errors.New("order processor: no id generator")
	case c.Rand == nil:
		return nil, errors.New("order processor: no source of jitter")
	case c.BatchLimit < 1 || c.BatchLimit > 1000:
		return nil, fmt.Errorf("order processor: batch limit %d: must be 1 to 1000", c.BatchLimit)
	case c.PaymentWindow < time.Second || c.PaymentWindow > PaymentWindowMax:
		return nil, fmt.Errorf("order processor: payment window %v: must be 1s to %v", c.PaymentWindow, PaymentWindowMax)
	case c.RerunLimit < 0 || c.TxTimeout < 0 || c.BackoffMin < 0 || c.BackoffMax < c.BackoffMin:
		return nil, errors.New("order processor: a limit is negative, or the longest back-off below the shortest")
	}
	sql, err := loadStatements(c.SQL)
	if err != nil {
		return nil, err
	}
	return &Processor{cfg: c, sql: sql}, nil
}

// Stats returns the counters, live.
func (p *Processor) Stats() *Stats { return &p.stats }

// Process returns nil when every delivery is decided and committed, so that
// the caller may acknowledge them all, and an error only when ctx ended
// first: then some may be decided, and redelivering all of them is harmless.
func (p *Processor) Process(ctx context.Context, deliveries []Delivery) error {
	in := sortOut(deliveries)
	p.stats.Duplicates.Add(int64(in.duplicates))
	for _, sku := range in.skus {
		for chunk := range slices.Chunk(in.groups[sku], p.cfg.BatchLimit) {
			if err := p.settle(ctx, sku, chunk); err != nil {
				return err
			}
		}
	}
	// Last, so that a broken copy cannot reject what its sound sibling in
	// the same batch can still order.
	for _, letter := range in.dead {
		if err := p.setAside(ctx, letter); err != nil {
			return err
		}
	}
	return nil
}

// settle runs the transaction over messages of one SKU until they are
// decided, halving them where the database refuses one.
func (p *Processor) settle(ctx context.Context, sku allocate.SKU, messages []message) error {
	kind, err := p.persist(ctx, func(exclusive bool) error {
		return p.attempt(ctx, sku, messages, exclusive)
	})
	if kind != refused {
		return err
	}
	if len(messages) == 1 {
		return p.setAside(ctx, deadLetter{messages[0], classRefused, err})
	}
	p.stats.Bisections.Add(1)
	half := len(messages) / 2
	if err := p.settle(ctx, sku, messages[:half]); err != nil {
		return err
	}
	return p.settle(ctx, sku, messages[half:])
}

// setAside parks a message that cannot be decided otherwise. Where even the
// rejection of its reservation is refused, the dead letter stands alone.
func (p *Processor) setAside(ctx context.Context, letter deadLetter) error {
	kind := refused
	var err error
	if letter.rejectable() {
		kind, err = p.persist(ctx, func(bool) error { return p.park(ctx, letter, true) })
	}
	if kind == refused {
		_, err = p.persist(ctx, func(bool) error { return p.park(ctx, letter, false) })
	}
	if err != nil {
		return err
	}
	p.cfg.Log.Error("message parked", "class", letter.class, "cause", letter.cause, "topic", letter.delivery.Topic,
		"queue", letter.delivery.Queue, "offset", letter.delivery.Offset, "reservation_id", letter.ReservationID)
	return nil
}

// persist repeats try until it succeeds, the database refuses the content
// (kind refused, with the cause), or ctx ends (kind transient, with an error
// wrapping its cause). Lost races are repeated at once, with the gate to
// itself, RerunLimit times; all else after a back-off.
func (p *Processor) persist(ctx context.Context, try func(exclusive bool) error) (kind failure, err error) {
	reruns, backoffs, exclusive := 0, 0, false
	for {
		if ctx.Err() != nil {
			return transient, fmt.Errorf("order: drained with messages undecided: %w", context.Cause(ctx))
		}
		err := try(exclusive)
		if err == nil {
			return 0, nil
		}
		kind := classify(err)
		if kind == refused || kind == collision && reruns == p.cfg.RerunLimit {
			return refused, err
		}
		if kind != transient {
			exclusive = true
			if reruns < p.cfg.RerunLimit {
				reruns++
				p.stats.Reruns.Add(1)
				continue
			}
		}
		reruns = 0
		p.stats.TransientFails.Add(1)
		delay := p.backoff(backoffs)
		backoffs++
		p.cfg.Log.Warn("order transaction failed, trying again", "error", err, "delay", delay, "failures", backoffs)
		if p.cfg.Wait(ctx, delay) != nil {
			return transient, fmt.Errorf("order: drained with messages undecided: %w", err)
		}
	}
}

// backoff returns the n-th delay.
func (p *Processor) backoff(n int) time.Duration {
	d := p.cfg.BackoffMax
	if n < 20 && p.cfg.BackoffMin<<n < d {
		d = p.cfg.BackoffMin << n
	}
	p.randMu.Lock()
	defer p.randMu.Unlock()
	return d/2 + time.Duration(p.cfg.Rand.Int64N(int64(d/2)+1))
}
