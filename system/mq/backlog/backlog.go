// Package backlog measures how far a consumer group is behind: how many
// messages it has not acknowledged, and how long the oldest of them has been
// stored. Both are needed: many messages may be gone in a second, and a single
// one that is minutes old is stuck (specification 12.3).
//
// It asks the brokers as an observer. The client library can tell offsets to
// members of a group only, and a member that consumes nothing takes queues
// from those that do.
//
// Authoritative store: the brokers. They hear of acknowledgements every
// mq.OffsetsEvery, so the figures may be too high by what was consumed since,
// never too low.
//
// Imports allowed: system/mq, system/mq/remoting, rocketmq-client-go.
package backlog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/mq/remoting"
)

// Observer watches one group on one topic. Not safe for concurrent use.
type Observer struct {
	cfg          mq.Config
	topic, group string // as the broker knows them
	now          func() time.Time
	conns        map[string]*remoting.Conn
	queues       []remoting.Queue // as of asked
	asked        time.Time
}

// Backlog is what a group has still to consume.
type Backlog struct {
	Messages int64
	Oldest   time.Duration // since the oldest was stored, by the broker's clock against now's; 0 if there is none
}

// routeFresh is for how long a topic's route is believed.
const routeFresh = 5 * time.Second

// pullGroup names the observer to the broker. It never registers, so it takes
// part in no rebalancing, and commits no offset.
const pullGroup = "seckill_observer"

// New returns an observer of group's consumption of topic, both without
// prefix. It connects when it is asked.
func New(cfg mq.Config, topic, group string, now func() time.Time) (*Observer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("backlog: %w", err)
	}
	if topic == "" || group == "" || now == nil {
		return nil, errors.New("backlog: topic, group and clock are required")
	}
	return &Observer{cfg: cfg, topic: cfg.TopicPrefix + topic, group: cfg.TopicPrefix + group, now: now, conns: map[string]*remoting.Conn{}}, nil
}

// Close closes the connections; the next question opens new ones.
func (o *Observer) Close() error {
	var errs []error
	for addr, c := range o.conns {
		errs = append(errs, c.Close())
		delete(o.conns, addr)
	}
	return errors.Join(errs...)
}

// Measure asks every queue. A queue the group never committed an offset for
// is consumed from its start.
func (o *Observer) Measure(ctx context.Context) (Backlog, error) {
	var b Backlog
	if err := o.route(ctx); err != nil {
		return b, fmt.Errorf("backlog: %w", err)
	}
	for _, q := range o.queues {
		waiting, stored, err := o.measure(ctx, q)
		if err != nil {
			return Backlog{}, fmt.Errorf("backlog of %s queue %d: %w", o.topic, q.ID, err)
		}
		b.Messages += waiting
		if waiting > 0 && !stored.IsZero() {
			b.Oldest = max(b.Oldest, o.now().Sub(stored))
		}
	}
	return b, nil
}

// Waiting counts what each queue still holds for the group. What waits for a
// client that was given a queue is its own business alone.
func (o *Observer) Waiting(ctx context.Context) (map[mq.Queue]int64, error) {
	if err := o.route(ctx); err != nil {
		return nil, fmt.Errorf("backlog: %w", err)
	}
	waiting := make(map[mq.Queue]int64, len(o.queues))
	for _, q := range o.queues {
		from, to, err := o.span(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("backlog of %s queue %d: %w", o.topic, q.ID, err)
		}
		waiting[mq.Queue{Broker: q.Broker, ID: q.ID}] = to - from
	}
	return waiting, nil
}

// measure returns how many messages of the queue wait, and when the first of
// them was stored.
func (o *Observer) measure(ctx context.Context, q remoting.Queue) (waiting int64, stored time.Time, err error) {
	from, to, err := o.span(ctx, q)
	if err != nil || from == to {
		return 0, stored, err
	}
	stored, err = o.storedAt(ctx, q, from)
	return to - from, stored, err
}

