package mq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/hotsku/hotsku/system/pause"
)

// Delivery is one message as the broker delivered it, at least once.
type Delivery struct {
	Topic          string
	Queue          int
	Offset         int64
	Body           []byte
	ReconsumeTimes int
}

// Handler decides a batch from one queue. nil acknowledges all of it, and
// must mean that all of it is decided and committed. It returns an error only
// when ctx ended; it waits an outage out by itself. It is called again with
// what it did not decide, so it must be idempotent.
//
// A handler that panics, or returns an error while ctx lives, has a defect.
// It is tried handlerAttempts times with the batch, then with each message
// alone, so that one message takes no others with it. If some remain, the
// batch is handed back to the broker, which delivers it again after 10 s,
// 30 s, 1 min … 16 times, and then keeps it in the dead-letter topic: a
// message is never acknowledged undecided, and never blocks a worker.
type Handler func(ctx context.Context, batch []Delivery) error

const handlerAttempts = 3

// ConsumerConfig says what to consume and how much at once.
type ConsumerConfig struct {
	Config
	Topic string // without prefix
	// AlsoTopics are further topics of the same group, without prefix. All
	// consumers of a group must have the same.
	AlsoTopics []string
	Group      string // without prefix
	// Batch is how many messages of one queue a handler gets at most.
	Batch int
	// Workers bounds the handlers running at once: tie it to the database
	// pool (R15.5, R15.8).
	Workers int
	// Drain bounds how long Run waits for running handlers after ctx ends,
	// and once more after it ended their contexts.
	Drain time.Duration
	// Stall is for how long messages may wait in this client's queues, with
	// none delivered and no handler running, until the client is started anew:
	// after a cut connection the library may not pull for half a minute. It is
	// doubled at each restart that brought nothing. 0: never.
	Stall time.Duration
	// Waiting counts what the group has still to consume of Topic, by queue.
	// Required where Stall is not 0.
	Waiting func(ctx context.Context) (map[Queue]int64, error) `json:"-"`
}

// StallDefault is above what a busy broker or a rebalance takes.
const StallDefault = 5 * time.Second

// Queue names a queue of a topic.
type Queue struct {
	Broker string
	ID     int
}

// Validate checks addresses and bounds.
func (c ConsumerConfig) Validate() error {
	if err := c.Config.Validate(); err != nil {
		return err
	}
	switch {
	case c.Topic == "" || c.Group == "":
		return errors.New("topic and group are required")
	case c.Batch < 1 || c.Batch > 1024:
		return fmt.Errorf("batch %d: must be 1 to 1024", c.Batch)
	case c.Workers < 1 || c.Workers > 256:
		return fmt.Errorf("workers %d: must be 1 to 256", c.Workers)
	case c.Drain <= 0:
		return fmt.Errorf("drain %v: must be positive", c.Drain)
	case c.Stall < 0:
		return fmt.Errorf("stall %v: must not be negative", c.Stall)
	}
	return nil
}

// Stats counts a consumer's work. Safe to read at any time.
type Stats struct {
	Messages    atomic.Int64 // delivered to the handler
	Redelivered atomic.Int64 // of them, handed back to the broker before
	Panics      atomic.Int64 // of the handler; each is a defect
	HandedBack  atomic.Int64 // messages of batches the handler could not decide
	Restarts    atomic.Int64 // of the client, which had stalled
}

// Consumer consumes its topics in one group.
type Consumer struct {
	cfg    ConsumerConfig
	handle Handler
	log    *slog.Logger

	Stats Stats

	workers chan struct{} // a slot a running handler: the library bounds each topic apart, the retry topic too
}

// NewConsumer returns a consumer; Run starts it.
func NewConsumer(cfg ConsumerConfig, handle Handler, log *slog.Logger) (*Consumer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("consumer: %w", err)
	}
	if handle == nil || log == nil || cfg.Stall > 0 && cfg.Waiting == nil {
		return nil, errors.New("consumer: handler and log are required, and with a stall who says what waits")
	}
	return &Consumer{cfg: cfg, handle: handle, log: log, workers: make(chan struct{}, cfg.Workers)}, nil
}

// Run consumes until ctx ends, calling ready once it is subscribed. Handlers
// still running get Drain to finish; what they do not finish is not
// acknowledged and comes again. A client that stalls is replaced by a new one
// (ConsumerConfig.Stall). It may be called once.
func (c *Consumer) Run(ctx context.Context, ready func()) error {
	s, err := c.open(ctx)
	if err != nil {
		return err
	}
	ready()
	dog := watchdog{stall: c.cfg.Stall}
	for c.attend(ctx, s, &dog) {
		c.log.Error("messages wait and none comes: starting the client anew", "topic", c.cfg.Topic, "stalled", dog.stall)
		s.close()
		c.Stats.Restarts.Add(1)
		if s, err = c.reopen(ctx); err != nil {
			return nil // ctx has ended: there is no client to end
		}
		dog.restarted()
	}
	s.close()
	return nil
}

// reopen starts a client after a stall, trying until ctx ends.
func (c *Consumer) reopen(ctx context.Context) (*session, error) {
	for {
		s, err := c.open(ctx)
		if err == nil {
			return s, nil
		}
		c.log.Warn("client not started; trying again", "topic", c.cfg.Topic, "error", err)
		if err := pause.For(ctx, reopenPause); err != nil {
			return nil, err
		}
	}
}

// reopenPause is the time between two tries to start a client.
const reopenPause = time.Second

// OffsetsEvery is how often the broker is told what was acknowledged, and so by
// how much a group seems further behind than it is, and how much comes again
// after a kill. The library's own 5 s are more than orders are allowed to take.
const OffsetsEvery = time.Second

// attend tells the broker the offsets until ctx ends, or until the client
// stalls: then it returns true.
func (c *Consumer) attend(ctx context.Context, s *session, dog *watchdog) (stalled bool) {
	tick := time.NewTicker(OffsetsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
			s.persist()
			if c.cfg.Stall > 0 && dog.stuck(time.Now(), c.Stats.Messages.Load(), len(c.workers) > 0, func() bool { return s.behind(ctx) }) {
				return true
			}
		}
	}
}

// decide calls the handler until the batch is decided, as Handler says.
func (c *Consumer) decide(ctx context.Context, batch []Delivery) error {
	var err error
	for range handlerAttempts {
		if err = c.guarded(ctx, batch); err == nil || ctx.Err() != nil {
			return err
		}
	}
	if len(batch) == 1 {
		return err
	}
	var errs []error
	for i := range batch {
		if err := ctx.Err(); err != nil { // what follows is undecided
			return errors.Join(append(errs, err)...)
		}
		if err := c.guarded(ctx, batch[i:i+1]); err != nil {
			errs = append(errs, fmt.Errorf("offset %d: %w", batch[i].Offset, err))
		}
	}
	return errors.Join(errs...)
}

// guarded calls the handler and turns a panic into an error: in the library
// it would block the offset for 15 minutes.
func (c *Consumer) guarded(ctx context.Context, batch []Delivery) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.Stats.Panics.Add(1)
			c.log.Error("handler panicked", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("handler panicked: %v", p)
		}
	}()
	return c.handle(ctx, batch)
}
