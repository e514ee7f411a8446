package mq

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotsku/hotsku/system/mq/remoting"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

// broker returns the address of the test broker.
func broker(t *testing.T) string {
	t.Helper()
	addr := os.Getenv("HOTSKU_TEST_BROKER")
	if addr == "" {
		t.Fatal("HOTSKU_TEST_BROKER is not set: run `make test`, or `eval \"$(bin/hotsku up --stack dev --env)\"`")
	}
	return addr
}

// topics makes topics and groups for this test alone.
func topics(t *testing.T) Config {
	t.Helper()
	cfg := Config{NameServer: systest.NameServer(t), TopicPrefix: fmt.Sprintf("mq%08x_", rand.Uint32())}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := EnsureTopics(ctx, cfg, broker(t)); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// send sends in batches that spread over the queues.
func send(t *testing.T, p *Producer, messages []seckill.OrderCreateMessage, each int) {
	t.Helper()
	for part := range slices.Chunk(messages, each) {
		if err := p.SendOrderCreates(part); err != nil {
			t.Fatal(err)
		}
	}
}

// R15.9 R8.3.6 R7.3.1: what is sent comes once where nothing fails, over many
// queues, in batches of the handler's size; also what was sent before the
// group's first start.
func TestMessagesComeOnceFromManyQueues(t *testing.T) {
	t.Parallel()
	cfg := topics(t)
	p := newProducer(t, cfg, 3*time.Second)
	early, late := creates(ids, 300), creates(ids, 300)
	send(t, p, early, 10)
	c := start(t, cfg, "decide")
	send(t, p, late, 10)
	all := slices.Concat(early, late)
	c.await(all)
	c.stop()
	if n, most := c.times(all); n != len(all) || most != 1 {
		t.Errorf("%d deliveries of %d messages, one came %d times", n, len(all), most)
	}
	if len(c.queues) < 4 {
		t.Errorf("from %d queues, want 4 at least", len(c.queues))
	}
	if c.most > 32 {
		t.Errorf("a batch of %d", c.most)
	}
}

func TestEventsGoToTheirOwnTopic(t *testing.T) {
	t.Parallel()
	cfg := topics(t)
	p := newProducer(t, cfg, 3*time.Second)
	m := creates(ids, 1)
	e := seckill.Event{SchemaVersion: 1, EventType: seckill.EventOrderCreated, ReservationID: m[0].ReservationID, ActivityID: 7, SKUID: 8,
		UserID: 1, OrderID: ids.NewOrderID(), Status: seckill.StatusOrderCreated}
	if err := p.SendEvents(t.Context(), []seckill.Event{e}); err != nil {
		t.Fatal(err)
	}
	start(t, cfg, "decide", func(o *order) { o.Topic, o.Group = seckill.TopicEvent, seckill.GroupProjector }).await(m)
}

// R7.10.4: a consumer that starts again goes on where the last one ended.
func TestARestartResumesAtTheCommittedOffset(t *testing.T) {
	t.Parallel()
	cfg := topics(t)
	p := newProducer(t, cfg, 3*time.Second)
	first, second := creates(ids, 200), creates(ids, 200)
	send(t, p, first, 10)
	before := start(t, cfg, "decide")
	before.await(first)
	before.stop()
	send(t, p, second, 10)
	after := start(t, cfg, "decide")
	after.await(second)
	after.stop()
	// None, unless this machine is so busy that the broker did not hear of the
	// last acknowledgements before the connection ended.
	if n, _ := after.times(first); n > len(first)/4 {
		t.Errorf("%d of %d messages that were acknowledged came again", n, len(first))
	}
}

// R7.3.1: a handler under way when the consumer is told to end gets its time.
func TestADrainWaitsForRunningHandlers(t *testing.T) {
	t.Parallel()
	cfg := topics(t)
	p := newProducer(t, cfg, 3*time.Second)
	messages := creates(ids, 20)
	c := start(t, cfg, "pause")
	send(t, p, messages, len(messages))
	<-c.running
	c.tell()
	select {
	case <-c.exited:
		t.Fatal("it did not wait")
	case <-time.After(300 * time.Millisecond): // it had its chance
	}
	c.goOn.Close()
	<-c.exited
	if decided, _ := c.times(messages); decided == 0 {
		t.Error("the running handler was not waited for")
	}
}

// R7.10.5 R7.10.6: what a handler could not decide before the end, by SIGTERM
// or by SIGKILL, is not acknowledged, and the next consumer has it at once.
func TestWhatWasNotDecidedComesToTheNextConsumer(t *testing.T) {
	for how, end := range map[string]func(*process){"told to end": func(c *process) { c.stop() }, "killed": (*process).kill} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			cfg := topics(t)
			p := newProducer(t, cfg, 3*time.Second)
			messages := creates(ids, 100)
			c := start(t, cfg, "hang", func(o *order) { o.Drain = 100 * time.Millisecond })
			send(t, p, messages, 10)
			<-c.running
			end(c)
			next := start(t, cfg, "decide")
			next.await(messages)
			if back := next.stop(); c.ended.HandedBack != 0 || back.Redelivered != 0 {
				t.Errorf("%d handed back to the broker, %d from there: they would wait 10 s", c.ended.HandedBack, back.Redelivered)
			}
		})
	}
}

