package mq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
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
	}
	return nil
}

// Stats counts a consumer's work. Safe to read at any time.
type Stats struct {
	Messages    atomic.Int64 // delivered to the handler
	Redelivered atomic.Int64 // of them, handed back to the broker before
	Panics      atomic.Int64 // of the handler; each is a defect
	HandedBack  atomic.Int64 // messages of batches the handler could not decide
}

// Consumer consumes its topics in one group.
type Consumer struct {
	cfg    ConsumerConfig
	handle Handler
	log    *slog.Logger

	Stats Stats

	workers chan struct{} // a slot a running handler: the library bounds each topic apart, the retry topic too
	running sync.WaitGroup
	mu      sync.RWMutex // held for reading while a handler is being admitted
	stopped bool
	closed  chan struct{} // after the client is gone
}

// NewConsumer returns a consumer; Run starts it.
func NewConsumer(cfg ConsumerConfig, handle Handler, log *slog.Logger) (*Consumer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("consumer: %w", err)
	}
	if handle == nil || log == nil {
		return nil, errors.New("consumer: handler and log are required")
	}
	return &Consumer{cfg: cfg, handle: handle, log: log, workers: make(chan struct{}, cfg.Workers), closed: make(chan struct{})}, nil
}

// Run consumes until ctx ends, calling ready once it is subscribed. Handlers
// still running get Drain to finish; what they do not finish is not
// acknowledged and comes again. It may be called once.
func (c *Consumer) Run(ctx context.Context, ready func()) error {
	opts := []consumer.Option{
		consumer.WithNameServer(primitive.NamesrvAddr{c.cfg.NameServer}),
		consumer.WithGroupName(c.cfg.group(c.cfg.Group)),
		consumer.WithInstance(instanceName("consumer", os.Getpid())),
		consumer.WithConsumerModel(consumer.Clustering),
		// The default starts at the end: what was sent before the group's
		// first start would never be consumed.
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
		consumer.WithConsumeMessageBatchMaxSize(c.cfg.Batch),
		consumer.WithPullBatchSize(int32(c.cfg.Batch)),
		consumer.WithConsumeGoroutineNums(c.cfg.Workers),
	}
	if c.cfg.AccessKey != "" {
		opts = append(opts, consumer.WithCredentials(primitive.Credentials{AccessKey: c.cfg.AccessKey, SecretKey: c.cfg.SecretKey}))
	}
	push, err := rocketmq.NewPushConsumer(opts...)
	if err != nil {
		return fmt.Errorf("consumer of %s: %w", c.cfg.Topic, err)
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	for _, topic := range append([]string{c.cfg.Topic}, c.cfg.AlsoTopics...) {
		err = push.Subscribe(c.cfg.topic(topic), consumer.MessageSelector{},
			func(_ context.Context, msgs ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
				return c.consume(work, msgs)
			})
		if err != nil {
			return fmt.Errorf("subscribe %s: %w", topic, err)
		}
	}
	if err := push.Start(); err != nil {
		return fmt.Errorf("start consumer of %s: %w", c.cfg.Topic, err)
	}
	ready()
	c.report(ctx, push)

	// No more pulls: a message that arrives while the library closes its
	// channels can crash it.
	push.Suspend()
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	if !waitFor(&c.running, c.cfg.Drain) {
		c.log.Warn("handlers did not finish in time; their messages will come again", "drain", c.cfg.Drain)
		cancel()
		if !waitFor(&c.running, c.cfg.Drain) {
			c.log.Error("handlers do not heed their context; leaving them behind")
		}
	}
	c.settle(push)
	c.shutdown(push)
	close(c.closed)
	return nil
}

// OffsetsEvery is how often the broker is told what was acknowledged, and so by
// how much a group seems further behind than it is, and how much comes again
// after a kill. The library's own 5 s are more than orders are allowed to take.
const OffsetsEvery = time.Second

// report tells the broker the offsets until ctx ends.
func (c *Consumer) report(ctx context.Context, push rocketmq.PushConsumer) {
	tick := time.NewTicker(OffsetsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.persist(push)
		}
	}
}

// persist sends the offsets, without waiting for an answer.
func (c *Consumer) persist(push rocketmq.PushConsumer) {
	if p, ok := push.(interface{ PersistConsumerOffset() error }); ok {
		if err := p.PersistConsumerOffset(); err != nil {
			c.log.Warn("offsets not stored; messages will come again", "error", err)
		}
	}
}

// settleTime is what the library, and then the broker, get to note the last
// acknowledgements.
const settleTime = 100 * time.Millisecond

// settle sees that the offsets reach the broker. The library notes an
// acknowledgement after the handler has returned, and none once Shutdown
// began; its Shutdown sends the offsets without waiting for an answer and
// cuts the connection they travel on. Neither offers an event to wait for;
// what is missed comes again.
func (c *Consumer) settle(push rocketmq.PushConsumer) {
	time.Sleep(settleTime)
	c.persist(push)
	time.Sleep(settleTime)
}

// consume runs the handler. Anything but success sends the whole batch back
// to the broker for 10 s and more, so a batch that is left undecided by the
// end of the process is held until the client is gone: unacknowledged, it
// comes again elsewhere at once.
func (c *Consumer) consume(ctx context.Context, msgs []*primitive.MessageExt) (consumer.ConsumeResult, error) {
	if !c.admit() {
		<-c.closed
		return consumer.ConsumeRetryLater, nil
	}
	batch := make([]Delivery, len(msgs))
	for i, m := range msgs {
		batch[i] = Delivery{Topic: m.Topic, Offset: m.QueueOffset, Body: m.Body, ReconsumeTimes: int(m.ReconsumeTimes)}
		if m.Queue != nil {
			batch[i].Queue = m.Queue.QueueId
		}
		if m.ReconsumeTimes > 0 {
			c.Stats.Redelivered.Add(1)
		}
	}
	c.Stats.Messages.Add(int64(len(batch)))
	err := c.decide(ctx, batch)
	c.release()
	switch {
	case err == nil:
		return consumer.ConsumeSuccess, nil
	case ctx.Err() != nil:
		c.log.Warn("batch not decided before the end; it will come again", "topic", c.cfg.Topic, "messages", len(batch), "error", err)
		<-c.closed
	default:
		c.Stats.HandedBack.Add(int64(len(batch)))
		c.log.Error("batch cannot be decided; the broker delivers it again later", "topic", c.cfg.Topic, "messages", len(batch),
			"queue", batch[0].Queue, "offset", batch[0].Offset, "error", err)
	}
	return consumer.ConsumeRetryLater, nil
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

// admit takes a worker's slot; false means that the consumer is ending.
func (c *Consumer) admit() bool {
	c.workers <- struct{}{}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.stopped {
		<-c.workers
		return false
	}
	c.running.Add(1)
	return true
}

func (c *Consumer) release() {
	c.running.Done()
	<-c.workers
}

// shutdown persists the offsets and unregisters. The library's Shutdown can
// hang or crash when the broker is gone; the process is ending either way.
func (c *Consumer) shutdown(push rocketmq.PushConsumer) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				c.log.Warn("consumer shutdown crashed", "panic", p)
			}
		}()
		if err := push.Shutdown(); err != nil {
			c.log.Warn("consumer shutdown", "error", err)
		}
	}()
	select {
	case <-done:
	case <-time.After(3 * time.Second):
		c.log.Warn("consumer shutdown did not end in 3s; the broker will notice by heartbeat")
	}
}

// waitFor waits for the group, at most for limit.
func waitFor(wg *sync.WaitGroup, limit time.Duration) bool {
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}
