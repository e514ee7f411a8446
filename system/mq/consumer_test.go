package mq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// unconnected is a consumer whose library end is the test.
func unconnected(t *testing.T, workers int, handle Handler) *session {
	t.Helper()
	c, err := NewConsumer(ConsumerConfig{Config: Config{NameServer: "127.0.0.1:9876"}, Topic: "t", Group: "g", Batch: 32, Workers: workers,
		Drain: time.Second}, handle, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return newSession(c)
}

func delivered(n int) (msgs []*primitive.MessageExt) {
	for i := range n {
		msgs = append(msgs, &primitive.MessageExt{Message: primitive.Message{Body: []byte{byte(i)}}, QueueOffset: int64(i)})
	}
	return msgs
}

// decider is a handler that is idempotent, as handlers must be, and panics or
// fails as told.
type decider struct {
	fail func(call int, batch []Delivery) error

	mu      sync.Mutex
	calls   int
	decided map[int64]bool
}

func (d *decider) handle(_ context.Context, batch []Delivery) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	if d.fail != nil {
		if err := d.fail(d.calls, batch); err != nil {
			return err
		}
	}
	if d.decided == nil {
		d.decided = map[int64]bool{}
	}
	for _, m := range batch {
		d.decided[m.Offset] = true
	}
	return nil
}

// I12 R7.4.5: what a handler cannot decide is never acknowledged, is tried a
// bounded number of times, and takes no other message with it.
func TestAHandlerThatFails(t *testing.T) {
	const poison = 3
	has := func(batch []Delivery) bool {
		return slices.ContainsFunc(batch, func(d Delivery) bool { return d.Offset == poison })
	}
	for rule, c := range map[string]struct {
		fail    func(call int, batch []Delivery) error
		want    consumer.ConsumeResult
		decided int
		calls   int
		panics  int64
	}{
		"none does": {nil, consumer.ConsumeSuccess, 10, 1, 0},
		"a panic that does not come again is repeated at once": {
			func(call int, _ []Delivery) error {
				if call == 1 {
					panic("once")
				}
				return nil
			}, consumer.ConsumeSuccess, 10, 2, 1},
		"one message that always panics: the others are decided, the batch goes back": {
			func(_ int, batch []Delivery) error {
				if has(batch) {
					panic("poison")
				}
				return nil
			}, consumer.ConsumeRetryLater, 9, handlerAttempts + 10, handlerAttempts + 1},
		"one message that always fails": {
			func(_ int, batch []Delivery) error {
				if has(batch) {
					return errors.New("against the contract")
				}
				return nil
			}, consumer.ConsumeRetryLater, 9, handlerAttempts + 10, 0},
		"a batch that fails and whose messages do not is acknowledged": {
			func(_ int, batch []Delivery) error {
				if len(batch) > 1 {
					panic("too many")
				}
				return nil
			}, consumer.ConsumeSuccess, 10, handlerAttempts + 10, handlerAttempts},
		"every message fails": {
			func(int, []Delivery) error { panic("all") },
			consumer.ConsumeRetryLater, 0, handlerAttempts + 10, handlerAttempts + 10},
	} {
		t.Run(rule, func(t *testing.T) {
			d := &decider{fail: c.fail}
			cons := unconnected(t, 1, d.handle)
			got, err := cons.consume(context.Background(), delivered(10))
			if err != nil || got != c.want || len(d.decided) != c.decided || d.calls != c.calls || cons.Stats.Panics.Load() != c.panics {
				t.Errorf("result %v, %v; decided %v in %d calls, %d panics", got, err, d.decided, d.calls, cons.Stats.Panics.Load())
			}
			if back := cons.Stats.HandedBack.Load(); (back > 0) != (c.want == consumer.ConsumeRetryLater) || cons.Stats.Messages.Load() != 10 {
				t.Errorf("%d handed back of %d", back, cons.Stats.Messages.Load())
			}
		})
	}
}

