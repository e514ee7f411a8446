package outbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/hotsku/hotsku/system/outbox"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broker is a Sender that remembers. answer, if set, is asked first.
type broker struct {
	answer func(call int, events []seckill.Event) error

	mu    sync.Mutex
	calls int
	got   map[string]int // reservation id: how often
	all   chan struct{}  // closed once want reservations were seen
	want  int
}

func newBroker(want int) *broker {
	return &broker{got: map[string]int{}, all: make(chan struct{}), want: want}
}

func (b *broker) SendEvents(_ context.Context, events []seckill.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	if b.answer != nil {
		if err := b.answer(b.calls, events); err != nil {
			return err
		}
	}
	before := len(b.got)
	for _, e := range events {
		b.got[e.ReservationID]++
	}
	if before < b.want && len(b.got) >= b.want {
		close(b.all)
	}
	return nil
}

func setup(t *testing.T) *pgxpool.Pool {
	t.Helper()
	return systest.Pool(t, postgres.Config{URL: systest.Database(t), ApplicationName: "outbox"})
}

func insert(t *testing.T, pool *pgxpool.Pool, n int) {
	t.Helper()
	ids := seckill.NewIDGenerator(time.Now, [32]byte{9})
	var reservations, payloads []string
	for i := range n {
		e := seckill.Event{
			SchemaVersion: 1, EventType: seckill.EventOrderCreated, ReservationID: ids.NewReservationID(),
			ActivityID: 1, SKUID: 1, UserID: int64(i + 1), OrderID: ids.NewOrderID(), Status: seckill.StatusOrderCreated,
		}
		payload, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		reservations, payloads = append(reservations, e.ReservationID), append(payloads, string(payload))
	}
	_, err := pool.Exec(t.Context(), `INSERT INTO event_outbox (event_type, aggregate_id, payload)
		SELECT 'ORDER_CREATED', r, p::jsonb FROM unnest($1::text[], $2::text[]) AS e (r, p)`, reservations, payloads)
	if err != nil {
		t.Fatal(err)
	}
}

// start runs a publisher; stop drains it.
func start(t *testing.T, c outbox.Config) (p *outbox.Publisher, stop func()) {
	t.Helper()
	p, err := outbox.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return p, stop
}

func await(t *testing.T, what string, event <-chan struct{}) {
	t.Helper()
	select {
	case <-event:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: waited for 30 s", what)
	}
}

