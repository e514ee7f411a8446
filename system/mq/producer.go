package mq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"

	"github.com/hotsku/hotsku/system/seckill"
)

// ErrUnknown wraps every send that was not confirmed: the message may or may
// not be stored. Nothing is released and nothing renamed for it (R7.8.1).
var ErrUnknown = errors.New("send outcome unknown")

// BatchMax is how many messages one send carries at most.
const BatchMax = 100

// Producer sends batches, each to one queue. It is not transactional
// (specification 15.7) and never sends twice by itself. Safe for concurrent
// use; more than two sends at a time only add timeouts.
type Producer struct {
	cfg     Config
	p       rocketmq.Producer
	timeout time.Duration
}

// NewProducer returns a started producer whose sends are given up after
// timeout. It connects at the first send: see CheckTopics.
func NewProducer(cfg Config, timeout time.Duration) (*Producer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("producer: %w", err)
	}
	if timeout <= 0 {
		return nil, fmt.Errorf("producer: send timeout %v: must be positive", timeout)
	}
	opts := []producer.Option{
		producer.WithNameServer(primitive.NamesrvAddr{cfg.NameServer}),
		producer.WithGroupName(cfg.group("seckill_producer")),
		producer.WithInstanceName(instanceName("producer", os.Getpid())),
		producer.WithRetry(0),
		producer.WithSendMsgTimeout(timeout),
		producer.WithQueueSelector(byHint{}),
	}
	if cfg.AccessKey != "" {
		opts = append(opts, producer.WithCredentials(cfg.credentials()))
	}
	if cfg.TLS {
		opts = append(opts, producer.WithTls(true))
	}
	p, err := rocketmq.NewProducer(opts...)
	if err != nil {
		return nil, fmt.Errorf("producer for %s: %w", cfg.NameServer, err)
	}
	if err := p.Start(); err != nil {
		return nil, fmt.Errorf("start producer for %s: %w", cfg.NameServer, err)
	}
	return &Producer{cfg: cfg, p: p, timeout: timeout}, nil
}

// Close ends the producer; sends under way end at their timeout.
func (p *Producer) Close() error {
	if err := p.p.Shutdown(); err != nil {
		return fmt.Errorf("close producer: %w", err)
	}
	return nil
}

// SendOrderCreates sends up to BatchMax create messages to the queue their
// first reservation hashes to. nil means the broker stored them all to its
// durable standard; ErrUnknown that nobody can say.
func (p *Producer) SendOrderCreates(messages []seckill.OrderCreateMessage) error {
	batch := make([]*primitive.Message, len(messages))
	for i := range messages {
		body, err := messages[i].Encode()
		if err != nil {
			return err
		}
		batch[i] = newMessage(p.cfg.topic(seckill.TopicOrderCreate), body, messages[i].MessageKey)
	}
	return p.send(batch)
}

// SendEvents sends up to BatchMax events of the outbox.
func (p *Producer) SendEvents(_ context.Context, events []seckill.Event) error {
	batch := make([]*primitive.Message, len(events))
	for i := range events {
		body, err := json.Marshal(&events[i])
		if err != nil {
			return fmt.Errorf("encode event of %s: %w", events[i].ReservationID, err)
		}
		batch[i] = newMessage(p.cfg.topic(seckill.TopicEvent), body, events[i].ReservationID)
	}
	return p.send(batch)
}

func newMessage(topic string, body []byte, key string) *primitive.Message {
	m := primitive.NewMessage(topic, body)
	m.WithKeys([]string{key})
	return m
}

func (p *Producer) send(batch []*primitive.Message) error {
	if len(batch) == 0 || len(batch) > BatchMax {
		return fmt.Errorf("send: %d messages, must be 1 to %d", len(batch), BatchMax)
	}
	h := fnv.New32a()
	h.Write([]byte(batch[0].GetKeys()))
	// The library copies Queue, and nothing else, from the first message of a
	// batch to the envelope it selects by: QueueId is our hint to byHint.
	batch[0].Queue = &primitive.MessageQueue{QueueId: int(h.Sum32() % TopicQueues)}
	// A context that ends makes the library send again or close the shared
	// connection; the send timeout is the bound.
	result, err := p.p.SendSync(context.Background(), batch...)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	// FLUSH_DISK_TIMEOUT and its kin come with a nil error.
	if result.Status != primitive.SendOK {
		return fmt.Errorf("%w: broker answered status %d", ErrUnknown, result.Status)
	}
	return nil
}

// byHint chooses the queue by the hint in the message.
type byHint struct{}

func (byHint) Select(m *primitive.Message, queues []*primitive.MessageQueue, _ string) *primitive.MessageQueue {
	if len(queues) == 0 {
		return nil
	}
	hint := 0
	if m.Queue != nil {
		hint = m.Queue.QueueId
	}
	return queues[hint%len(queues)]
}
