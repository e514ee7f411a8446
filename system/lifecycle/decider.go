package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hotsku/hotsku/system/order/allocate"
	"github.com/hotsku/hotsku/system/seckill"
)

// Errors of the Decider. Any other error means that it is not known what
// became of the order: the same call again will tell.
var (
	ErrUnknownOrder = errors.New("lifecycle: no such order")
	ErrNotOwner     = errors.New("lifecycle: the order belongs to another user")
)

// Defaults and bounds of Config.
const (
	TxTimeoutDefault = 5 * time.Second
	// BatchMax is how many orders one transaction expires.
	BatchMax = 100
	// tries bounds how often a call looks again after it lost a race, and
	// reruns how often a transaction is run again.
	tries = 4
)

// Config is what a Decider works with. Zero values take the defaults where
// there are any.
type Config struct {
	// Pool's size bounds how many calls make progress at once.
	Pool *pgxpool.Pool
	// Allocator is how units are stored; default allocate.Token.
	Allocator allocate.Allocator
	// TxTimeout bounds one transaction, waiting for a connection included.
	TxTimeout time.Duration
	// Log takes a line for each order that cannot be ended; default is to
	// discard.
	Log *slog.Logger
}

// Stats counts what was decided here. Safe for concurrent use.
type Stats struct {
	Paid, Cancelled, Expired atomic.Int64
	Returned                 atomic.Int64 // units put back on sale
	Reruns                   atomic.Int64 // transactions run again after a lost race
	Fails                    atomic.Int64 // transactions that failed, outcome perhaps unknown
	Stuck                    atomic.Int64 // orders whose rows contradict each other: a person must look
}

// Decider ends orders. Safe for concurrent use.
type Decider struct {
	cfg   Config
	stats Stats
}

// New checks the configuration and returns a Decider.
func New(c Config) (*Decider, error) {
	if c.Allocator == nil {
		c.Allocator = allocate.Token{}
	}
	if c.TxTimeout == 0 {
		c.TxTimeout = TxTimeoutDefault
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.Pool == nil:
		return nil, errors.New("lifecycle: no pool")
	case c.TxTimeout < 0:
		return nil, fmt.Errorf("lifecycle: transaction timeout %v: must be positive", c.TxTimeout)
	}
	return &Decider{cfg: c}, nil
}

// Stats returns the counters, live.
func (d *Decider) Stats() *Stats { return &d.stats }

// Claim names an order and who asks for it, for which activity.
type Claim struct {
	OrderID    string
	UserID     int64
	ActivityID int64
}

// Outcome is how an order stands after a call. Changed says that this call
// made it so.
type Outcome struct {
	Status        seckill.OrderStatus
	Changed       bool
	ReservationID string
	RequestID     string
	SKUID         int64
}

// Pay marks an order paid. Outcome.Status is PAID, or CANCELLED or EXPIRED if
// the order had ended, or ended now for its payment came too late. Repeating
// a call changes nothing.
func (d *Decider) Pay(ctx context.Context, c Claim) (Outcome, error) {
	return d.endOne(ctx, pay, c)
}

// Cancel cancels an unpaid order. Outcome.Status is CANCELLED, or PAID or
// EXPIRED if that came first. Repeating a call changes nothing.
func (d *Decider) Cancel(ctx context.Context, c Claim) (Outcome, error) {
	return d.endOne(ctx, cancel, c)
}

func (d *Decider) endOne(ctx context.Context, m move, c Claim) (Outcome, error) {
	ctx, stop := context.WithTimeout(ctx, d.cfg.TxTimeout)
	defer stop()
	for range tries {
		o, err := d.read(ctx, c)
		if err != nil || o.Status != seckill.OrderCreated {
			return o, err
		}
		ended, err := d.end(ctx, m, []string{c.OrderID})
		if err == nil && len(ended) == 0 {
			// Ended meanwhile, or its payment is overdue.
			ended, err = d.end(ctx, expire, []string{c.OrderID})
		}
		if err != nil {
			return Outcome{}, fmt.Errorf("%s order %s: %w", m.name, c.OrderID, err)
		}
		if len(ended) == 1 {
			o.Status, o.Changed = ended[0].status, true
			return o, nil
		}
	}
	return Outcome{}, fmt.Errorf("%s order %s: %w", m.name, c.OrderID, errLostRace)
}

// Expire expires those of the orders that are unpaid and overdue, and
// returns how many. Others, unknown ones among them, are left as they are.
// It stops at the first error; what was expired before it stays so.
func (d *Decider) Expire(ctx context.Context, orderIDs []string) (expired int, err error) {
	ids := slices.Clone(orderIDs)
	slices.Sort(ids)
	for chunk := range slices.Chunk(slices.Compact(ids), BatchMax) {
		n, err := d.expire(ctx, chunk)
		expired += n
		if err != nil {
			return expired, fmt.Errorf("expire orders: %w", err)
		}
	}
	return expired, nil
}

// expire halves a batch the database refuses, so that an order whose rows
// contradict each other keeps no other from its end.
func (d *Decider) expire(ctx context.Context, ids []string) (expired int, err error) {
	ended, err := d.end(ctx, expire, ids)
	switch {
	case err == nil:
		return len(ended), nil
	case !refused(err):
		return 0, err
	case len(ids) == 1:
		d.stats.Stuck.Add(1)
		d.cfg.Log.Error("order cannot be expired: its rows contradict each other", "order_id", ids[0], "error", err)
		return 0, nil
	}
	half := len(ids) / 2
	expired, err = d.expire(ctx, ids[:half])
	if err != nil {
		return expired, err
	}
	n, err := d.expire(ctx, ids[half:])
	return expired + n, err
}

// end runs the transaction until it is not in another's way.
func (d *Decider) end(ctx context.Context, m move, ids []string) ([]ended, error) {
	for attempt := 1; ; attempt++ {
		done, err := d.attempt(ctx, m, ids)
		if err == nil {
			d.count(done)
			return done, nil
		}
		if !lostRace(err) || attempt == tries || ctx.Err() != nil {
			d.stats.Fails.Add(1)
			return nil, err
		}
		d.stats.Reruns.Add(1)
	}
}

func (d *Decider) count(done []ended) {
	for i := range done {
		switch done[i].status {
		case seckill.OrderPaid:
			d.stats.Paid.Add(1)
		case seckill.OrderCancelled:
			d.stats.Cancelled.Add(1)
		case seckill.OrderExpired:
			d.stats.Expired.Add(1)
		}
		if done[i].returns() {
			d.stats.Returned.Add(1)
		}
	}
}

var (
	// errLostRace: what this transaction saw was changed by another.
	errLostRace = errors.New("lifecycle: lost a race")
	// errContradiction: the rows of an order do not belong together.
	errContradiction = errors.New("lifecycle: reservation is not in the state its order says")
)

func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// lostRace says that running the transaction again at once is the answer:
// serialization failure, deadlock, lock not available.
func lostRace(err error) bool {
	switch sqlState(err) {
	case "40001", "40P01", "55P03":
		return true
	}
	return errors.Is(err, errLostRace)
}

// refused says that the database will not take it, however often: data
// exceptions, integrity violations, rows that contradict each other.
func refused(err error) bool {
	state := sqlState(err)
	return strings.HasPrefix(state, "22") || strings.HasPrefix(state, "23") ||
		errors.Is(err, allocate.ErrUnitsLost) || errors.Is(err, errContradiction)
}
