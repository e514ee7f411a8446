package mq

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// session is one client of the library, from its start to its end. A consumer
// has one after the other.
type session struct {
	*Consumer
	push   rocketmq.PushConsumer
	cancel context.CancelFunc // of running handlers

	running sync.WaitGroup
	mu      sync.RWMutex // held for reading while a handler is being admitted
	stopped bool
	closed  chan struct{} // after the client is gone

	share share
}

func newSession(c *Consumer) *session { return &session{Consumer: c, closed: make(chan struct{})} }

// open starts a client that consumes until close. Its handlers outlive ctx.
func (c *Consumer) open(ctx context.Context) (*session, error) {
	s := newSession(c)
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
		consumer.WithStrategy(s.share.allocate(c.cfg.topic(c.cfg.Topic))),
	}
	if c.cfg.AccessKey != "" {
		opts = append(opts, consumer.WithCredentials(c.cfg.credentials()))
	}
	if c.cfg.TLS {
		opts = append(opts, consumer.WithTls(true))
	}
	push, err := rocketmq.NewPushConsumer(opts...)
	if err != nil {
		return nil, fmt.Errorf("consumer of %s: %w", c.cfg.Topic, err)
	}
	s.push = push
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	for _, topic := range append([]string{c.cfg.Topic}, c.cfg.AlsoTopics...) {
		err = push.Subscribe(c.cfg.topic(topic), consumer.MessageSelector{},
			func(_ context.Context, msgs ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
				return s.consume(work, msgs)
			})
		if err != nil {
			cancel()
			return nil, fmt.Errorf("subscribe %s: %w", topic, err)
		}
	}
	if err := push.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("start consumer of %s: %w", c.cfg.Topic, err)
	}
	s.cancel = cancel
	return s, nil
}

// close ends the client, once the handlers under way have ended.
func (s *session) close() {
	// No more pulls: a message that arrives while the library closes its
	// channels can crash it.
	s.push.Suspend()
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	if !waitFor(&s.running, s.cfg.Drain) {
		s.log.Warn("handlers did not finish in time; their messages will come again", "drain", s.cfg.Drain)
		s.cancel()
		if !waitFor(&s.running, s.cfg.Drain) {
			s.log.Error("handlers do not heed their context; leaving them behind")
		}
	}
	s.settle()
	s.shutdown()
	s.cancel()
	close(s.closed)
}

// persist sends the offsets, without waiting for an answer.
func (s *session) persist() {
	if p, ok := s.push.(interface{ PersistConsumerOffset() error }); ok {
		if err := p.PersistConsumerOffset(); err != nil {
			s.log.Warn("offsets not stored; messages will come again", "error", err)
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
func (s *session) settle() {
	time.Sleep(settleTime)
	s.persist()
	time.Sleep(settleTime)
}

// consume runs the handler. Anything but success sends the whole batch back
// to the broker for 10 s and more, so a batch that is left undecided by the
// end of the process is held until the client is gone: unacknowledged, it
// comes again elsewhere at once.
func (s *session) consume(ctx context.Context, msgs []*primitive.MessageExt) (consumer.ConsumeResult, error) {
	if !s.admit() {
		<-s.closed
		return consumer.ConsumeRetryLater, nil
	}
	batch := make([]Delivery, len(msgs))
	for i, m := range msgs {
		batch[i] = Delivery{Topic: m.Topic, Offset: m.QueueOffset, Body: m.Body, ReconsumeTimes: int(m.ReconsumeTimes)}
		if m.Queue != nil {
			batch[i].Queue = m.Queue.QueueId
		}
		if m.ReconsumeTimes > 0 {
			s.Stats.Redelivered.Add(1)
		}
	}
	s.Stats.Messages.Add(int64(len(batch)))
	err := s.decide(ctx, batch)
	s.release()
	switch {
	case err == nil:
		return consumer.ConsumeSuccess, nil
	case ctx.Err() != nil:
		s.log.Warn("batch not decided before the end; it will come again", "topic", s.cfg.Topic, "messages", len(batch), "error", err)
		<-s.closed
	default:
		s.Stats.HandedBack.Add(int64(len(batch)))
		s.log.Error("batch cannot be decided; the broker delivers it again later", "topic", s.cfg.Topic, "messages", len(batch),
			"queue", batch[0].Queue, "offset", batch[0].Offset, "error", err)
	}
	return consumer.ConsumeRetryLater, nil
}

// admit takes a worker's slot; false means that the consumer is ending.
func (s *session) admit() bool {
	s.workers <- struct{}{}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.stopped {
		<-s.workers
		return false
	}
	s.running.Add(1)
	return true
}

func (s *session) release() {
	s.running.Done()
	<-s.workers
}

// shutdown persists the offsets and unregisters. The library's Shutdown can
// hang or crash when the broker is gone; the client is given up either way.
func (s *session) shutdown() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				s.log.Warn("consumer shutdown crashed", "panic", p)
			}
		}()
		if err := s.push.Shutdown(); err != nil {
			s.log.Warn("consumer shutdown", "error", err)
		}
	}()
	select {
	case <-done:
	case <-time.After(3 * time.Second):
		s.log.Warn("consumer shutdown did not end in 3s; the broker will notice by heartbeat")
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
