package remoting

import (
	"context"
	"encoding/json"
	"fmt"
)

// Queue is one queue of a topic at a master broker.
type Queue struct {
	Addr   string
	Broker string // its name
	ID     int
}

// Route asks a name server for the queues of a topic. A topic it does not
// know is an *AnswerError with ResponseTopicNotExist.
func (c *Conn) Route(ctx context.Context, topic string) ([]Queue, error) {
	_, body, err := c.Call(ctx, RequestRouteByTopic, map[string]string{"topic": topic, "acceptStandardJsonOnly": "true"}, nil)
	if err != nil {
		return nil, fmt.Errorf("route of %s: %w", topic, err)
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
		return nil, fmt.Errorf("route of %s: %w", topic, err)
	}
	masters := map[string]string{}
	for _, d := range route.BrokerDatas {
		masters[d.BrokerName] = d.BrokerAddrs["0"] // the id of a master
	}
	var queues []Queue
	for _, d := range route.QueueDatas {
		if masters[d.BrokerName] == "" {
			return nil, fmt.Errorf("route of %s: broker %s has no master", topic, d.BrokerName)
		}
		for id := range d.ReadQueueNums {
			queues = append(queues, Queue{Addr: masters[d.BrokerName], Broker: d.BrokerName, ID: id})
		}
	}
	return queues, nil
}