// I12: a message whose handler always panics is delivered again by the
// broker, later; others are not held up, though there are more such messages
// than workers.
func TestPoisonBlocksNoWorker(t *testing.T) {
	t.Parallel()
	cfg := topics(t)
	p := newProducer(t, cfg, 3*time.Second)
	poison, good := creates(ids, 8), creates(ids, 200)
	c := start(t, cfg, "panic", func(o *order) {
		o.Workers = 2
		for _, m := range poison {
			o.Poison = append(o.Poison, m.MessageKey)
		}
	})
	send(t, p, poison, 1)
	send(t, p, good, 10)
	c.await(good)
	c.goOn.Close()  // cured, by a new release, say
	c.await(poison) // the broker waits 10 s
	if e := c.stop(); e.HandedBack == 0 || e.Redelivered == 0 || e.Panics == 0 {
		t.Errorf("%+v", e)
	}
}

// R7.11.8: when one of two consumers ends, the other takes its queues.
func TestTheOtherConsumerTakesOver(t *testing.T) {
	t.Parallel()
	cfg := topics(t)
	p := newProducer(t, cfg, 3*time.Second)
	a, b := start(t, cfg, "decide"), start(t, cfg, "decide")
	for limit := time.Now().Add(40 * time.Second); a.idle() || b.idle(); {
		send(t, p, creates(ids, 8), 1)
		if time.Now().After(limit) {
			t.Fatal("two consumers do not share the queues")
		}
	}
	a.kill()
	rest := creates(ids, 64)
	send(t, p, rest, 1)
	b.await(rest)
}

// EnsureTopics may run at any time: it changes nothing that is there, makes
// what is missing, and grows what is too small.
func TestEnsureTopicsIsIdempotent(t *testing.T) {
	t.Parallel()
	cfg := topics(t)
	p := newProducer(t, cfg, 3*time.Second)
	messages := creates(ids, 50)
	send(t, p, messages, 10)
	if err := EnsureTopics(t.Context(), cfg, broker(t)); err != nil {
		t.Fatal(err)
	}
	start(t, cfg, "decide").await(messages)

	small := Config{NameServer: cfg.NameServer, TopicPrefix: cfg.TopicPrefix + "small_"}
	conn, err := remoting.Dial(t.Context(), broker(t), small.Security())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := createTopic(t.Context(), conn, small.topic(seckill.TopicOrderCreate), 1); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := EnsureTopics(ctx, small, broker(t)); err != nil {
		t.Error(err)
	}
	if err := CheckTopics(t.Context(), small, seckill.TopicOrderCreate, seckill.TopicEvent); err != nil {
		t.Error(err)
	}
}

func TestTroubleAtTheStartIsOneLine(t *testing.T) {
	t.Parallel()
	cfg := Config{NameServer: systest.NameServer(t), TopicPrefix: fmt.Sprintf("absent%08x_", rand.Uint32())}
	for what, run := range map[string]func(context.Context) error{
		"a consumer of a topic that is not there": func(ctx context.Context) error {
			c, err := NewConsumer(ConsumerConfig{Config: cfg, Topic: "t", Group: "g", Batch: 1, Workers: 1, Drain: time.Second},
				func(context.Context, []Delivery) error { return nil }, slog.New(slog.DiscardHandler))
			if err != nil {
				return err
			}
			return c.Run(ctx, func() { t.Error("ready without a topic") })
		},
		"a broker that is not there":   func(ctx context.Context) error { return EnsureTopics(ctx, cfg, "127.0.0.1:1") },
		"a broker that is no address":  func(ctx context.Context) error { return EnsureTopics(ctx, cfg, "localhost") },
		"a broker that is none":        func(ctx context.Context) error { return EnsureTopics(ctx, cfg, cfg.NameServer) },
		"topics that were never made":  func(ctx context.Context) error { return CheckTopics(ctx, cfg, "t") },
		"a name server that is absent": func(ctx context.Context) error { return CheckTopics(ctx, Config{NameServer: "127.0.0.1:1"}, "t") },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			err := run(ctx)
			if err == nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("error is %v, want one line", err)
			}
			t.Log(err)
		})
	}
}
