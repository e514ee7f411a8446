package mq

import (
	"context"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/hotsku/hotsku/system/seckill"
)

// expiryQueues is how many queues the topic of expiry checks gets: one check
// stands for up to a hundred orders.
const expiryQueues = 4

// delayLevels are the broker's delays by level, from 1, as messageDelayLevel
// sets them unless told otherwise. Arbitrary times need a timer wheel that a
// broker may run without; levels are always there. Where an operator changed
// them, checks come at other times than meant, and are sent on.
var delayLevels = [...]time.Duration{
	time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 3 * time.Minute, 4 * time.Minute, 5 * time.Minute, 6 * time.Minute,
	7 * time.Minute, 8 * time.Minute, 9 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour,
}

// delayLevel chooses the level of a message that is wanted after d, 0 for at
// once: the shortest that is not too short if it overshoots by little, else
// the longest that is too short, from which the receiver sends it on.
func delayLevel(d time.Duration) int {
	if d <= 0 {
		return 0
	}
	slack := max(time.Second, d/20)
	for i, l := range delayLevels {
		if l < d {
			continue
		}
		if i == 0 || l-d <= slack {
			return i + 1
		}
		return i
	}
	return len(delayLevels)
}

// SendExpiryCheck sends a check that the broker delivers after about that
// time, or before it: the receiver looks at the check's due time. Delayed
// messages cannot be batched. nil means that the broker stored it.
func (p *Producer) SendExpiryCheck(_ context.Context, c seckill.ExpiryCheck, after time.Duration) error {
	body, err := c.Encode()
	if err != nil {
		return err
	}
	m := newMessage(p.cfg.topic(seckill.TopicExpiry), body, c.OrderIDs[0])
	if level := delayLevel(after); level > 0 {
		m.WithDelayTimeLevel(level)
	}
	return p.send([]*primitive.Message{m})
}
