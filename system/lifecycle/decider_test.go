package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/hotsku/hotsku/system/lifecycle"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

func (s *sale) expire(orders ...lifecycle.Claim) int {
	s.Helper()
	var ids []string
	for _, o := range orders {
		ids = append(ids, o.OrderID)
	}
	n, err := s.decider.Expire(s.Context(), ids)
	s.must(err)
	return n
}

// R6.7b: CLAIMED becomes SOLD, RELEASED, or AVAILABLE again, with the order.
// R9.2: each end has its inbox entry.
func TestAnOrderEndsOnceWithAllThatBelongsToIt(t *testing.T) {
	f := setup(t)
	for _, resell := range []bool{false, true} {
		policy, freed, left := "retire", "RELEASED", int64(4)
		if resell {
			policy, freed, left = "resell", "AVAILABLE", 6
		}
		t.Run(policy, func(t *testing.T) {
			g := *f
			g.TB = t
			s := g.sale(7, resell)
			paid, cancelled, expired := s.order(1), s.order(2), s.order(3)
			s.project(s.events()...)

			o, err := s.decider.Pay(t.Context(), paid)
			if err != nil || o.Status != seckill.OrderPaid || !o.Changed || o.RequestID != "r-1" {
				t.Errorf("pay: %+v, %v", o, err)
			}
			if o, err = s.decider.Cancel(t.Context(), cancelled); err != nil || o.Status != seckill.OrderCancelled || !o.Changed {
				t.Errorf("cancel: %+v, %v", o, err)
			}
			if n := s.expire(expired); n != 0 {
				t.Errorf("expired %d before the payment was due", n)
			}
			s.overdue(paid, cancelled, expired)
			if n := s.expire(expired, paid, cancelled, lifecycle.Claim{OrderID: "ord_00000000000000000000000000"}); n != 1 {
				t.Errorf("expired %d, want the unpaid one", n)
			}
			for c, want := range map[lifecycle.Claim][2]string{
				paid: {"PAID", "SOLD"}, cancelled: {"CANCELLED", freed}, expired: {"EXPIRED", freed},
			} {
				got := [2]string{
					s.text(`SELECT status FROM orders WHERE order_id = $1`, c.OrderID),
					s.text(`SELECT t.status FROM inventory_token t JOIN orders o ON o.inventory_token_id = t.token_id WHERE o.order_id = $1`, c.OrderID),
				}
				if got != want {
					t.Errorf("user %d: order and token are %v, want %v", c.UserID, got, want)
				}
			}
			for range 2 { // and again, late and out of order: nothing changes
				s.expire(paid, cancelled, expired)
				for _, c := range []lifecycle.Claim{paid, cancelled, expired} {
					for _, call := range []func(context.Context, lifecycle.Claim) (lifecycle.Outcome, error){s.decider.Pay, s.decider.Cancel} {
						if o, err := call(t.Context(), c); err != nil || o.Changed || string(o.Status) != s.text(`SELECT status FROM orders WHERE order_id = $1`, c.OrderID) {
							t.Errorf("user %d, again: %+v, %v", c.UserID, o, err)
						}
					}
				}
				s.project(s.events()...)
				s.assertConserved()
				if n := s.stock(); n != left {
					t.Errorf("Redis has %d units, want %d", n, left)
				}
			}
		})
	}
}

func TestOnlyTheOwnerEndsAnOrder(t *testing.T) {
	s := setup(t).sale(2, false)
	mine := s.order(1)
	for name, test := range map[string]struct {
		claim lifecycle.Claim
		want  error
	}{
		"another user":     {lifecycle.Claim{OrderID: mine.OrderID, UserID: 2, ActivityID: s.activityID}, lifecycle.ErrNotOwner},
		"another activity": {lifecycle.Claim{OrderID: mine.OrderID, UserID: 1, ActivityID: s.activityID + 1}, lifecycle.ErrNotOwner},
		"no such order":    {lifecycle.Claim{OrderID: "ord_00000000000000000000000000", UserID: 1, ActivityID: s.activityID}, lifecycle.ErrUnknownOrder},
	} {
		if _, err := s.decider.Pay(t.Context(), test.claim); !errors.Is(err, test.want) {
			t.Errorf("%s pays: %v", name, err)
		}
		if _, err := s.decider.Cancel(t.Context(), test.claim); !errors.Is(err, test.want) {
			t.Errorf("%s cancels: %v", name, err)
		}
	}
	if got := s.text(`SELECT status FROM orders WHERE order_id = $1`, mine.OrderID); got != "CREATED" {
		t.Errorf("the order is %s", got)
	}
	s.assertConserved()
}

func TestAPaymentThatComesTooLateExpiresTheOrder(t *testing.T) {
	s := setup(t).sale(2, true)
	for user, call := range []func(context.Context, lifecycle.Claim) (lifecycle.Outcome, error){s.decider.Pay, s.decider.Cancel} {
		c := s.order(int64(user + 1))
		s.overdue(c)
		if o, err := call(t.Context(), c); err != nil || o.Status != seckill.OrderExpired || !o.Changed {
			t.Errorf("%+v, %v", o, err)
		}
		if o, err := s.decider.Pay(t.Context(), c); err != nil || o.Status != seckill.OrderExpired || o.Changed {
			t.Errorf("again: %+v, %v", o, err)
		}
	}
	s.assertConserved()
}

