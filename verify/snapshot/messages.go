package snapshot

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// plainVersion turns the broker's "V5_5_0" into "5.5.0".
func plainVersion(v string) string {
	return strings.ReplaceAll(strings.TrimPrefix(v, "V"), "_", ".")
}

// prefixed puts the prefix where the broker has it.
func (s *Stores) prefixed(topic string) string {
	for _, of := range []string{rundir.RetryPrefix, rundir.DeadLetterPrefix} {
		if name, ok := strings.CutPrefix(topic, of); ok {
			return of + s.cfg.TopicPrefix + name
		}
	}
	return s.cfg.TopicPrefix + topic
}

// lag counts the messages that the groups have not consumed.
func (s *Stores) lag(ctx context.Context) (int64, error) {
	total := int64(0)
	err := s.offsets(ctx, func(o rundir.Offset) error {
		total += max(0, o.Max-o.Consumed)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("read consumer lag: %w", err)
	}
	return total, nil
}

// offsets gives the position of every group in every queue of its topics. A
// queue a group never committed an offset for is consumed from its start.
func (s *Stores) offsets(ctx context.Context, use func(rundir.Offset) error) error {
	for _, c := range s.cfg.Consumers {
		for _, topic := range c.Topics {
			queues, err := s.broker.queues(ctx, s.prefixed(topic))
			if err != nil {
				return err
			}
			if len(queues) == 0 && !strings.HasPrefix(topic, rundir.RetryPrefix) {
				return fmt.Errorf("topic %s does not exist", s.prefixed(topic))
			}
			for _, q := range queues {
				o := rundir.Offset{Group: c.Group, Topic: topic, Queue: q.id}
				if o.Min, o.Max, err = s.broker.bounds(ctx, q); err != nil {
					return err
				}
				consumed, ok, err := s.broker.consumed(ctx, s.cfg.TopicPrefix+c.Group, q)
				if err != nil {
					return err
				}
				o.Consumed = o.Min
				if ok {
					o.Consumed = max(consumed, o.Min)
				}
				if err := use(o); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// takeBroker copies the create messages, those that any group sent back or
// gave up, and the groups' offsets.
func (s *Stores) takeBroker(ctx context.Context, dir rundir.Dir) error {
	if err := writeRows(dir.Offsets(), func(w *rundir.RowWriter) error {
		return s.offsets(ctx, func(o rundir.Offset) error { return w.Write(o) })
	}); err != nil {
		return err
	}
	return writeRows(dir.Messages(), func(w *rundir.RowWriter) error {
		topics := []string{seckill.TopicOrderCreate}
		for _, c := range s.cfg.Consumers {
			topics = append(topics, rundir.RetryPrefix+c.Group, rundir.DeadLetterPrefix+c.Group)
		}
		for _, topic := range topics {
			if err := s.messages(ctx, topic, func(m rundir.Message) error { return w.Write(m) }); err != nil {
				return err
			}
		}
		return nil
	})
}

// Creates gives every create message that the broker stores to use, queue by
// queue.
func (s *Stores) Creates(ctx context.Context, use func(rundir.Message) error) error {
	return s.messages(ctx, seckill.TopicOrderCreate, use)
}

// messages gives every message a topic holds to use; none if it does not
// exist.
func (s *Stores) messages(ctx context.Context, topic string, use func(rundir.Message) error) error {
	queues, err := s.broker.queues(ctx, s.prefixed(topic))
	if err != nil {
		return err
	}
	for _, q := range queues {
		first, next, err := s.broker.bounds(ctx, q)
		if err != nil {
			return err
		}
		if err := s.broker.pull(ctx, q, first, next, func(m *primitive.MessageExt) error { return use(message(topic, m)) }); err != nil {
			return err
		}
	}
	return nil
}

func message(topic string, m *primitive.MessageExt) rundir.Message {
	out := rundir.Message{Topic: topic, Queue: m.Queue.QueueId, Offset: m.QueueOffset,
		StoredAtMS: m.StoreTimestamp, Keys: m.GetKeys()}
	if json.Valid(m.Body) {
		out.Body = m.Body
	} else {
		out.BodyBytes = m.Body
	}
	return out
}