// span is the offset of the first message that waits and that after the last;
// they are equal if none does.
func (o *Observer) span(ctx context.Context, q remoting.Queue) (from, to int64, err error) {
	if to, err = o.offset(ctx, remoting.RequestMaxOffset, q, nil); err != nil {
		return 0, 0, err
	}
	from, err = o.offset(ctx, remoting.RequestQueryConsumerOffset, q, map[string]string{"consumerGroup": o.group})
	if remoting.Answered(err, remoting.ResponseOffsetNotFound) {
		from, err = 0, nil
	}
	if err != nil || from >= to {
		return to, to, err
	}
	first, err := o.offset(ctx, remoting.RequestMinOffset, q, nil)
	return min(max(from, first), to), to, err
}

// storedAt is when the broker stored the message at an offset; zero if it is
// gone already.
func (o *Observer) storedAt(ctx context.Context, q remoting.Queue, offset int64) (time.Time, error) {
	_, body, err := o.call(ctx, q.Addr, remoting.RequestPullMessage, o.fields(q, map[string]string{
		"consumerGroup": pullGroup, "queueOffset": strconv.FormatInt(offset, 10), "maxMsgNums": "1",
		"sysFlag":      "4", // with a subscription; wait for nothing, commit nothing
		"commitOffset": "0", "suspendTimeoutMillis": "0", "subscription": "*", "subVersion": "0", "expressionType": "TAG",
	}))
	if remoting.Answered(err, remoting.ResponsePullNotFound) || remoting.Answered(err, remoting.ResponsePullRetryNow) || remoting.Answered(err, remoting.ResponsePullMoved) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	for _, m := range primitive.DecodeMessage(body) {
		return time.UnixMilli(m.StoreTimestamp), nil
	}
	return time.Time{}, nil
}

func (o *Observer) offset(ctx context.Context, code int, q remoting.Queue, more map[string]string) (int64, error) {
	fields, _, err := o.call(ctx, q.Addr, code, o.fields(q, more))
	if err != nil {
		return 0, err
	}
	offset, err := strconv.ParseInt(fields["offset"], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("request %d: %w", code, err)
	}
	return offset, nil
}

func (o *Observer) fields(q remoting.Queue, more map[string]string) map[string]string {
	fields := map[string]string{"topic": o.topic, "queueId": strconv.Itoa(q.ID), "bname": q.Broker}
	for k, v := range more {
		fields[k] = v
	}
	return fields
}

// route learns the queues of the topic from the name server, anew when what
// is known is old.
func (o *Observer) route(ctx context.Context) error {
	if !o.asked.IsZero() && o.now().Sub(o.asked) < routeFresh {
		return nil
	}
	c, err := o.conn(ctx, o.cfg.NameServer)
	if err != nil {
		return err
	}
	queues, err := c.Route(ctx, o.topic)
	o.drop(o.cfg.NameServer, err)
	if err == nil && len(queues) == 0 {
		err = fmt.Errorf("route of %s: no queue", o.topic)
	}
	if err != nil {
		return err
	}
	o.queues, o.asked = queues, o.now()
	return nil
}

// call asks the server at addr, on a connection kept between calls.
func (o *Observer) call(ctx context.Context, addr string, code int, fields map[string]string) (map[string]string, []byte, error) {
	c, err := o.conn(ctx, addr)
	if err != nil {
		return nil, nil, err
	}
	head, body, err := c.Call(ctx, code, fields, nil)
	o.drop(addr, err)
	return head, body, err
}

func (o *Observer) conn(ctx context.Context, addr string) (*remoting.Conn, error) {
	if c := o.conns[addr]; c != nil {
		return c, nil
	}
	c, err := remoting.Dial(ctx, addr, o.cfg.Security())
	if err != nil {
		return nil, err
	}
	o.conns[addr] = c
	return c, nil
}

// drop forgets a connection that is of no more use after err.
func (o *Observer) drop(addr string, err error) {
	if c := o.conns[addr]; c != nil && err != nil && !errors.As(err, new(*remoting.AnswerError)) {
		_ = c.Close() // it is broken already
		delete(o.conns, addr)
	}
}
