package lifecycle_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hotsku/hotsku/system/lifecycle"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

var silent = slog.New(slog.DiscardHandler)

// checkLog is a broker that only remembers what it was sent.
type checkLog struct {
	checks []seckill.ExpiryCheck
	after  []time.Duration
	err    error
}

func (l *checkLog) SendExpiryCheck(_ context.Context, c seckill.ExpiryCheck, after time.Duration) error {
	if l.err != nil {
		return l.err
	}
	l.checks, l.after = append(l.checks, c), append(l.after, after)
	return nil
}

func (s *sale) reminders(l *checkLog, now func() time.Time) *lifecycle.Reminders {
	s.Helper()
	r, err := lifecycle.NewReminders(s.decider, l, now, silent)
	s.must(err)
	return r
}

func (s *sale) check(due time.Time, orders ...lifecycle.Claim) []byte {
	s.Helper()
	var ids []string
	for _, o := range orders {
		ids = append(ids, o.OrderID)
	}
	c := seckill.NewExpiryCheck(due, ids)
	body, err := c.Encode()
	s.must(err)
	return body
}

// R7.6.6 R16.10: checks that come early, late, twice, broken, or for orders
// nobody knows.
func TestChecksComeInAnyStateAndExpireWhatIsOverdueOnce(t *testing.T) {
	s := setup(t).sale(6, true)
	unpaid, paid, open := s.order(1), s.order(2), s.order(3)
	if _, err := s.decider.Pay(t.Context(), paid); err != nil {
		t.Fatal(err)
	}
	unknown := lifecycle.Claim{OrderID: "ord_00000000000000000000000000"}
	log := &checkLog{}
	r := s.reminders(log, time.Now)

	// Early: sent on for the rest of the time, and PostgreSQL is not asked.
	due := time.Now().Add(time.Hour)
	s.must(r.Handle(t.Context(), [][]byte{s.check(due, unpaid)}))
	if len(log.checks) != 1 || !slices.Equal(log.checks[0].OrderIDs, []string{unpaid.OrderID}) || !log.checks[0].DueAt.Equal(due) ||
		log.after[0] <= 59*time.Minute || log.after[0] > time.Hour {
		t.Errorf("an early check became %+v after %v", log.checks, log.after)
	}
	// Due by the broker's clock, but one order is not by PostgreSQL's: that
	// one is sent on, and no other.
	s.overdue(unpaid, paid)
	s.must(r.Handle(t.Context(), [][]byte{s.check(time.Now().Add(-time.Second), unpaid, paid, open, unknown), []byte("{"), []byte(`{"schema_version":9}`)}))
	if len(log.checks) != 2 || !slices.Equal(log.checks[1].OrderIDs, []string{open.OrderID}) || log.after[1] < 14*time.Minute {
		t.Errorf("the order not due became %+v after %v", log.checks[1:], log.after)
	}
	for range 2 { // late and again
		s.must(r.Handle(t.Context(), [][]byte{s.check(time.Now().Add(-time.Hour), unpaid, paid, unknown)}))
	}
	if len(log.checks) != 2 {
		t.Errorf("ended orders were sent on: %+v", log.checks[2:])
	}
	for c, want := range map[lifecycle.Claim]string{unpaid: "EXPIRED", paid: "PAID", open: "CREATED"} {
		if got := s.text(`SELECT status FROM orders WHERE order_id = $1`, c.OrderID); got != want {
			t.Errorf("order of user %d is %s, want %s", c.UserID, got, want)
		}
	}
	if st := &r.Stats; st.Expired.Load() != 1 || st.Postponed.Load() != 2 || st.Unreadable.Load() != 2 || st.Checks.Load() != 4 {
		t.Errorf("counted %d expired, %d postponed, %d unreadable, %d checks", st.Expired.Load(), st.Postponed.Load(), st.Unreadable.Load(), st.Checks.Load())
	}
	s.assertConserved()
}

// A check that cannot be sent on is the sweeper's; the message is done with.
func TestACheckThatCannotBeSentOnIsLeftToTheSweeper(t *testing.T) {
	s := setup(t).sale(1, false)
	o := s.order(1)
	r := s.reminders(&checkLog{err: errors.New("broker is down")}, time.Now)
	s.must(r.Handle(t.Context(), [][]byte{s.check(time.Now().Add(time.Hour), o)}))
	if r.Stats.SendFails.Load() != 1 {
		t.Errorf("%d send failures", r.Stats.SendFails.Load())
	}
}

