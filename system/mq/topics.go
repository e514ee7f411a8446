package mq

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/apache/rocketmq-client-go/v2/admin"
	liberrors "github.com/apache/rocketmq-client-go/v2/errors"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/hotsku/hotsku/system/seckill"
)

// EnsureTopics makes the topics of the system at the broker, and waits until
// the name server knows their routes: the library's CreateTopic does not look
// at the broker's answer. Making a topic again changes nothing but a number
// of queues that was smaller.
func EnsureTopics(ctx context.Context, cfg Config, brokerAddr string) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("ensure topics: %w", err)
	}
	if _, err := netip.ParseAddrPort(brokerAddr); err != nil {
		return fmt.Errorf("ensure topics: broker %q: must be IP:port", brokerAddr)
	}
	a, err := cfg.admin()
	if err != nil {
		return fmt.Errorf("ensure topics: %w", err)
	}
	defer a.Close()
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
		if err := a.CreateTopic(ctx, admin.WithTopicCreate(t.name), admin.WithBrokerAddrCreate(brokerAddr),
			admin.WithReadQueueNums(t.queues), admin.WithWriteQueueNums(t.queues)); err != nil {
			return fmt.Errorf("create topic %s at %s: %w", t.name, brokerAddr, err)
		}
	}
	for _, t := range topics {
		if err := waitForRoute(ctx, cfg, t.name, t.queues); err != nil {
			return err
		}
	}
	return nil
}

// waitForRoute polls the name server, which hears of a topic from the
// broker's registration; there is no event to wait for.
func waitForRoute(ctx context.Context, cfg Config, topic string, queues int) error {
	a, err := cfg.admin()
	if err != nil {
		return err
	}
	defer func() { _ = a.Close() }()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		found, err := a.FetchPublishMessageQueues(ctx, topic)
		if err == nil && len(found) >= queues {
			return nil
		}
		select {
		case <-ctx.Done():
			if err == nil || errors.Is(err, liberrors.ErrTopicNotExist) {
				err = fmt.Errorf("it knows %d queues of %d", len(found), queues)
			}
			return fmt.Errorf("topic %s was not made: name server %s: %w", topic, cfg.NameServer, err)
		case <-tick.C:
		}
		if err == nil { // a client that knows a route never asks again
			fresh, err := cfg.admin()
			if err != nil {
				return err
			}
			_ = a.Close()
			a = fresh
		}
	}
}

// CheckTopics says whether the name server answers and knows the topics.
// Producers and consumers start without looking; a role that asks first does
// not start deaf. A name server that is there but does not answer is given
// up by the library after 6 s.
func CheckTopics(ctx context.Context, cfg Config, topics ...string) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("check topics: %w", err)
	}
	a, err := cfg.admin()
	if err != nil {
		return fmt.Errorf("check topics: %w", err)
	}
	defer a.Close()
	for _, t := range topics {
		switch found, err := a.FetchPublishMessageQueues(ctx, cfg.topic(t)); {
		case errors.Is(err, liberrors.ErrTopicNotExist) || err == nil && len(found) == 0:
			return fmt.Errorf("name server %s does not know topic %s: run `seckill migrate`, and see that the broker is up", cfg.NameServer, cfg.topic(t))
		case err != nil:
			return fmt.Errorf("name server %s: %w", cfg.NameServer, err)
		}
	}
	return nil
}

func (c Config) admin() (admin.Admin, error) {
	opts := []admin.AdminOption{admin.WithResolver(primitive.NewPassthroughResolver([]string{c.NameServer}))}
	if c.AccessKey != "" {
		opts = append(opts, admin.WithCredentials(primitive.Credentials{AccessKey: c.AccessKey, SecretKey: c.SecretKey}))
	}
	a, err := admin.NewAdmin(opts...)
	if err != nil {
		return nil, fmt.Errorf("admin client for %s: %w", c.NameServer, err)
	}
	return a, nil
}
