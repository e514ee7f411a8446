package backlog_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/mq/backlog"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

func TestMain(m *testing.M) {
	mq.UseLogger(slog.New(slog.DiscardHandler))
	// The RocketMQ client leaves goroutines behind; they all run in these
	// functions.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/apache/rocketmq-client-go/v2/primitive.WithRecover"),
		goleak.IgnoreAnyFunction("github.com/apache/rocketmq-client-go/v2/consumer.(*pushConsumer).Start.func1.1.1"),
		goleak.IgnoreAnyFunction("github.com/patrickmn/go-cache.(*janitor).Run"))
}

func topics(t *testing.T) mq.Config {
	t.Helper()
	cfg := mq.Config{NameServer: systest.NameServer(t), TopicPrefix: fmt.Sprintf("lag%08x_", rand.Uint32())}
	broker := os.Getenv("HOTSKU_TEST_BROKER")
	if broker == "" {
		t.Fatal("HOTSKU_TEST_BROKER is not set: run `make test`, or `eval \"$(bin/hotsku up --stack dev --env)\"`")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := mq.EnsureTopics(ctx, cfg, broker); err != nil {
		t.Fatal(err)
	}
	return cfg
}

func observer(t *testing.T, cfg mq.Config) func() backlog.Backlog {
	t.Helper()
	o, err := backlog.New(cfg, seckill.TopicOrderCreate, seckill.GroupOrder, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
	return func() backlog.Backlog {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		b, err := o.Measure(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
}

// R12.3 R6.6b: messages nobody consumed wait, all of them, and the oldest is
// as old as it is; consumed they are gone.
func TestTheBacklogIsWhatTheGroupHasNotConsumed(t *testing.T) {
	cfg := topics(t)
	measure := observer(t, cfg)
	if b := measure(); b != (backlog.Backlog{}) {
		t.Fatalf("of an empty topic: %+v", b)
	}
	producer, err := mq.NewProducer(cfg, 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	ids := seckill.NewIDGenerator(time.Now, [32]byte{byte(rand.Uint32()), 9})
	const batches, each = 12, 7 // several queues
	began := time.Now()
	for range batches {
		var m [each]seckill.OrderCreateMessage
		for i := range m {
			id := ids.NewReservationID()
			m[i] = seckill.OrderCreateMessage{SchemaVersion: 1, MessageID: seckill.MessageIDOf(id), ReservationID: id, MessageKey: id}
		}
		if err := producer.SendOrderCreates(m[:]); err != nil {
			t.Fatal(err)
		}
	}
	const slack = 50 * time.Millisecond // the broker's milliseconds, rounded
	first := measure()
	for deadline := time.Now().Add(10 * time.Second); first.Messages < batches*each && time.Now().Before(deadline); first = measure() {
		time.Sleep(5 * time.Millisecond) // the broker indexes what it stored a moment later
	}
	if first.Messages != batches*each || first.Oldest < 0 || first.Oldest > time.Since(began)+slack {
		t.Errorf("after %v: %+v, want %d messages", time.Since(began), first, batches*each)
	}
	byQueue, err := backlog.New(cfg, seckill.TopicOrderCreate, seckill.GroupOrder, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer byQueue.Close()
	waiting, err := byQueue.Waiting(t.Context())
	sum := int64(0)
	for _, n := range waiting {
		sum += n
	}
	if err != nil || len(waiting) != mq.TopicQueues || sum != batches*each {
		t.Errorf("by queue: %v, %v", waiting, err)
	}
	later := time.Now()
	if again := measure(); again.Messages != first.Messages || again.Oldest < first.Oldest || again.Oldest+slack < time.Since(later) {
		t.Errorf("later: %+v after %+v", again, first)
	}

	var got sync.WaitGroup
	got.Add(batches * each)
	consumer, err := mq.NewConsumer(mq.ConsumerConfig{Config: cfg, Topic: seckill.TopicOrderCreate, Group: seckill.GroupOrder, Batch: 10, Workers: 2, Drain: 5 * time.Second},
		func(_ context.Context, batch []mq.Delivery) error { got.Add(-len(batch)); return nil }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- consumer.Run(ctx, func() {}) }()
	got.Wait()
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) { // the broker is told without an answer
		b := measure()
		if b == (backlog.Backlog{}) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("all is consumed, and %+v is left", b)
		}
	}
}

func TestWhatCannotBeAskedIsAnError(t *testing.T) {
	cfg := mq.Config{NameServer: systest.NameServer(t), TopicPrefix: fmt.Sprintf("none%08x_", rand.Uint32())}
	o, err := backlog.New(cfg, seckill.TopicOrderCreate, seckill.GroupOrder, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if b, err := o.Measure(t.Context()); err == nil || !strings.Contains(err.Error(), cfg.TopicPrefix) {
		t.Errorf("of no topic: %+v, %v", b, err)
	}
	cfg.NameServer = "127.0.0.1:1"
	o, err = backlog.New(cfg, seckill.TopicOrderCreate, seckill.GroupOrder, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if _, err := o.Measure(t.Context()); err == nil {
		t.Error("of no server: no error")
	}
	if _, err := backlog.New(cfg, "", "g", time.Now); err == nil {
		t.Error("no topic: no error")
	}
}

// A name server that never answers holds nobody longer than his context, and
// requests to it are signed as the client library signs them.
func TestAServerThatHangsIsGivenUp(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	fields := make(chan map[string]string, 1)
	go func() {
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		var lengths [8]byte
		if _, err := io.ReadFull(nc, lengths[:]); err != nil {
			return
		}
		head := make([]byte, binary.BigEndian.Uint32(lengths[4:]))
		if _, err := io.ReadFull(nc, head); err != nil {
			return
		}
		var h struct {
			ExtFields map[string]string `json:"extFields"`
		}
		if err := json.Unmarshal(head, &h); err != nil {
			return
		}
		fields <- h.ExtFields
		_, _ = io.Copy(io.Discard, nc)
	}()
	o, err := backlog.New(mq.Config{NameServer: ln.Addr().String(), AccessKey: "ak", SecretKey: "sk"}, "topic", "group", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	ctx, cancel := context.WithCancel(t.Context())
	gave := make(chan error)
	go func() { _, err := o.Measure(ctx); gave <- err }()
	got := <-fields
	cancel()
	if err := <-gave; err == nil {
		t.Error("no error")
	}
	// HMAC-SHA1 with key "sk" of "ak" + "true" + "topic": the values of
	// AccessKey, acceptStandardJsonOnly and topic, in that order.
	if got["AccessKey"] != "ak" || got["Signature"] != "QIfM5Zo8c6g6CvPr75PXOTF72SA=" {
		t.Errorf("fields are %v", got)
	}
}
