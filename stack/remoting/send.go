package remoting

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

const requestSendMessage = 10

// Message is one to be sent, to one queue of its topic.
type Message struct {
	Topic string
	Queue int
	Keys  string // separated by spaces
	Body  []byte
}

// Property names and separators of org.apache.rocketmq.common.message.
const (
	propertyKeys      = "KEYS"
	nameSeparator     = "\x01"
	propertySeparator = "\x02"
)

// Send stores one message and returns when the broker confirmed it.
func (r *Conn) Send(ctx context.Context, m Message) error {
	_, _, err := r.Call(ctx, requestSendMessage, map[string]string{
		"producerGroup": "hotsku_chaos", "topic": m.Topic, "defaultTopic": "TBW102", "defaultTopicQueueNums": "4",
		"queueId": strconv.Itoa(m.Queue), "sysFlag": "0", "bornTimestamp": strconv.FormatInt(time.Now().UnixMilli(), 10), "flag": "0",
		"properties": propertyKeys + nameSeparator + m.Keys + propertySeparator, "reconsumeTimes": "0", "unitMode": "false", "batch": "false",
	}, m.Body)
	if err != nil {
		return fmt.Errorf("send to %s queue %d: %w", m.Topic, m.Queue, err)
	}
	return nil
}