func unpublished(t *testing.T, pool *pgxpool.Pool) (n int) {
	t.Helper()
	err := pool.QueryRow(context.Background(), `SELECT count(*) FROM event_outbox WHERE published_at IS NULL`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func once(got map[string]int) bool {
	return slices.Max(slices.Collect(maps.Values(got))) == 1
}

func TestEveryEventIsPublishedOnceWhereNothingFails(t *testing.T) { // R13.3
	pool := setup(t)
	insert(t, pool, 1050)
	b := newBroker(1050)
	p, stop := start(t, outbox.Config{Pool: pool, Sender: b, Workers: 3})
	await(t, "all events", b.all)
	stop()
	if n := unpublished(t, pool); n != 0 {
		t.Errorf("%d events unpublished after a clean drain", n)
	}
	if !once(b.got) || p.Stats().Published.Load() != 1050 || b.calls < 11 {
		t.Errorf("published %d in %d sends, each once: %v", p.Stats().Published.Load(), b.calls, once(b.got))
	}
}

func TestTwoPublishersShareTheWork(t *testing.T) { // R7.4.6
	pool := setup(t)
	insert(t, pool, 600)
	b := newBroker(600)
	_, stop1 := start(t, outbox.Config{Pool: pool, Sender: b, BatchLimit: 20})
	_, stop2 := start(t, outbox.Config{Pool: pool, Sender: b, BatchLimit: 20})
	await(t, "all events", b.all)
	stop1()
	stop2()
	if n := unpublished(t, pool); n != 0 || !once(b.got) {
		t.Errorf("%d unpublished, each sent once: %v", n, once(b.got))
	}
}

func TestAnUnconfirmedSendIsRepeated(t *testing.T) { // R7.6.4, R7.11.2
	pool := setup(t)
	insert(t, pool, 50)
	b := newBroker(50)
	b.answer = func(call int, _ []seckill.Event) error {
		if call <= 2 {
			return errors.New("timeout")
		}
		return nil
	}
	p, stop := start(t, outbox.Config{Pool: pool, Sender: b, Wait: func(ctx context.Context, d time.Duration) error { return ctx.Err() }})
	await(t, "all events", b.all)
	stop()
	if n := unpublished(t, pool); n != 0 || p.Stats().SendsUnknown.Load() != 2 {
		t.Errorf("%d unpublished, %d sends unknown", n, p.Stats().SendsUnknown.Load())
	}
	var attempts int
	if err := pool.QueryRow(t.Context(), `SELECT min(attempts) FROM event_outbox`).Scan(&attempts); err != nil {
		t.Fatal(err)
	}
	if attempts != 3 {
		t.Errorf("%d attempts recorded, want 3", attempts)
	}
}

func TestWhatADeadPublisherLeasedIsPublishedByAnother(t *testing.T) { // R7.10.7
	for _, point := range []seckill.FaultPoint{seckill.FaultOutboxBeforePublish, seckill.FaultOutboxAfterPublish} {
		t.Run(string(point), func(t *testing.T) {
			pool := setup(t)
			insert(t, pool, 30)
			b := newBroker(30)
			reached, resume := make(chan struct{}), make(chan struct{})
			lease := 300 * time.Millisecond
			_, stop := start(t, outbox.Config{Pool: pool, Sender: b, LeaseFor: lease, Hit: func(p seckill.FaultPoint) {
				if p == point {
					close(reached)
					<-resume // as good as dead
				}
			}})
			await(t, "the fault point", reached)
			heir := newBroker(30)
			_, stopHeir := start(t, outbox.Config{Pool: pool, Sender: heir, LeaseFor: lease})
			await(t, "the heir", heir.all)
			stopHeir()
			if n := unpublished(t, pool); n != 0 {
				t.Errorf("%d events unpublished", n)
			}
			close(resume)
			stop()
		})
	}
}

func TestADatabaseOutageIsWaitedOut(t *testing.T) { // R7.11.4
	pool := setup(t)
	insert(t, pool, 5)
	if _, err := pool.Exec(t.Context(), `ALTER TABLE event_outbox RENAME TO elsewhere`); err != nil {
		t.Fatal(err)
	}
	b := newBroker(5)
	p, stop := start(t, outbox.Config{Pool: pool, Sender: b, Wait: func(ctx context.Context, d time.Duration) error {
		_, err := pool.Exec(ctx, `ALTER TABLE IF EXISTS elsewhere RENAME TO event_outbox`)
		return errors.Join(err, ctx.Err())
	}})
	await(t, "all events", b.all)
	stop()
	if p.Stats().StoreFails.Load() == 0 || unpublished(t, pool) != 0 {
		t.Errorf("%d failures, %d unpublished", p.Stats().StoreFails.Load(), unpublished(t, pool))
	}
}

func TestARowThatIsNoEventBlocksNoOther(t *testing.T) {
	pool := setup(t)
	if _, err := pool.Exec(t.Context(), `INSERT INTO event_outbox (event_type, aggregate_id, payload) VALUES ('ORDER_CREATED', 'x', '{}')`); err != nil {
		t.Fatal(err)
	}
	insert(t, pool, 10)
	b := newBroker(10)
	p, stop := start(t, outbox.Config{Pool: pool, Sender: b})
	await(t, "all events", b.all)
	stop()
	if n := unpublished(t, pool); n != 1 || p.Stats().Undecodable.Load() == 0 {
		t.Errorf("%d unpublished, %d undecodable", n, p.Stats().Undecodable.Load())
	}
}

func TestIdleLooksGrowRarerAndStayBounded(t *testing.T) {
	pool := setup(t)
	var waits []time.Duration
	enough := make(chan struct{})
	_, stop := start(t, outbox.Config{Pool: pool, Sender: newBroker(1), Wait: func(ctx context.Context, d time.Duration) error {
		if waits = append(waits, d); len(waits) == 6 {
			close(enough)
			<-ctx.Done()
		}
		return ctx.Err()
	}})
	await(t, "six looks", enough)
	stop()
	want := []time.Duration{20, 40, 80, 160, 200, 200}
	for i := range want {
		want[i] *= time.Millisecond
	}
	if !slices.Equal(waits, want) {
		t.Errorf("waited %v, want %v", waits, want)
	}
}

func TestNewRefusesALeaseShorterThanASend(t *testing.T) {
	_, err := outbox.New(outbox.Config{Pool: &pgxpool.Pool{}, Sender: newBroker(0), LeaseFor: time.Second, SendTimeout: 2 * time.Second})
	if err == nil {
		t.Error("no error")
	}
}
