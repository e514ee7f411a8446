package mq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/hotsku/hotsku/system/seckill"
)

var ids = seckill.NewIDGenerator(time.Now, [32]byte{byte(os.Getpid()), byte(os.Getpid() >> 8), byte(time.Now().UnixNano() >> 10)})

func newProducer(t *testing.T, cfg Config, timeout time.Duration) *Producer {
	t.Helper()
	p, err := NewProducer(cfg, timeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// R7.8.1 R7.6.2: whatever the broker answers but "stored", and nothing at
// all, is unknown; and the producer never sends twice by itself.
func TestASendThatWasNotConfirmedIsUnknownAndNotRepeated(t *testing.T) {
	for rule, answer := range map[string]func(int) (int, bool){
		"no answer":                          func(int) (int, bool) { return 0, false },
		"the disk was not flushed in time":   func(int) (int, bool) { return resFlushDiskTimeout, true },
		"the broker is busy":                 func(int) (int, bool) { return resSystemBusy, true },
		"the broker answers with an unknown": func(int) (int, bool) { return 999, true },
	} {
		for _, n := range []int{1, 5} {
			t.Run(fmt.Sprintf("%s, %d messages", rule, n), func(t *testing.T) {
				t.Parallel()
				f := newFake(t, answer)
				p := newProducer(t, Config{NameServer: f.addr}, 200*time.Millisecond)
				if err := p.SendOrderCreates(creates(ids, n)); !errors.Is(err, ErrUnknown) {
					t.Errorf("error is %v, want ErrUnknown", err)
				}
				if got := f.sent(); got != 1 {
					t.Errorf("sent %d times", got)
				}
			})
		}
	}
}

// R7.11.2: a broker that is gone, or cut off while it holds the message.
func TestASendToABrokerThatIsGoneIsUnknown(t *testing.T) {
	t.Run("nobody listens", func(t *testing.T) {
		t.Parallel()
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		dead := ln.Addr().String()
		ln.Close()
		p := newProducer(t, Config{NameServer: dead}, 200*time.Millisecond)
		if err := p.SendOrderCreates(creates(ids, 2)); !errors.Is(err, ErrUnknown) {
			t.Errorf("error is %v, want ErrUnknown", err)
		}
	})
	t.Run("it hears and never answers, then others are served", func(t *testing.T) {
		t.Parallel()
		f := newFake(t, func(send int) (int, bool) { return resSuccess, send > 1 })
		p := newProducer(t, Config{NameServer: f.addr}, 200*time.Millisecond)
		if err := p.SendOrderCreates(creates(ids, 2)); !errors.Is(err, ErrUnknown) {
			t.Errorf("error is %v, want ErrUnknown", err)
		}
		if err := p.SendOrderCreates(creates(ids, 2)); err != nil {
			t.Errorf("the next send: %v", err)
		}
	})
}

func TestABatchHasItsBounds(t *testing.T) {
	f := newFake(t, func(int) (int, bool) { return resSuccess, true })
	p := newProducer(t, Config{NameServer: f.addr}, time.Second)
	for _, n := range []int{0, BatchMax + 1} {
		if err := p.SendOrderCreates(creates(ids, n)); err == nil || errors.Is(err, ErrUnknown) {
			t.Errorf("%d messages: error is %v, want a refusal before anything was sent", n, err)
		}
	}
	if err := p.SendOrderCreates(creates(ids, BatchMax)); err != nil {
		t.Error(err)
	}
	if err := p.SendEvents(t.Context(), make([]seckill.Event, BatchMax+1)); err == nil {
		t.Error("too many events: no error")
	}
	if f.sent() != 1 {
		t.Errorf("sent %d times", f.sent())
	}
}

// R8.3.6 R15.9: the queue is the reservation's choice, not one for all.
func TestTheQueueIsChosenByReservation(t *testing.T) {
	queues := make([]*primitive.MessageQueue, TopicQueues)
	for i := range queues {
		queues[i] = &primitive.MessageQueue{QueueId: i}
	}
	hint := func(n int) *primitive.Message { return &primitive.Message{Queue: &primitive.MessageQueue{QueueId: n}} }
	for i := range 3 * TopicQueues {
		if got := (byHint{}).Select(hint(i), queues, ""); got.QueueId != i%TopicQueues {
			t.Errorf("hint %d chose queue %d", i, got.QueueId)
		}
	}
	if got := (byHint{}).Select(&primitive.Message{}, queues, ""); got != queues[0] {
		t.Errorf("without a hint: %v", got)
	}
	if got := (byHint{}).Select(hint(5), queues[:3], ""); got != queues[2] {
		t.Errorf("with fewer queues: %v", got)
	}
	if got := (byHint{}).Select(hint(1), nil, ""); got != nil {
		t.Errorf("without queues: %v", got)
	}
}

// R15.7 R8.3.3: a send is a plain one, no half of a transaction, under the
// reservation's key.
func TestMessagesAreNotTransactional(t *testing.T) {
	const transactionFlags = 0xc
	f := newFake(t, func(int) (int, bool) { return resSuccess, true })
	p := newProducer(t, Config{NameServer: f.addr}, time.Second)
	m := creates(ids, 1)
	if err := p.SendOrderCreates(m); err != nil {
		t.Fatal(err)
	}
	if flag, err := strconv.Atoi(f.last["sysFlag"]); err != nil || flag&transactionFlags != 0 || strings.Contains(f.last["properties"], "TRAN_MSG") {
		t.Errorf("header of the send: %v", f.last)
	}
	if !strings.Contains(f.last["properties"], m[0].ReservationID) {
		t.Errorf("the key is not in %q", f.last["properties"])
	}
}

func TestConfigurationsThatAreNone(t *testing.T) {
	good := ConsumerConfig{Config: Config{NameServer: "127.0.0.1:9876"}, Topic: "t", Group: "g", Batch: 1, Workers: 1, Drain: time.Second}
	for rule, mend := range map[string]func(*ConsumerConfig){
		"no name server":       func(c *ConsumerConfig) { c.NameServer = "" },
		"a host name":          func(c *ConsumerConfig) { c.NameServer = "localhost:9876" },
		"no port":              func(c *ConsumerConfig) { c.NameServer = "127.0.0.1" },
		"half of credentials":  func(c *ConsumerConfig) { c.AccessKey = "a" },
		"no topic":             func(c *ConsumerConfig) { c.Topic = "" },
		"no group":             func(c *ConsumerConfig) { c.Group = "" },
		"no batch":             func(c *ConsumerConfig) { c.Batch = 0 },
		"a batch beyond 1024":  func(c *ConsumerConfig) { c.Batch = 1025 },
		"no worker":            func(c *ConsumerConfig) { c.Workers = 0 },
		"workers beyond bound": func(c *ConsumerConfig) { c.Workers = 257 },
		"no drain":             func(c *ConsumerConfig) { c.Drain = 0 },
	} {
		c := good
		mend(&c)
		_, err := NewConsumer(c, func(context.Context, []Delivery) error { return nil }, slog.New(slog.DiscardHandler))
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error is %v, want one line", rule, err)
		}
	}
	if _, err := NewProducer(Config{NameServer: "localhost:1"}, time.Second); err == nil {
		t.Error("a producer for a host name")
	}
	if _, err := NewProducer(good.Config, 0); err == nil {
		t.Error("a producer without a timeout")
	}
}

// R7.4.1: a role asks before it starts.
func TestTopicsAreCheckedAtTheNameServer(t *testing.T) {
	f := newFake(t, nil)
	f.known = map[string]bool{"here": true}
	if err := CheckTopics(t.Context(), Config{NameServer: f.addr}, "here"); err != nil {
		t.Errorf("a topic that is there: %v", err)
	}
	err := CheckTopics(t.Context(), Config{NameServer: f.addr}, "here", "absent")
	if err == nil || !strings.Contains(err.Error(), "absent") || !strings.Contains(err.Error(), "migrate") {
		t.Errorf("a topic that is not there: %v", err)
	}
	err = CheckTopics(t.Context(), Config{NameServer: "127.0.0.1:1"}, "here")
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("a name server that is not there: %v", err)
	}
}
