package scanner_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/scanner"
	"github.com/hotsku/hotsku/system/seckill"
)

// The RocketMQ client leaves goroutines behind; they all run in these
// functions.
func TestMain(m *testing.M) {
	mq.UseLogger(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/apache/rocketmq-client-go/v2/primitive.WithRecover"),
		goleak.IgnoreAnyFunction("github.com/patrickmn/go-cache.(*janitor).Run"))
}

var item = reservation.SKU{ActivityID: 7, SKUID: 8}

// redis is a Store in memory with the claim script's semantics: claiming
// leases until the next retry, marking removes.
type redis struct {
	mu      sync.Mutex
	skus    []reservation.SKU
	pending map[string]*reservation.Reservation
	claims  []int      // limits asked
	over    *time.Time // when the sales ended; nil: they have not
	marked  []string
	aside   []string
	failing map[string]error // by call: "activities", "claim", "mark"
}

func newRedis(n int) *redis {
	r := &redis{skus: []reservation.SKU{item}, pending: map[string]*reservation.Reservation{}, failing: map[string]error{}}
	ids := seckill.NewIDGenerator(time.Now, [32]byte{1})
	for i := range n {
		id := ids.NewReservationID()
		cmd := seckill.SubmitCommand{ActivityID: 7, SKUID: 8, UserID: int64(i + 1), Quantity: 1}
		now := time.Now()
		r.pending[id] = &reservation.Reservation{ReservationID: id, MessageID: seckill.MessageIDOf(id), RequestID: fmt.Sprintf("r%d", i), ActivityID: 7, SKUID: 8,
			UserID: cmd.UserID, Status: seckill.StatusPendingMessage, PayloadHash: cmd.PayloadHash(), ReservedAt: now, ExpiresAt: now.Add(5 * time.Minute),
			NextRetryAt: now, ActivityVersion: 3}
	}
	return r
}

func (r *redis) fail(call string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing[call] = err
}

func (r *redis) Activities(context.Context) ([]reservation.SKU, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.skus, r.failing["activities"]
}

func (r *redis) PendingCounts(_ context.Context, skus []reservation.SKU) ([]int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := make([]int64, len(skus))
	for i, sku := range skus {
		for _, p := range r.pending {
			if p.ActivityID == sku.ActivityID && p.SKUID == sku.SKUID {
				counts[i]++
			}
		}
	}
	return counts, r.failing["count"]
}

func (r *redis) Forget(_ context.Context, skus []reservation.SKU, after time.Duration) ([]reservation.SKU, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over == nil || time.Since(*r.over) < after {
		return nil, r.failing["forget"]
	}
	r.skus, r.over = nil, nil
	return skus, r.failing["forget"]
}

func (r *redis) ClaimDue(_ context.Context, activity, sku int64, limit int, b reservation.Backoff) ([]reservation.Reservation, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claims = append(r.claims, limit)
	if err := r.failing["claim"]; err != nil {
		return nil, err
	}
	var due []reservation.Reservation
	for _, p := range r.pending {
		if len(due) == limit || p.ActivityID != activity || p.SKUID != sku || p.NextRetryAt.After(time.Now()) {
			continue
		}
		p.SendAttempts++
		p.NextRetryAt = time.Now().Add(min(b.Base<<(p.SendAttempts-1), b.Max))
		due = append(due, *p)
	}
	return due, nil
}

func (r *redis) MarkSent(ctx context.Context, _, _ int64, ids []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := errors.Join(ctx.Err(), r.failing["mark"]); err != nil {
		return err
	}
	r.marked = append(r.marked, ids...)
	for _, id := range ids {
		delete(r.pending, id)
	}
	return nil
}

func (r *redis) NoteFailure(ctx context.Context, _, _ int64, ids []string, code string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if p := r.pending[id]; p != nil {
			p.LastErrorCode = code
		}
	}
	return ctx.Err()
}

func (r *redis) SetAside(ctx context.Context, _, _ int64, ids []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := errors.Join(ctx.Err(), r.failing["set aside"]); err != nil {
		return err
	}
	for _, id := range ids {
		r.aside = append(r.aside, id)
		delete(r.pending, id)
	}
	return nil
}

// now are the pending reservations as they are.
func (r *redis) now() (all []reservation.Reservation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pending {
		all = append(all, *p)
	}
	return all
}

func (r *redis) left() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pending)
}

// desk is PostgreSQL: it ends what was not decided before.
type desk struct {
	mu      sync.Mutex
	decided map[string]bool // by a message
	ended   map[string]bool
	err     error
}

func (d *desk) SetAside(_ context.Context, reservations []reservation.Reservation) (ended []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return nil, d.err
	}
	if d.ended == nil {
		d.ended = map[string]bool{}
	}
	for _, r := range reservations {
		if !d.decided[r.ReservationID] && !d.ended[r.ReservationID] {
			d.ended[r.ReservationID] = true
			ended = append(ended, r.ReservationID)
		}
	}
	return ended, nil
}

// broker is a Sender that remembers what was sent, by message id.
type broker struct {
	mu    sync.Mutex
	err   error
	sent  map[string]int
	order []seckill.OrderCreateMessage
	hold  func()
}

func (b *broker) SendOrderCreates(messages []seckill.OrderCreateMessage) error {
	if b.hold != nil {
		b.hold()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sent == nil {
		b.sent = map[string]int{}
	}
	for _, m := range messages {
		b.sent[m.MessageID]++
	}
	b.order = append(b.order, messages...)
	return b.err
}

// seen is how often each message id was sent.
func (b *broker) seen() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.sent)
}

func (b *broker) set(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

// params are those of a scanner with defaults and a desk nobody comes to.
func params(r scanner.Store, b scanner.Sender, hit func(seckill.FaultPoint)) scanner.Params {
	return scanner.Params{Config: scanner.ConfigDefault, Store: r, Sender: b, Desk: &desk{}, Now: time.Now, Log: slog.New(slog.DiscardHandler), Hit: hit}
}

func newScanner(t testing.TB, r scanner.Store, b scanner.Sender, hit func(seckill.FaultPoint)) *scanner.Scanner {
	t.Helper()
	s, err := scanner.New(params(r, b, hit))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs scanners until the test ends them.
func run(scanners ...*scanner.Scanner) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, s := range scanners {
		running.Go(func() { s.Run(ctx) })
	}
	return func() { cancel(); running.Wait() }
}
