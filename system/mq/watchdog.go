package mq

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// watchdog tells a client that stalls from one that has nothing to do, or
// whose handler waits an outage out.
type watchdog struct {
	stall     time.Duration // doubled by each restart in a row
	delivered int64         // at the last look
	since     time.Time     // when messages were first seen to wait for a client that gets none; zero: they do not
	restarts  int           // in a row: nothing was delivered since
}

// stallMax bounds the doubling.
const stallMax = time.Minute

// stuck looks once. delivered is how many messages handlers ever got, busy
// says that one is running, and behind, which is asked only where neither
// explains the silence, that messages wait.
func (w *watchdog) stuck(now time.Time, delivered int64, busy bool, behind func() bool) bool {
	if busy || delivered != w.delivered {
		w.stall >>= w.restarts
		w.delivered, w.since, w.restarts = delivered, time.Time{}, 0
		return false
	}
	switch {
	case !behind():
		w.since = time.Time{}
		return false
	case w.since.IsZero():
		w.since = now
		return false
	}
	return now.Sub(w.since) >= w.stall
}

// restarted gives a new client its time.
func (w *watchdog) restarted() {
	w.since = time.Time{}
	if 2*w.stall <= stallMax {
		w.stall *= 2
		w.restarts++
	}
}

// share is which queues of its topic a client was last given.
type share struct {
	mu     sync.Mutex
	queues map[Queue]bool // nil: all, for the broker does not count it among the group
}

// allocate is the library's own strategy, listened to for one topic.
func (s *share) allocate(topic string) consumer.AllocateStrategy {
	return func(group, client string, all []*primitive.MessageQueue, clients []string) []*primitive.MessageQueue {
		mine := consumer.AllocateByAveragely(group, client, all, clients)
		if len(all) == 0 || all[0].Topic != topic {
			return mine
		}
		var queues map[Queue]bool
		if slices.Contains(clients, client) {
			queues = make(map[Queue]bool, len(mine))
			for _, q := range mine {
				queues[Queue{q.BrokerName, q.QueueId}] = true
			}
		}
		s.mu.Lock()
		s.queues = queues
		s.mu.Unlock()
		return mine
	}
}

// has says that the queue is the client's to consume.
func (s *share) has(q Queue) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queues == nil || s.queues[q]
}

// behind says that messages wait in this client's queues. What cannot be
// asked is no reason to start anew: then nobody else gets messages either.
func (s *session) behind(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, OffsetsEvery)
	defer cancel()
	waiting, err := s.cfg.Waiting(ctx)
	if err != nil {
		return false
	}
	for q, n := range waiting {
		if n > 0 && s.share.has(q) {
			return true
		}
	}
	return false
}
