package mq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
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
// when ctx ended; it waits an outage out by itself.
type Handler func(ctx context.Context, batch []Delivery) error

// ConsumerConfig says what to consume and how much at once.
type ConsumerConfig struct {
	Config
	Topic string // without prefix
	Group string // without prefix
	// Batch is how many messages of one queue a handler gets at most.
	Batch int
	// Workers bounds the handlers running at once: tie it to the database
	// pool (R15.5, R15.8).
	Workers int
	// Drain bounds how long Run waits for running handlers after ctx ends.
	Drain time.Duration
}

func (c ConsumerConfig) validate() error {
	if err := c.Config.validate(); err != nil {
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

// Consumer consumes one topic in one group.
type Consumer struct {
	cfg     ConsumerConfig
	handle  Handler
	log     *slog.Logger
	running sync.WaitGroup
	mu      sync.RWMutex // held for reading while a handler is being admitted
	stopped bool
	closed  chan struct{} // after the client is gone
}

// NewConsumer returns a consumer; Run starts it.
func NewConsumer(cfg ConsumerConfig, handle Handler, log *slog.Logger) (*Consumer, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("consumer: %w", err)
	}
	return &Consumer{cfg: cfg, handle: handle, log: log, closed: make(chan struct{})}, nil
}

// Run consumes until ctx ends, calling ready once it is subscribed. Handlers
// still running get Drain to finish; what they do not finish is not
// acknowledged and comes again.
func (c *Consumer) Run(ctx context.Context, ready func()) error {
	opts := []consumer.Option{
		consumer.WithNameServer(primitive.NamesrvAddr{c.cfg.NameServer}),
		consumer.WithGroupName(c.cfg.TopicPrefix + c.cfg.Group),
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
	err = push.Subscribe(c.cfg.TopicPrefix+c.cfg.Topic, consumer.MessageSelector{},
		func(_ context.Context, msgs ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			return c.consume(work, msgs)
		})
	if err != nil {
		return fmt.Errorf("subscribe %s: %w", c.cfg.Topic, err)
	}
	if err := push.Start(); err != nil {
		return fmt.Errorf("start consumer of %s: %w", c.cfg.Topic, err)
	}
	ready()
	<-ctx.Done()

	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	if !waitFor(&c.running, c.cfg.Drain) {
		c.log.Warn("handlers did not finish in time; their messages will come again", "drain", c.cfg.Drain)
		cancel()
		c.running.Wait()
	}
	c.shutdown(push)
	close(c.closed)
	return nil
}

// consume runs the handler. A panic in a handler would block its offset for
// 15 minutes inside the library; anything but success sends the whole batch
// back to the broker, for 10 s and more. So a batch that cannot be decided
// now is held until the client is gone: it comes again at once elsewhere.
func (c *Consumer) consume(ctx context.Context, msgs []*primitive.MessageExt) (result consumer.ConsumeResult, err error) {
	if !c.admit() {
		<-c.closed
		return consumer.ConsumeRetryLater, nil
	}
	held := false
	defer func() {
		if !held {
			c.running.Done()
		}
	}()
	batch := make([]Delivery, len(msgs))
	for i, m := range msgs {
		batch[i] = Delivery{Topic: m.Topic, Offset: m.QueueOffset, Body: m.Body, ReconsumeTimes: int(m.ReconsumeTimes)}
		if m.Queue != nil {
			batch[i].Queue = m.Queue.QueueId
		}
	}
	if err := c.guarded(ctx, batch); err != nil {
		c.log.Warn("batch not decided; it is not acknowledged", "topic", c.cfg.Topic, "messages", len(batch), "error", err)
		held = true
		c.running.Done()
		<-c.closed
		return consumer.ConsumeRetryLater, nil
	}
	return consumer.ConsumeSuccess, nil
}

// guarded calls the handler and turns a panic into a bounded number of
// repeats: a handler is idempotent, and a batch must not be lost to one.
func (c *Consumer) guarded(ctx context.Context, batch []Delivery) (err error) {
	const attempts = 3
	for i := 1; ; i++ {
		err = func() (err error) {
			defer func() {
				if p := recover(); p != nil {
					c.log.Error("handler panicked", "panic", p, "stack", string(debug.Stack()))
					err = fmt.Errorf("handler panicked: %v", p)
				}
			}()
			return c.handle(ctx, batch)
		}()
		if err == nil || ctx.Err() != nil || i == attempts {
			return err
		}
	}
}

func (c *Consumer) admit() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.stopped {
		return false
	}
	c.running.Add(1)
	return true
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
