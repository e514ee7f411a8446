package submit_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/hotsku/hotsku/system/access/submit"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Time in these tests is synctest's: it stands still while anyone works, so
// that a duration is exact and a test waits for nothing.

var cfg = submit.Config{InFlight: 1000, Reservers: 1, QueueWait: 40 * time.Millisecond,
	ReserveTimeout: 50 * time.Millisecond, CallTimeout: time.Second, Markers: 1, AnswerBudget: time.Second,
	Senders: 1, SendLinger: 2 * time.Millisecond, SendTimeout: 80 * time.Millisecond}

// redis is a Store that makes every reservation, unless told otherwise, and
// remembers.
type redis struct {
	reserve func(ctx context.Context, call int, c []reservation.Candidate) (reservation.Batch, error)
	mark    func(ctx context.Context, ids []string) error

	mu     sync.Mutex
	calls  []reserveCall
	marked []markCall
	noted  []noteCall
}

type reserveCall struct {
	activity, sku int64
	candidates    []reservation.Candidate
}

type markCall struct {
	activity, sku int64
	ids           []string
}

type noteCall struct {
	markCall
	code string
}

func (r *redis) Reserve(ctx context.Context, activity, sku int64, c []reservation.Candidate) (reservation.Batch, error) {
	r.mu.Lock()
	r.calls = append(r.calls, reserveCall{activity, sku, c})
	n := len(r.calls)
	r.mu.Unlock()
	if r.reserve != nil {
		return r.reserve(ctx, n, c)
	}
	return created(c), nil
}

func (r *redis) MarkSent(ctx context.Context, activity, sku int64, ids []string) error {
	r.mu.Lock()
	r.marked = append(r.marked, markCall{activity, sku, ids})
	r.mu.Unlock()
	if r.mark != nil {
		return r.mark(ctx, ids)
	}
	return nil
}

func (r *redis) NoteFailure(ctx context.Context, activity, sku int64, ids []string, code string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noted = append(r.noted, noteCall{markCall{activity, sku, ids}, code})
	return ctx.Err()
}

var reservedAt = time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)

// created is the reply that makes all of them reservations.
func created(c []reservation.Candidate) reservation.Batch {
	return verdicts(c, func(int) reservation.Outcome { return reservation.Outcome{Verdict: reservation.VerdictCreated} })
}

func verdicts(c []reservation.Candidate, of func(i int) reservation.Outcome) reservation.Batch {
	b := reservation.Batch{ReservedAt: reservedAt, ExpiresAt: reservedAt.Add(5 * time.Minute), ActivityVersion: 7}
	for i := range c {
		o := of(i)
		if o.Verdict == reservation.VerdictCreated {
			o.ReservationID, o.Status = c[i].ReservationID, string(seckill.StatusPendingMessage)
		}
		b.Outcomes = append(b.Outcomes, o)
	}
	return b
}

// broker is a Sender that confirms everything, unless told otherwise, and
// remembers.
type broker struct {
	send func(call int, m []seckill.OrderCreateMessage) error

	mu      sync.Mutex
	batches [][]seckill.OrderCreateMessage
}

func (b *broker) SendOrderCreates(m []seckill.OrderCreateMessage) error {
	b.mu.Lock()
	b.batches = append(b.batches, append([]seckill.OrderCreateMessage(nil), m...))
	n := len(b.batches)
	b.mu.Unlock()
	if b.send != nil {
		return b.send(n, m)
	}
	return nil
}

func (b *broker) messages() (all []seckill.OrderCreateMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.batches {
		all = append(all, m...)
	}
	return all
}

// client takes the answers of one request.
type client struct {
	mu      sync.Mutex
	answers []seckill.Answer
	after   time.Duration // from the client's making to its first answer
	began   time.Time
}

func (c *client) Reply(a *seckill.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.answers) == 0 {
		c.after = time.Since(c.began)
	}
	c.answers = append(c.answers, *a)
}

// only returns the one answer.
func (c *client) only(t testing.TB) seckill.Answer {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.answers) != 1 {
		t.Fatalf("%d answers, want exactly one: %+v", len(c.answers), c.answers)
	}
	return c.answers[0]
}

func (c *client) answered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.answers) > 0
}

// path is a service in a bubble of its own.
type path struct {
	*submit.Service
	t      testing.TB
	redis  *redis
	broker *broker
	stop   func()
	users  int64
}

// bubble runs test with a path whose clock is the bubble's.
func bubble(t *testing.T, cfg submit.Config, r *redis, b *broker, test func(p *path)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPath(t, cfg, r, b, nil)
		p.Start()
		defer p.stop()
		test(p)
	})
}

func newPath(t testing.TB, cfg submit.Config, r *redis, b *broker, hit func(seckill.FaultPoint)) *path {
	t.Helper()
	s, err := submit.New(submit.Params{Config: cfg, Store: r, Sender: b, IDs: seckill.NewIDGenerator(time.Now, [32]byte{1}),
		Log: slog.New(slog.DiscardHandler), Hit: hit})
	if err != nil {
		t.Fatal(err)
	}
	return &path{Service: s, t: t, redis: r, broker: b, stop: sync.OnceFunc(s.Stop)}
}

// submit sends a request for SKU 8 of activity 7.
func (p *path) submit() (*client, seckill.SubmitCommand) { return p.submitSKU(7, 8) }

func (p *path) submitSKU(activity, sku int64) (*client, seckill.SubmitCommand) {
	p.t.Helper()
	p.users++
	cmd := seckill.SubmitCommand{ActivityID: activity, SKUID: sku, UserID: p.users, RequestID: fmt.Sprintf("r%d", p.users), Quantity: 1}
	c := &client{began: time.Now()}
	if reason := p.Refuses(); reason != "" { // as the edge does
		c.Reply(&seckill.Answer{Code: seckill.CodeUnavailable, RequestID: cmd.RequestID, Reason: reason, RetryAfterMS: submit.RetryAfterMS})
		return c, cmd
	}
	if !p.TryAcquire() {
		p.t.Fatal("no place")
	}
	p.Submit(cmd, c)
	return c, cmd
}

// free is how many places the path has now.
func (p *path) free() (n int) {
	for p.TryAcquire() {
		n++
	}
	return n
}
