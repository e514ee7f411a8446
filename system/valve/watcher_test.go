package valve_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/valve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Time in these tests is synctest's: it stands still while anyone works.

// board is Redis: it keeps what is posted and how old it is, unless it is
// down, and then answers only when the caller gives up.
type board struct {
	mu     sync.Mutex
	posted map[string]reservation.Signal
	at     map[string]time.Time
	down   bool
}

func newBoard() *board {
	return &board{posted: map[string]reservation.Signal{}, at: map[string]time.Time{}}
}

func (b *board) PostSignals(ctx context.Context, signals []reservation.Signal) error {
	if err := b.wait(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range signals {
		b.posted[s.Name], b.at[s.Name] = s, time.Now()
	}
	return nil
}

func (b *board) Signals(ctx context.Context) ([]reservation.Signal, error) {
	if err := b.wait(ctx); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []reservation.Signal
	for name, s := range b.posted {
		s.Age = time.Since(b.at[name])
		all = append(all, s)
	}
	return all, nil
}

func (b *board) wait(ctx context.Context) error {
	b.mu.Lock()
	down := b.down
	b.mu.Unlock()
	if down {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (b *board) setDown(down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = down
}

// figures is what sources measure; a test sets them.
type figures struct {
	values map[valve.Signal]*atomic.Int64
	fail   atomic.Bool // the sources cannot measure
	hang   atomic.Bool // the first of them does not answer
}

func newFigures() *figures {
	f := &figures{values: map[valve.Signal]*atomic.Int64{}}
	for _, s := range valve.Signals() {
		f.values[s] = new(atomic.Int64)
	}
	return f
}

// sources has one for each signal.
func (f *figures) sources() (all []valve.Source) {
	for i, s := range valve.Signals() {
		all = append(all, valve.Source{Name: string(s), Measure: func(ctx context.Context) (map[valve.Signal]int64, error) {
			if f.hang.Load() && i == 0 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			if f.fail.Load() {
				return nil, errors.New("no answer")
			}
			return map[valve.Signal]int64{s: f.values[s].Load()}, nil
		}})
	}
	return all
}

// world is a publisher and a watcher over one board.
type world struct {
	*board
	*figures
	w *valve.Watcher
}

func run(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{board: newBoard(), figures: newFigures()}
		log := slog.New(slog.DiscardHandler)
		p, err := valve.NewPublisher(valve.PublisherConfigDefault, w.board, w.sources(), log)
		if err != nil {
			t.Fatal(err)
		}
		if w.w, err = valve.NewWatcher(valve.WatcherConfigDefault, w.board, log); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { p.Run(ctx) })
		running.Go(func() { w.w.Run(ctx) })
		defer running.Wait()
		defer stop()
		w.settle(2 * time.Second)
		if reason := w.w.Closed(); reason != "" {
			t.Fatalf("at rest it is closed: %s", reason)
		}
		test(w)
	})
}

func (w *world) settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

var limits = valve.LimitsDefault

// atLimit is each signal's limit in its unit.
var atLimit = map[valve.Signal]int64{valve.SignalLag: limits.Lag, valve.SignalOldestMessage: limits.OldestMessage.Milliseconds(),
	valve.SignalOldestPending: limits.OldestPending.Milliseconds(), valve.SignalDatabaseDown: limits.DatabaseDown.Milliseconds()}

// R7.11.5 R7.11.4: over any limit no reservation is made, at every access
// process within SpreadMax; up to it all are; and they are made again only
// when the figure has fallen well below.
func TestAFigureOverItsLimitStopsReservationsWithinTheDeclaredTime(t *testing.T) {
	for _, s := range valve.Signals() {
		t.Run(string(s), func(t *testing.T) {
			run(t, func(w *world) {
				for _, step := range []struct {
					rule  string
					value int64
					want  string
				}{
					{"at the limit it is open", atLimit[s], ""},
					{"over it it is closed", atLimit[s] + 1, seckill.ReasonOrderLag},
					{"back at the limit it stays closed", atLimit[s], seckill.ReasonOrderLag},
					{"well below it is open", atLimit[s] / 2, ""},
					{"near the limit again it stays open", atLimit[s], ""},
				} {
					w.values[s].Store(step.value)
					w.settle(valve.SpreadMax)
					if got := w.w.Closed(); got != step.want {
						t.Errorf("%s: reason %q", step.rule, got)
					}
					if over := w.w.Gauges[s].Over.Load() == 1; over != (step.want != "") {
						t.Errorf("%s: its gauge says %t", step.rule, over)
					}
				}
			})
		})
	}
}

// R16.11: that nobody publishes is no proof of health, and a scanner that
// restarts is no outage: closed after Stale, open with the first figures.
func TestMissingFiguresCloseItAfterAWhile(t *testing.T) {
	run(t, func(w *world) {
		w.fail.Store(true)
		w.settle(limits.Stale - valve.SpreadMax)
		if reason := w.w.Closed(); reason != "" {
			t.Errorf("before Stale: %s", reason)
		}
		w.settle(2 * valve.SpreadMax)
		if reason := w.w.Closed(); reason != seckill.ReasonOrderLagUnknown {
			t.Errorf("after Stale: %q", reason)
		}
		w.fail.Store(false)
		w.settle(valve.SpreadMax)
		if reason := w.w.Closed(); reason != "" {
			t.Errorf("published again: %s", reason)
		}
	})
}

