package project_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/hotsku/hotsku/system/outbox/project"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// redis is a Store that remembers, and fails while told to.
type redis struct {
	mu      sync.Mutex
	err     error
	calls   []call
	applied map[string]int // reservation id: how often
}

type call struct {
	sku    reservation.SKU
	events []seckill.Event
	at     time.Time
}

func (r *redis) Apply(_ context.Context, activity, sku int64, events []seckill.Event) (reservation.Applied, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call{reservation.SKU{ActivityID: activity, SKUID: sku}, events, time.Now()})
	if r.err != nil {
		return reservation.Applied{}, r.err
	}
	if r.applied == nil {
		r.applied = map[string]int{}
	}
	var a reservation.Applied
	for _, e := range events {
		if r.applied[e.ReservationID]++; r.applied[e.ReservationID] == 1 {
			a.Changed++
		} else {
			a.Known++
		}
	}
	return a, nil
}

func (r *redis) set(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func newProjector(t testing.TB, s project.Store, hit func(seckill.FaultPoint)) *project.Projector {
	t.Helper()
	p, err := project.New(project.ConfigDefault, s, slog.New(slog.DiscardHandler), hit)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var ids = seckill.NewIDGenerator(time.Now, [32]byte{1})

func created(activity, sku int64) seckill.Event {
	return seckill.Event{SchemaVersion: 1, EventType: seckill.EventOrderCreated, ReservationID: ids.NewReservationID(), ActivityID: activity,
		SKUID: sku, UserID: 1, OrderID: ids.NewOrderID(), Status: seckill.StatusOrderCreated}
}

func encode(events ...seckill.Event) (bodies [][]byte) {
	for _, e := range events {
		b, err := json.Marshal(e)
		if err != nil {
			panic(err)
		}
		bodies = append(bodies, b)
	}
	return bodies
}

// R7.6.5: events reach Redis by SKU, a script's batch at a time, each SKU's
// in the order they came, whatever else the batch held.
func TestEventsAreAppliedInBatchesBySKU(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &redis{}
		p := newProjector(t, r, nil)
		var bodies [][]byte
		want := map[reservation.SKU][]string{}
		garbage := 0
		for range rapid.IntRange(0, 200).Draw(rt, "events") {
			if rapid.IntRange(0, 9).Draw(rt, "garbage") == 0 {
				bodies = append(bodies, []byte(rapid.SampledFrom([]string{"", "{}", "nonsense", `{"schema_version":99}`}).Draw(rt, "body")))
				garbage++
				continue
			}
			e := created(rapid.Int64Range(1, 2).Draw(rt, "activity"), rapid.Int64Range(1, 2).Draw(rt, "sku"))
			sku := reservation.SKU{ActivityID: e.ActivityID, SKUID: e.SKUID}
			want[sku] = append(want[sku], e.ReservationID)
			bodies = append(bodies, encode(e)...)
		}
		if err := p.Handle(context.Background(), bodies); err != nil {
			rt.Fatal(err)
		}
		got := map[reservation.SKU][]string{}
		for _, c := range r.calls {
			if n := len(c.events); n == 0 || n > reservation.BatchMax {
				rt.Fatalf("a call with %d events", n)
			}
			for _, e := range c.events {
				got[c.sku] = append(got[c.sku], e.ReservationID)
			}
		}
		for sku := range want {
			if !slices.Equal(want[sku], got[sku]) {
				rt.Fatalf("%v: applied %v, want %v", sku, got[sku], want[sku])
			}
		}
		if len(got) != len(want) {
			rt.Fatalf("applied to SKUs %v, want %v", got, want)
		}
		total := 0
		for _, w := range want {
			total += len(w)
		}
		if p.Stats.Unreadable.Load() != int64(garbage) || p.Stats.Applied.Load() != int64(total) {
			rt.Fatalf("%d unreadable, %d applied, want %d and %d", p.Stats.Unreadable.Load(), p.Stats.Applied.Load(), garbage, total)
		}
	})
}

// A SKU whose keys in Redis are spoilt holds up no other: its events are left
// to reconcile, and everything is acknowledged.
func TestASpoiltSKUHoldsUpNoOther(t *testing.T) {
	r := &redis{}
	p := newProjector(t, spoilt{r, 1}, nil)
	sound := created(2, 8)
	if err := p.Handle(t.Context(), encode(created(1, 8), sound)); err != nil {
		t.Fatal(err)
	}
	if r.applied[sound.ReservationID] != 1 || p.Stats.Spoilt.Load() != 1 || p.Stats.Applied.Load() != 1 {
		t.Errorf("applied %v, %d spoilt", r.applied, p.Stats.Spoilt.Load())
	}
}

// spoilt is a Redis in which one activity's keys are none of the system's.
type spoilt struct {
	*redis
	activity int64
}

func (s spoilt) Apply(ctx context.Context, activity, sku int64, events []seckill.Event) (reservation.Applied, error) {
	if activity == s.activity {
		return reservation.Applied{}, reservation.ErrUnreadable
	}
	return s.redis.Apply(ctx, activity, sku, events)
}

// R7.6.5 R11.1: while Redis is down nothing is acknowledged; the same events
// are tried again, ever more rarely but for ever, and applied when it is back.
func TestAnOutageIsWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &redis{err: reservation.ErrUnavailable}
		p := newProjector(t, r, nil)
		e := created(1, 1)
		done := make(chan error, 1)
		go func() { done <- p.Handle(context.Background(), encode(e)) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("acknowledged during the outage: %v", err)
		default:
		}
		r.set(nil)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if p.Stats.Applied.Load() != 1 || r.applied[e.ReservationID] != 1 {
			t.Errorf("applied %d", p.Stats.Applied.Load())
		}
		var waits []time.Duration
		for i := 1; i < len(r.calls); i++ {
			waits = append(waits, r.calls[i].at.Sub(r.calls[i-1].at))
		}
		if waits[0] != project.ConfigDefault.BackoffMin || slices.Max(waits) != project.ConfigDefault.BackoffMax || !slices.IsSorted(waits) {
			t.Errorf("waited %v", waits)
		}
	})
}

func TestADrainEndsTheWaitWithoutAcknowledging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &redis{err: reservation.ErrUnavailable}
		p := newProjector(t, r, nil)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- p.Handle(ctx, encode(created(1, 1))) }()
		time.Sleep(time.Second)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v", err)
		}
		if p.Stats.Applied.Load() != 0 {
			t.Error("applied")
		}
	})
}

// R7.10.8: the fault point lies before the write, at every attempt.
func TestTheFaultPointLiesBeforeTheWrite(t *testing.T) {
	r := &redis{}
	var before []int
	p := newProjector(t, r, func(at seckill.FaultPoint) {
		if at != seckill.FaultProjectorBeforeWrite {
			t.Errorf("fault point %s", at)
		}
		before = append(before, len(r.calls))
	})
	if err := p.Handle(t.Context(), encode(created(1, 1), created(1, 2))); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(before, []int{0, 1}) {
		t.Errorf("reached after %v writes", before)
	}
}

func TestNewRefusesAConfigurationThatIsNone(t *testing.T) {
	for rule, mend := range map[string]func(*project.Config){
		"no bound":   func(c *project.Config) { c.Call = 0 },
		"no backoff": func(c *project.Config) { c.BackoffMin = 0 },
		"no range":   func(c *project.Config) { c.BackoffMax = c.BackoffMin - 1 },
	} {
		c := project.ConfigDefault
		mend(&c)
		if _, err := project.New(c, &redis{}, slog.New(slog.DiscardHandler), nil); err == nil {
			t.Errorf("%s: no error", rule)
		}
	}
}