// R7.6.3: an outage of the database is waited out in place; a drain ends the
// wait undecided.
func TestChecksWaitForTheDatabase(t *testing.T) {
	s := setup(t).sale(2, false)
	o := s.order(1)
	s.overdue(o)
	_, err := s.pool.Exec(t.Context(), `ALTER TABLE inventory_ledger RENAME TO elsewhere`)
	s.must(err)
	r := s.reminders(&checkLog{}, time.Now)
	ctx, drain := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Handle(ctx, [][]byte{s.check(time.Now(), o)}) }()
	for s.decider.Stats().Fails.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	drain()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("drained with %v", err)
	}
	go func() { done <- r.Handle(t.Context(), [][]byte{s.check(time.Now(), o)}) }()
	_, err = s.pool.Exec(t.Context(), `ALTER TABLE elsewhere RENAME TO inventory_ledger`)
	s.must(err)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := s.text(`SELECT status FROM orders WHERE order_id = $1`, o.OrderID); got != "EXPIRED" {
		t.Errorf("the order is %s", got)
	}
	s.assertConserved()
}

// sent is a broker that takes events.
type sent struct {
	events int
	err    error
}

func (s *sent) SendEvents(_ context.Context, events []seckill.Event) error {
	s.events += len(events)
	return s.err
}

func TestNewOrdersAreScheduledWithTheirEvents(t *testing.T) {
	now := time.Date(2026, 6, 25, 19, 0, 0, 0, time.UTC)
	ids := seckill.NewIDGenerator(func() time.Time { return now }, [32]byte{7})
	created := func(due time.Duration) seckill.Event {
		return seckill.Event{EventType: seckill.EventOrderCreated, OrderID: ids.NewOrderID(), PaymentDueAt: now.Add(due)}
	}
	var events []seckill.Event
	for i := range 250 { // created within a second
		events = append(events, created(15*time.Minute+time.Duration(i)*4*time.Millisecond))
	}
	events = append(events, created(time.Minute), created(-time.Minute), // an old event, published late
		seckill.Event{EventType: seckill.EventCompensate}, seckill.Event{EventType: seckill.EventOrderCreated, OrderID: "ord_x"})
	log, broker := &checkLog{}, &sent{}
	s, err := lifecycle.NewScheduler(broker, log, func() time.Time { return now }, silent)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SendEvents(t.Context(), events); err != nil || broker.events != len(events) {
		t.Fatalf("%d events sent, %v", broker.events, err)
	}
	var sizes []int
	for _, c := range log.checks {
		sizes = append(sizes, len(c.OrderIDs))
	}
	if want := []int{1, 1, seckill.ExpiryCheckMax, 50}; !slices.Equal(sizes, want) {
		t.Errorf("checks of %v orders, want %v", sizes, want)
	}
	if want := []time.Duration{0, time.Minute, 15*time.Minute + 199*4*time.Millisecond, 15*time.Minute + 249*4*time.Millisecond}; !slices.Equal(log.after, want) {
		t.Errorf("after %v, want %v", log.after, want)
	}
	if n := s.Scheduled.Load(); n != 252 {
		t.Errorf("%d orders scheduled", n)
	}

	// The events' fate is theirs alone.
	log.err = errors.New("no such topic")
	if err := s.SendEvents(t.Context(), events); err != nil || s.Fails.Load() != 4 {
		t.Errorf("%v, %d checks failed", err, s.Fails.Load())
	}
	broker.err = errors.New("broker is down")
	if err := s.SendEvents(t.Context(), events); !errors.Is(err, broker.err) || s.Fails.Load() != 4 {
		t.Errorf("%v, %d checks failed: none may be sent for events that were not", err, s.Fails.Load())
	}
}