// What is known to be over is the reason, whatever else is missing.
func TestWhatIsKnownIsTheReason(t *testing.T) {
	run(t, func(w *world) {
		w.hang.Store(true)
		w.settle(limits.Stale + valve.SpreadMax)
		if reason := w.w.Closed(); reason != seckill.ReasonOrderLagUnknown {
			t.Errorf("a figure is missing: %q", reason)
		}
		w.values[valve.SignalDatabaseDown].Store(atLimit[valve.SignalDatabaseDown] + 1)
		w.settle(valve.SpreadMax)
		if reason := w.w.Closed(); reason != seckill.ReasonOrderLag {
			t.Errorf("another is over: %q", reason)
		}
	})
}

// One source that hangs is one figure that is missing; the others arrive.
func TestASourceThatHangsHoldsUpNoOther(t *testing.T) {
	run(t, func(w *world) {
		w.hang.Store(true)
		w.values[valve.SignalDatabaseDown].Store(atLimit[valve.SignalDatabaseDown] + 1)
		w.settle(valve.SpreadMax)
		if reason := w.w.Closed(); reason != seckill.ReasonOrderLag {
			t.Errorf("reason %q", reason)
		}
		w.values[valve.SignalDatabaseDown].Store(0)
		w.settle(limits.Stale)
		if w.w.Gauges[valve.SignalLag].Over.Load() != 1 || w.w.Gauges[valve.SignalDatabaseDown].Over.Load() != 0 {
			t.Error("only the figure that hangs may be over")
		}
	})
}

// R7.11.1: Redis that does not answer closes it, and opens it when it does.
func TestRedisThatDoesNotAnswerClosesIt(t *testing.T) {
	run(t, func(w *world) {
		c := valve.WatcherConfigDefault
		w.setDown(true)
		w.settle(c.RedisDown - c.Call)
		if reason := w.w.Closed(); reason != "" {
			t.Errorf("after a moment: %s", reason)
		}
		w.settle(2*c.Call + c.Poll)
		if reason := w.w.Closed(); reason != seckill.ReasonRedis {
			t.Errorf("after %v: reason %q", c.RedisDown, reason)
		}
		w.setDown(false)
		w.settle(c.Call + valve.SpreadMax)
		if reason := w.w.Closed(); reason != "" {
			t.Errorf("it is back: %s", reason)
		}
	})
}

// A process that starts where nobody publishes serves for Stale, and no longer.
func TestANewWatcherTrustsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := valve.NewWatcher(valve.WatcherConfigDefault, newBoard(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { w.Run(ctx) })
		defer running.Wait()
		defer stop()
		time.Sleep(limits.Stale - time.Second)
		synctest.Wait()
		early := w.Closed()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if early != "" || w.Closed() != seckill.ReasonOrderLagUnknown {
			t.Errorf("reasons are %q and %q", early, w.Closed())
		}
	})
}

// Whatever the figures do: a watcher is closed exactly if some signal is over,
// a signal over its limit is, one below the part to reopen at is not, and in
// between it stays what it was.
func TestHysteresis(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.SampledFrom(valve.Signals()).Draw(rt, "signal")
		limit := atLimit[s]
		values := rapid.SliceOfN(rapid.Int64Range(0, 2*limit), 1, 12).Draw(rt, "values")
		var failure string
		run(t, func(w *world) {
			was := false
			for _, v := range values {
				w.values[s].Store(v)
				w.settle(valve.SpreadMax)
				want := v > limit || was && float64(v) > float64(limit)*limits.Reopen
				if got := w.w.Closed() != ""; got != want {
					failure = "closed where it should not be, or open"
				}
				was = want
			}
		})
		if failure != "" {
			rt.Fatal(failure)
		}
	})
}

func TestConfigurationsThatAreNone(t *testing.T) {
	for rule, mend := range map[string]func(*valve.WatcherConfig){
		"a poll that is too slow":       func(c *valve.WatcherConfig) { c.Poll = time.Second },
		"a read without bound":          func(c *valve.WatcherConfig) { c.Call = 0 },
		"Redis gone before a read ends": func(c *valve.WatcherConfig) { c.RedisDown = c.Call - 1 },
		"no lag":                        func(c *valve.WatcherConfig) { c.Limits.Lag = 0 },
		"younger than offsets arrive":   func(c *valve.WatcherConfig) { c.Limits.OldestMessage = time.Second },
		"no age":                        func(c *valve.WatcherConfig) { c.Limits.OldestPending = 0 },
		"no database":                   func(c *valve.WatcherConfig) { c.Limits.DatabaseDown = 0 },
		"reopening above the limit":     func(c *valve.WatcherConfig) { c.Limits.Reopen = 1.1 },
		"figures may never be missing":  func(c *valve.WatcherConfig) { c.Limits.Stale = 0 },
	} {
		c := valve.WatcherConfigDefault
		mend(&c)
		if _, err := valve.NewWatcher(c, newBoard(), slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s: no error", rule)
		}
	}
	slow := valve.PublisherConfigDefault
	slow.Every = valve.SpreadMax
	if _, err := valve.NewPublisher(slow, newBoard(), newFigures().sources(), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a publisher slower than the declared time: no error")
	}
}
