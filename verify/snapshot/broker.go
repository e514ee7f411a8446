package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/hotsku/hotsku/stack/remoting"
)

// pullGroup names this reader to the broker. It never registers, so it takes
// part in no rebalancing, and commits no offset.
const pullGroup = "hotsku_snapshot"

// Codes of requests and responses.
const (
	requestPullMessage         = 11
	requestQueryConsumerOffset = 14
	requestBrokerRuntimeInfo   = 28
	requestMaxOffset           = 30
	requestMinOffset           = 31
	requestRouteByTopic        = 105

	responseTopicNotExist   = 17
	responsePullNotFound    = 19
	responsePullRetryAtOnce = 20
	responsePullOffsetMoved = 21
	responseOffsetNotFound  = 22
)

const (
	pullMax              = 1024 // messages of one pull
	pullSubscriptionFlag = 1 << 2
	masterBrokerID       = "0"
)

// broker asks RocketMQ's name server and brokers.
type broker struct {
	nameServer string
	timeout    time.Duration
	conns      map[string]*remoting.Conn
}

func newBroker(nameServer string, timeout time.Duration) *broker {
	return &broker{nameServer: nameServer, timeout: timeout, conns: map[string]*remoting.Conn{}}
}

func (b *broker) close() error {
	var errs []error
	for addr, conn := range b.conns {
		errs = append(errs, conn.Close())
		delete(b.conns, addr)
	}
	return errors.Join(errs...)
}

// call asks the server at addr, on a connection kept between calls.
func (b *broker) call(ctx context.Context, addr string, code int, fields map[string]string) (remoting.Header, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	conn := b.conns[addr]
	if conn == nil {
		var err error
		if conn, err = remoting.Dial(ctx, addr); err != nil {
			return remoting.Header{}, nil, err
		}
		b.conns[addr] = conn
	}
	header, body, err := conn.Call(ctx, code, fields, nil)
	var re *remoting.Error
	if err != nil && !errors.As(err, &re) {
		conn.Close()
		delete(b.conns, addr)
	}
	return header, body, err
}

// queue is one queue of a topic at a master broker.
type queue struct {
	topic string
	addr  string
	name  string // of the broker
	id    int
}

func (q queue) fields(more map[string]string) map[string]string {
	fields := map[string]string{"topic": q.topic, "queueId": strconv.Itoa(q.id), "bname": q.name}
	for k, v := range more {
		fields[k] = v
	}
	return fields
}

// queues lists the readable queues of a topic; none if the topic does not
// exist.
func (b *broker) queues(ctx context.Context, topic string) ([]queue, error) {
	_, body, err := b.call(ctx, b.nameServer, requestRouteByTopic,
		map[string]string{"topic": topic, "acceptStandardJsonOnly": "true"})
	if remoting.Answered(err, responseTopicNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("route of topic %s: %w", topic, err)
	}
	var route struct {
		QueueDatas []struct {
			BrokerName    string `json:"brokerName"`
			ReadQueueNums int    `json:"readQueueNums"`
		} `json:"queueDatas"`
		BrokerDatas []struct {
			BrokerName  string            `json:"brokerName"`
			BrokerAddrs map[string]string `json:"brokerAddrs"`
		} `json:"brokerDatas"`
	}
	if err := json.Unmarshal(body, &route); err != nil {
		return nil, fmt.Errorf("route of topic %s: %w", topic, err)
	}
	masters := map[string]string{}
	for _, d := range route.BrokerDatas {
		masters[d.BrokerName] = d.BrokerAddrs[masterBrokerID]
	}
	var out []queue
	for _, d := range route.QueueDatas {
		addr := masters[d.BrokerName]
		if addr == "" {
			return nil, fmt.Errorf("route of topic %s: broker %s has no master", topic, d.BrokerName)
		}
		for id := range d.ReadQueueNums {
			out = append(out, queue{topic: topic, addr: addr, name: d.BrokerName, id: id})
		}
	}
	return out, nil
}

// bounds are the first stored offset of a queue and the next to be written.
func (b *broker) bounds(ctx context.Context, q queue) (first, next int64, err error) {
	if first, err = b.offset(ctx, requestMinOffset, q, nil); err != nil {
		return 0, 0, err
	}
	next, err = b.offset(ctx, requestMaxOffset, q, nil)
	return first, next, err
}

// consumed is the next offset the group will consume; ok is false if it
// never committed one.
func (b *broker) consumed(ctx context.Context, group string, q queue) (offset int64, ok bool, err error) {
	offset, err = b.offset(ctx, requestQueryConsumerOffset, q, map[string]string{"consumerGroup": group})
	if remoting.Answered(err, responseOffsetNotFound) {
		return 0, false, nil
	}
	return offset, err == nil, err
}

func (b *broker) offset(ctx context.Context, code int, q queue, more map[string]string) (int64, error) {
	header, _, err := b.call(ctx, q.addr, code, q.fields(more))
	if err != nil {
		return 0, fmt.Errorf("offset of %s queue %d: %w", q.topic, q.id, err)
	}
	offset, err := strconv.ParseInt(header.Fields["offset"], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("offset of %s queue %d: %w", q.topic, q.id, err)
	}
	return offset, nil
}

// pull gives every stored message of the queue in [from, to) to use.
func (b *broker) pull(ctx context.Context, q queue, from, to int64, use func(*primitive.MessageExt) error) error {
	for from < to {
		header, body, err := b.call(ctx, q.addr, requestPullMessage, q.fields(map[string]string{
			"consumerGroup": pullGroup, "queueOffset": strconv.FormatInt(from, 10), "maxMsgNums": strconv.Itoa(pullMax),
			"sysFlag": strconv.Itoa(pullSubscriptionFlag), "commitOffset": "0", "suspendTimeoutMillis": "0",
			"subscription": "*", "subVersion": "0", "expressionType": "TAG",
		}))
		fail := func(err error) error { return fmt.Errorf("pull %s queue %d offset %d: %w", q.topic, q.id, from, err) }
		switch {
		case err == nil:
			for _, m := range primitive.DecodeMessage(body) {
				if m.QueueOffset < from || m.QueueOffset >= to {
					continue // beyond what was asked for
				}
				if m.QueueOffset != from {
					return fail(fmt.Errorf("the broker skips to offset %d", m.QueueOffset))
				}
				if err := use(m); err != nil {
					return err
				}
				from++
			}
		case remoting.Answered(err, responsePullRetryAtOnce), remoting.Answered(err, responsePullOffsetMoved), remoting.Answered(err, responsePullNotFound):
			next, perr := strconv.ParseInt(header.Fields["nextBeginOffset"], 10, 64)
			if perr != nil || next <= from {
				return fail(err)
			}
			return fail(fmt.Errorf("the broker skips to offset %d", next))
		default:
			return fail(err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// version asks the broker that holds the topic.
func (b *broker) version(ctx context.Context, topic string) (string, error) {
	queues, err := b.queues(ctx, topic)
	if err != nil {
		return "", err
	}
	if len(queues) == 0 {
		return "", fmt.Errorf("topic %s does not exist", topic)
	}
	_, body, err := b.call(ctx, queues[0].addr, requestBrokerRuntimeInfo, nil)
	if err != nil {
		return "", fmt.Errorf("ask the broker for its version: %w", err)
	}
	var info struct {
		Table map[string]string `json:"table"`
	}
	if err := json.Unmarshal(body, &info); err != nil {
		return "", fmt.Errorf("ask the broker for its version: %w", err)
	}
	return plainVersion(info.Table["brokerVersionDesc"]), nil
}