// R15.5 R15.8: the bound holds for all topics together, the retry topic too.
func TestNoMoreHandlersThanWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int64
		c := unconnected(t, 2, func(context.Context, []Delivery) error {
			n := running.Add(1)
			defer running.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(time.Second)
			return nil
		})
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if r, err := c.consume(context.Background(), delivered(1)); r != consumer.ConsumeSuccess || err != nil {
					t.Errorf("%v, %v", r, err)
				}
			})
		}
		wg.Wait()
		if most.Load() != 2 {
			t.Errorf("%d handlers at once, want 2", most.Load())
		}
	})
}

// Whatever is undecided when the process ends is held until the client is
// gone: handed back before, the broker would keep it for 10 s and more.
func TestWhatIsUndecidedAtTheEndIsHeld(t *testing.T) {
	for rule, handle := range map[string]func(context.Context) error{
		"the handler waits an outage out":         func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"the handler panics as its context ends":  func(ctx context.Context) error { <-ctx.Done(); panic("end") },
		"the handler hides the end in its errors": func(ctx context.Context) error { <-ctx.Done(); return errors.New("connection closed") },
	} {
		t.Run(rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(context.Background())
				c := unconnected(t, 1, func(ctx context.Context, _ []Delivery) error { return handle(ctx) })
				results := make(chan consumer.ConsumeResult, 2)
				consume := func() {
					r, err := c.consume(ctx, delivered(5))
					if err != nil {
						t.Error(err)
					}
					results <- r
				}
				go consume() // runs
				synctest.Wait()
				go consume() // waits for a worker
				synctest.Wait()
				c.mu.Lock()
				c.stopped = true
				c.mu.Unlock()
				cancel()
				c.running.Wait()
				synctest.Wait()
				if len(results) != 0 {
					t.Fatalf("returned %v before the client was gone", <-results)
				}
				close(c.closed)
				for range 2 {
					if r := <-results; r != consumer.ConsumeRetryLater {
						t.Errorf("result %v", r)
					}
				}
				if c.Stats.HandedBack.Load() != 0 {
					t.Error("counted as handed back")
				}
			})
		})
	}
}

// A context that ends while messages are tried one by one leaves the rest
// undecided: the batch must not pass for decided.
func TestAnEndInTheMiddleOfABatchAcknowledgesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	d := &decider{fail: func(_ int, batch []Delivery) error {
		if len(batch) > 1 {
			panic("too many")
		}
		if batch[0].Offset == 4 {
			cancel()
		}
		return nil
	}}
	c := unconnected(t, 1, d.handle)
	close(c.closed)
	if r, _ := c.consume(ctx, delivered(10)); r != consumer.ConsumeRetryLater {
		t.Errorf("result %v with %d of 10 decided", r, len(d.decided))
	}
	if len(d.decided) != 5 {
		t.Errorf("decided %v", d.decided)
	}
}

func TestADeliveryIsWhatTheBrokerDelivered(t *testing.T) {
	var got []Delivery
	c := unconnected(t, 1, func(_ context.Context, b []Delivery) error { got = b; return nil })
	m := &primitive.MessageExt{Message: primitive.Message{Topic: "t", Body: []byte("body"), Queue: &primitive.MessageQueue{QueueId: 3}},
		QueueOffset: 42, ReconsumeTimes: 2}
	if _, err := c.consume(context.Background(), []*primitive.MessageExt{m}); err != nil {
		t.Fatal(err)
	}
	want := Delivery{Topic: "t", Queue: 3, Offset: 42, Body: []byte("body"), ReconsumeTimes: 2}
	if len(got) != 1 || fmt.Sprint(got[0]) != fmt.Sprint(want) || c.Stats.Redelivered.Load() != 1 {
		t.Errorf("got %+v, %d redelivered", got, c.Stats.Redelivered.Load())
	}
}
