package mq

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/hotsku/hotsku/system/mq/remoting"
	"github.com/hotsku/hotsku/system/seckill"
)

// askTimeout bounds what one server may take to answer before a role starts.
const askTimeout = 6 * time.Second

// EnsureTopics makes the topics of the system at the broker, and waits until
// the name server knows their routes. Making a topic again changes nothing
// but a number of queues that was smaller. An error names the option to check
// where one may be the cause.
func EnsureTopics(ctx context.Context, cfg Config, brokerAddr string) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("ensure topics: %w", err)
	}
	if _, err := netip.ParseAddrPort(brokerAddr); err != nil {
		return fmt.Errorf("ensure topics: broker %q: must be IP:port", brokerAddr)
	}
	broker, err := remoting.Dial(ctx, brokerAddr, cfg.Security())
	if err != nil {
		return fmt.Errorf("ensure topics: broker %s: %w", brokerAddr, err)
	}
	defer broker.Close()
	names, err := remoting.Dial(ctx, cfg.NameServer, cfg.Security())
	if err != nil {
		return fmt.Errorf("ensure topics: name server %s: %w", cfg.NameServer, err)
	}
	defer names.Close()
	topics := []struct {
		name   string
		queues int
	}{
		{cfg.topic(seckill.TopicOrderCreate), TopicQueues},
		{cfg.topic(seckill.TopicEvent), TopicQueues},
		{cfg.topic(seckill.TopicExpiry), expiryQueues},
		{cfg.retryTopic(seckill.GroupOrder), 1},
		{cfg.retryTopic(seckill.GroupProjector), 1},
		{cfg.retryTopic(seckill.GroupExpiry), 1},
		{cfg.retryTopic(seckill.GroupDeadLetters), 1},
		{cfg.topic(DeadLetterTopic(seckill.GroupOrder)), 1},
		{cfg.topic(DeadLetterTopic(seckill.GroupProjector)), 1},
		{cfg.topic(DeadLetterTopic(seckill.GroupExpiry)), 1},
	}
	for _, t := range topics {
		if err := createTopic(ctx, broker, t.name, t.queues); err != nil {
			return fmt.Errorf("create topic %s at %s: %w", t.name, brokerAddr, err)
		}
	}
	for _, t := range topics {
		if err := waitForRoute(ctx, names, t.name, t.queues); err != nil {
			return fmt.Errorf("topic %s was not made: name server %s: %w", t.name, cfg.NameServer, err)
		}
	}
	return nil
}

// createTopic makes a topic as the library would, and reads the answer.
func createTopic(ctx context.Context, broker *remoting.Conn, name string, queues int) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	n := strconv.Itoa(queues)
	_, _, err := broker.Call(ctx, remoting.RequestCreateTopic, map[string]string{
		"topic": name, "defaultTopic": "defaultTopic", "readQueueNums": n, "writeQueueNums": n,
		"perm": "6", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
	}, nil)
	return err
}

// waitForRoute polls the name server, which hears of a topic from the
// broker's registration; there is no event to wait for.
func waitForRoute(ctx context.Context, names *remoting.Conn, topic string, queues int) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		found, err := names.Route(ctx, topic)
		if err != nil && !remoting.Answered(err, remoting.ResponseTopicNotExist) {
			return err
		}
		if len(found) >= queues {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it knows %d queues of %d", len(found), queues)
		case <-tick.C:
		}
	}
}

// CheckTopics says whether the name server answers and knows the topics, and
// whether their brokers accept who we are. Producers and consumers start
// without looking, and the library hides a refusal; a role that asks first
// does not start deaf. A server that is there but does not answer is given up
// after 6 s.
func CheckTopics(ctx context.Context, cfg Config, topics ...string) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("check topics: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	names, err := remoting.Dial(ctx, cfg.NameServer, cfg.Security())
	if err != nil {
		return fmt.Errorf("name server %s: %w", cfg.NameServer, err)
	}
	defer names.Close()
	asked := make(map[string]bool)
	for _, t := range topics {
		queues, err := names.Route(ctx, cfg.topic(t))
		switch {
		case remoting.Answered(err, remoting.ResponseTopicNotExist) || err == nil && len(queues) == 0:
			return fmt.Errorf("name server %s does not know topic %s: run `seckill migrate`, and see that the broker is up", cfg.NameServer, cfg.topic(t))
		case err != nil:
			return fmt.Errorf("name server %s: %w", cfg.NameServer, err)
		}
		for _, q := range queues {
			if !asked[q.Addr] {
				asked[q.Addr] = true
				if err := greet(ctx, q.Addr, cfg); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// greet sends the heartbeat of a client that produces and consumes nothing:
// the broker looks who asks, and registers nobody. A broker that is away is no
// reason not to start: clients wait for it. One that refuses us is.
func greet(ctx context.Context, addr string, cfg Config) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	broker, err := remoting.Dial(ctx, addr, cfg.Security())
	if err == nil {
		defer broker.Close()
		_, _, err = broker.Call(ctx, remoting.RequestHeartbeat, nil, []byte(`{"clientID":"seckill-check","producerDataSet":[],"consumerDataSet":[]}`))
	}
	if errors.As(err, new(*remoting.Advice)) {
		return fmt.Errorf("broker %s: %w", addr, err)
	}
	return nil
}