// R7.4.4 in kind: several sweepers share the overdue orders by leases, and
// what one that died had taken is another's after its lease.
func TestSweepersShareWhatNoCheckRemindedOf(t *testing.T) {
	s := setup(t).sale(40, true)
	var orders []lifecycle.Claim
	for user := range int64(40) {
		orders = append(orders, s.order(user+1))
	}
	paid, fresh := orders[38], orders[39]
	if _, err := s.decider.Pay(t.Context(), paid); err != nil {
		t.Fatal(err)
	}
	s.overdue(orders[:39]...)
	cfg := lifecycle.SweeperConfig{Every: 10 * time.Millisecond, Grace: 30 * time.Second, Lease: time.Hour, Batch: 5}

	// One takes five and dies before it ends them.
	_, err := s.pool.Exec(t.Context(), `UPDATE orders SET expiry_leased_until = now() + interval '1 hour' WHERE order_id = ANY (
		SELECT order_id FROM orders WHERE status = 'CREATED' AND payment_due_at < now() ORDER BY payment_due_at LIMIT 5)`)
	s.must(err)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	var sweepers []*lifecycle.Sweeper
	for range 3 {
		w, err := lifecycle.NewSweeper(cfg, s.decider, silent)
		s.must(err)
		sweepers = append(sweepers, w)
		running.Go(func() { w.Run(ctx) })
	}
	swept := func() (n int64) {
		for _, w := range sweepers {
			n += w.Expired.Load()
		}
		return n
	}
	count := func(status string) (n int) {
		s.scan(&n, `SELECT count(*) FROM orders WHERE activity_id = $1 AND status = $2`, s.activityID, status)
		return n
	}
	for count("EXPIRED") < 33 {
		time.Sleep(5 * time.Millisecond)
	}
	if n := count("CREATED"); n != 6 {
		t.Errorf("%d orders open, want the five leased and the fresh one", n)
	}
	// The lease runs out.
	_, err = s.pool.Exec(t.Context(), `UPDATE orders SET expiry_leased_until = now() WHERE status = 'CREATED' AND expiry_leased_until IS NOT NULL`)
	s.must(err)
	for count("EXPIRED") < 38 {
		time.Sleep(5 * time.Millisecond)
	}
	stop()
	running.Wait()
	if got := s.text(`SELECT status FROM orders WHERE order_id = $1`, fresh.OrderID); got != "CREATED" || count("PAID") != 1 || swept() != 38 {
		t.Errorf("the fresh order is %s, %d are paid, %d swept", got, count("PAID"), swept())
	}
	s.assertConserved()
}

func TestSweepersLeaveOrdersToTheirChecksForAWhile(t *testing.T) {
	s := setup(t).sale(1, false)
	o := s.order(1)
	s.overdue(o) // by a minute
	for _, test := range []struct {
		grace time.Duration
		want  int
	}{{2 * time.Minute, 0}, {30 * time.Second, 1}, {30 * time.Second, 0}} {
		cfg := lifecycle.SweeperConfigDefault
		cfg.Grace = test.grace
		w, err := lifecycle.NewSweeper(cfg, s.decider, silent)
		s.must(err)
		if n, err := w.Sweep(t.Context()); err != nil || n != test.want {
			t.Errorf("grace %v: took %d, %v", test.grace, n, err)
		}
	}
	s.assertConserved()
}

// A sweeper waits an outage out.
func TestASweeperSurvivesAnOutage(t *testing.T) {
	f := setup(t)
	s := f.sale(1, false)
	s.overdue(s.order(1))
	pool := systest.Pool(t, postgres.Config{URL: f.pool.Config().ConnString(), MaxConns: 1})
	d, err := lifecycle.New(lifecycle.Config{Pool: pool, TxTimeout: 5 * time.Second})
	s.must(err)
	_, err = s.pool.Exec(t.Context(), `ALTER TABLE consumer_inbox RENAME TO elsewhere`)
	s.must(err)
	w, err := lifecycle.NewSweeper(lifecycle.SweeperConfig{Every: 10 * time.Millisecond, Lease: time.Second, Batch: 10}, d, silent)
	s.must(err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	for w.Fails.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	_, err = s.pool.Exec(t.Context(), `ALTER TABLE elsewhere RENAME TO consumer_inbox`)
	s.must(err)
	for w.Expired.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	stop()
	<-done
	s.assertConserved()
}

func TestPartsAreRequired(t *testing.T) {
	for name, make := range map[string]func() error{
		"scheduler": func() error { _, err := lifecycle.NewScheduler(nil, nil, nil, nil); return err },
		"reminders": func() error { _, err := lifecycle.NewReminders(nil, nil, nil, nil); return err },
		"sweeper":   func() error { _, err := lifecycle.NewSweeper(lifecycle.SweeperConfigDefault, nil, nil); return err },
	} {
		if err := make(); err == nil {
			t.Errorf("a %s without its parts", name)
		}
	}
}
