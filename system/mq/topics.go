package mq

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/hotsku/hotsku/system/seckill"
)

// EnsureTopics makes the topics of the system at the broker, and waits until
// the name server knows their routes: the library's CreateTopic does not look
// at the broker's answer. Making a topic again changes nothing.
func EnsureTopics(ctx context.Context, cfg Config, brokerAddr string) error {
	if err := cfg.validate(); err != nil {
		return fmt.Errorf("ensure topics: %w", err)
	}
	opts := []admin.AdminOption{admin.WithResolver(primitive.NewPassthroughResolver([]string{cfg.NameServer}))}
	if cfg.AccessKey != "" {
		opts = append(opts, admin.WithCredentials(primitive.Credentials{AccessKey: cfg.AccessKey, SecretKey: cfg.SecretKey}))
	}
	a, err := admin.NewAdmin(opts...)
	if err != nil {
		return fmt.Errorf("ensure topics: %w", err)
	}
	defer a.Close()
	topics := []struct {
		name   string
		queues int
	}{
		{cfg.TopicPrefix + seckill.TopicOrderCreate, TopicQueues},
		{cfg.TopicPrefix + seckill.TopicEvent, TopicQueues},
		{"%RETRY%" + cfg.TopicPrefix + seckill.GroupOrder, 1},
		{"%RETRY%" + cfg.TopicPrefix + seckill.GroupProjector, 1},
	}
	for _, t := range topics {
		if err := a.CreateTopic(ctx, admin.WithTopicCreate(t.name), admin.WithBrokerAddrCreate(brokerAddr),
			admin.WithReadQueueNums(t.queues), admin.WithWriteQueueNums(t.queues)); err != nil {
			return fmt.Errorf("create topic %s at %s: %w", t.name, brokerAddr, err)
		}
	}
	for _, t := range topics {
		if err := waitForRoute(ctx, a, t.name, t.queues); err != nil {
			return err
		}
	}
	return nil
}

// waitForRoute polls the name server, which hears of a topic from the
// broker's registration; there is no event to wait for.
func waitForRoute(ctx context.Context, a admin.Admin, topic string, queues int) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		found, err := a.FetchPublishMessageQueues(ctx, topic)
		if err == nil && len(found) >= queues {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("topic %s: the name server has no route of %d queues (found %d): %w", topic, queues, len(found), ctx.Err())
		case <-tick.C:
		}
	}
}