// Payment, cancellation and expiry at once: each order ends once, and all who
// ask agree how.
func TestRacesAreDecidedOnce(t *testing.T) {
	f := setup(t)
	for _, resell := range []bool{false, true} {
		s := f.sale(60, resell)
		var orders []lifecycle.Claim
		for user := range int64(60) {
			orders = append(orders, s.order(user+1))
		}
		var mu sync.Mutex
		said, changes := map[string]map[string]bool{}, map[string]int{}
		note := func(c lifecycle.Claim, o lifecycle.Outcome, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("order %s: %v", c.OrderID, err)
				return
			}
			if said[c.OrderID] == nil {
				said[c.OrderID] = map[string]bool{}
			}
			said[c.OrderID][string(o.Status)] = true
			if o.Changed {
				changes[c.OrderID]++
			}
		}
		var wg sync.WaitGroup
		for _, call := range []func(context.Context, lifecycle.Claim) (lifecycle.Outcome, error){s.decider.Pay, s.decider.Cancel, s.decider.Pay} {
			wg.Go(func() {
				for _, c := range orders {
					o, err := call(context.Background(), c)
					note(c, o, err)
				}
			})
		}
		expired := make([]int, 2)
		for i := range expired {
			wg.Go(func() {
				for n := range 30 { // the clock strikes for one after the other, from the last
					s.overdue(orders[len(orders)-1-n])
					expired[i] += s.expire(orders[30:]...)
				}
			})
		}
		wg.Wait()
		total := expired[0] + expired[1]
		for _, c := range orders {
			status := s.text(`SELECT status FROM orders WHERE order_id = $1`, c.OrderID)
			if len(said[c.OrderID]) != 1 || !said[c.OrderID][status] {
				t.Errorf("order %s is %s, and its users were told %v", c.OrderID, status, said[c.OrderID])
			}
			if changes[c.OrderID] > 1 || changes[c.OrderID] == 0 && status != "EXPIRED" {
				t.Errorf("order %s (%s) was ended by %d calls", c.OrderID, status, changes[c.OrderID])
			}
			total += changes[c.OrderID]
		}
		if total != len(orders) {
			t.Errorf("%d ends of %d orders", total, len(orders))
		}
		s.assertConserved()
	}
}

// An order whose rows contradict each other keeps no neighbour from its end.
func TestAContradictionIsLeftAloneAndAlone(t *testing.T) {
	s := setup(t).sale(9, true)
	var orders []lifecycle.Claim
	for user := range int64(9) {
		orders = append(orders, s.order(user+1))
	}
	broken := orders[4]
	_, err := s.pool.Exec(t.Context(), `UPDATE inventory_token SET status = 'SOLD' WHERE order_id = $1`, broken.OrderID)
	s.must(err)
	s.overdue(orders...)
	if n := s.expire(orders...); n != 8 {
		t.Errorf("expired %d, want all but the broken one", n)
	}
	if got := s.text(`SELECT string_agg(order_id, ',') FROM orders WHERE activity_id = $1 AND status = 'CREATED'`, s.activityID); got != broken.OrderID {
		t.Errorf("still open: %s", got)
	}
	if n := s.decider.Stats().Stuck.Load(); n != 1 {
		t.Errorf("%d stuck", n)
	}
}

// A call whose connection is cut at any moment, perhaps at its COMMIT, may be
// repeated: the order is paid once.
func TestACutConnectionLeavesNothingHalfDone(t *testing.T) {
	s := setup(t).sale(30, false)
	var orders []lifecycle.Claim
	for user := range int64(30) {
		orders = append(orders, s.order(user+1))
	}
	var server int64 // of the fixture's database
	s.scan(&server, `SELECT oid::bigint FROM pg_database WHERE datname = current_database()`)
	admin := systest.Pool(t, postgres.Config{URL: os.Getenv(systest.EnvPostgres), MaxConns: 1})
	ctx, stop := context.WithCancel(t.Context())
	var killer sync.WaitGroup
	killer.Go(func() {
		for ctx.Err() == nil {
			var killed int
			_ = admin.QueryRow(ctx, `SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
				WHERE datid = $1 AND state <> 'idle' ORDER BY random() LIMIT 1) b`, server).Scan(&killed)
			select { // the driver needs a moment to connect again
			case <-ctx.Done():
			case <-time.After(15 * time.Millisecond):
			}
		}
	})
	failed := 0
	for _, c := range orders {
		for {
			o, err := s.decider.Pay(t.Context(), c)
			if err == nil && o.Status == seckill.OrderPaid {
				break
			}
			if failed++; err == nil || failed > 10_000 {
				t.Fatalf("%+v, %v", o, err)
			}
		}
	}
	stop()
	killer.Wait()
	s.pool.Reset()
	t.Logf("%d calls were cut", failed)
	var n int
	s.scan(&n, `SELECT count(*) FROM inventory_ledger WHERE activity_id = $1 AND entry_type = 'PAY'`, s.activityID)
	if n != len(orders) {
		t.Errorf("%d payments of %d orders", n, len(orders))
	}
	s.assertConserved()
}

func TestConfigurationIsJudged(t *testing.T) {
	if _, err := lifecycle.New(lifecycle.Config{}); err == nil {
		t.Error("a decider without a pool")
	}
	for name, mend := range map[string]func(*lifecycle.SweeperConfig){
		"every": func(c *lifecycle.SweeperConfig) { c.Every = 0 }, "grace": func(c *lifecycle.SweeperConfig) { c.Grace = -1 },
		"lease": func(c *lifecycle.SweeperConfig) { c.Lease = 0 }, "batch": func(c *lifecycle.SweeperConfig) { c.Batch = lifecycle.BatchMax + 1 },
	} {
		c := lifecycle.SweeperConfigDefault
		mend(&c)
		if err := c.Validate(); err == nil || !errors.Is(err, err) || fmt.Sprint(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := lifecycle.SweeperConfigDefault.Validate(); err != nil {
		t.Error(err)
	}
}
