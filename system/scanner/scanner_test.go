package scanner_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/scanner"
	"github.com/hotsku/hotsku/system/seckill"
)

// R7.7.3 R7.7.4 R7.6.2 R8.3.1: the message is the reservation's own, under
// the id it always had; only the attempt is counted.
func TestAResendIsTheOriginalMessage(t *testing.T) { // R15.10
	r, b := newRedis(1), &broker{}
	s := newScanner(t, r, b, nil)
	var want reservation.Reservation
	for _, p := range r.pending {
		want = *p
	}
	if err := s.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := b.order[0]
	if m.MessageID != want.MessageID || m.ReservationID != want.ReservationID || m.MessageKey != want.ReservationID || m.RequestID != want.RequestID ||
		m.UserID != want.UserID || m.ActivityVersion != 3 || m.RetryCount != 1 || !m.ReservedAt.Equal(want.ReservedAt) {
		t.Errorf("sent %+v\nof %+v", m, want)
	}
	body, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := seckill.DecodeOrderCreate(body); err != nil {
		t.Errorf("the consumer would refuse it: %v", err)
	}
	if r.left() != 0 || s.Stats.Claimed.Load() != 1 || s.Stats.Resent.Load() != 1 || s.Stats.Unknown.Load() != 0 {
		t.Errorf("%d pending; claimed %d, resent %d, unknown %d", r.left(), s.Stats.Claimed.Load(), s.Stats.Resent.Load(), s.Stats.Unknown.Load())
	}
}

// R7.8.4 R7.8.1 R7.11.2: while the broker does not confirm, the reservation
// stays and is sent again under the same id, ever more rarely.
func TestAnUnknownResendStaysDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, b := newRedis(1), &broker{err: errors.New("timeout")}
		s := newScanner(t, r, b, nil)
		stop := run(s)
		time.Sleep(time.Minute) // 0, 1, 3, 7, 15, 25, 35, 45, 55 s
		synctest.Wait()
		if n := s.Stats.Unknown.Load(); n != 9 || r.left() != 1 || len(r.marked) != 0 {
			t.Errorf("%d resends in a minute, %d pending, marked %v; want 9, 1 and none", n, r.left(), r.marked)
		}
		b.set(nil)
		time.Sleep(scanner.ConfigDefault.Backoff.Max)
		synctest.Wait()
		stop()
		if r.left() != 0 || len(b.seen()) != 1 || s.Stats.Resent.Load() != 1 {
			t.Errorf("after the broker came back: %d pending, ids %v", r.left(), b.seen())
		}
	})
}

// R7.7.5: a mark that was lost costs a second send of the same message, which
// the inbox absorbs.
func TestALostMarkIsAnotherSendOfTheSameMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, b := newRedis(3), &broker{}
		r.fail("mark", errors.New("down"))
		s := newScanner(t, r, b, nil)
		stop := run(s)
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		r.fail("mark", nil)
		time.Sleep(time.Second)
		synctest.Wait()
		stop()
		if r.left() != 0 || len(b.seen()) != 3 {
			t.Errorf("%d pending, ids %v", r.left(), b.seen())
		}
		for id, n := range b.seen() {
			if n != 2 {
				t.Errorf("%s was sent %d times, want 2", id, n)
			}
		}
	})
}

// One scan takes all that is due, a script's batch at a time.
func TestAScanEmptiesWhatIsDue(t *testing.T) {
	r, b := newRedis(3*reservation.BatchMax+5), &broker{}
	if err := newScanner(t, r, b, nil).Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.left() != 0 || len(b.seen()) != 3*reservation.BatchMax+5 || slices.Max(r.claims) > reservation.BatchMax {
		t.Errorf("%d pending, %d sent, claimed by %v", r.left(), len(b.seen()), r.claims)
	}
}

// R7.4.4: several scanners at once, each reservation is sent once.
func TestSeveralScannersShareTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, b := newRedis(1000), &broker{}
		stop := run(newScanner(t, r, b, nil), newScanner(t, r, b, nil), newScanner(t, r, b, nil))
		time.Sleep(time.Second)
		synctest.Wait()
		stop()
		if r.left() != 0 || len(b.seen()) != 1000 {
			t.Errorf("%d pending, %d sent", r.left(), len(b.seen()))
		}
		for id, n := range b.seen() {
			if n != 1 {
				t.Errorf("%s was sent %d times", id, n)
			}
		}
	})
}

// R7.4.4 R7.10: what a scanner claimed before it died comes back to another
// when the lease ends, not sooner.
func TestADeadScannersClaimGoesToAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, b := newRedis(10), &broker{}
		type dead struct{}
		dying := newScanner(t, r, b, func(p seckill.FaultPoint) {
			if p != seckill.FaultScannerBeforeResend {
				t.Errorf("fault point %s", p)
			}
			panic(dead{})
		})
		func() {
			defer func() {
				if recover() != (dead{}) {
					t.Error("the fault point was not reached")
				}
			}()
			_ = dying.Scan(t.Context())
		}()
		if len(b.seen()) != 0 {
			t.Fatalf("sent before the fault point: %v", b.seen())
		}
		heir := newScanner(t, r, b, nil)
		stop := run(heir)
		time.Sleep(scanner.ConfigDefault.Backoff.Base - scanner.ConfigDefault.Poll)
		synctest.Wait()
		if len(b.seen()) != 0 {
			t.Error("sent during the lease")
		}
		time.Sleep(2 * scanner.ConfigDefault.Poll)
		synctest.Wait()
		stop()
		if r.left() != 0 || len(b.seen()) != 10 {
			t.Errorf("%d pending, %d sent", r.left(), len(b.seen()))
		}
	})
}

// R11.1: Redis may fail in any call; the scanner goes on when it is back.
func TestAnOutageOfRedisIsOutlived(t *testing.T) {
	for _, call := range []string{"activities", "count", "claim"} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, b := newRedis(5), &broker{}
				r.fail(call, errors.New("down"))
				stop := run(newScanner(t, r, b, nil))
				time.Sleep(time.Second)
				synctest.Wait()
				if len(b.seen()) != 0 {
					t.Error("sent without Redis")
				}
				r.fail(call, nil)
				time.Sleep(scanner.ConfigDefault.Poll)
				synctest.Wait()
				stop()
				if r.left() != 0 {
					t.Errorf("%d pending", r.left())
				}
			})
		})
	}
}

// One SKU's trouble is not another's.
func TestASKUThatFailsHoldsUpNoOther(t *testing.T) {
	r, b := newRedis(5), &broker{}
	r.skus = []reservation.SKU{{ActivityID: 1, SKUID: 1}, item}
	err := newScanner(t, failsFor{r, 1}, b, nil).Scan(t.Context())
	if err == nil || r.left() != 0 {
		t.Errorf("error %v, %d pending", err, r.left())
	}
}

// What has nothing pending is not asked for what is due.
func TestOnlyWhatWaitsIsClaimed(t *testing.T) {
	r, b := newRedis(1), &broker{}
	r.skus = []reservation.SKU{{ActivityID: 1, SKUID: 1}, item, {ActivityID: 2, SKUID: 1}}
	if err := newScanner(t, r, b, nil).Scan(t.Context()); err != nil || len(r.claims) != 1 || r.left() != 0 {
		t.Errorf("error %v, %d claims, %d pending", err, len(r.claims), r.left())
	}
}

// A sale that is over is forgotten when it has been for long enough, and a
// Redis that fails meanwhile is asked again.
func TestWhatIsOverIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRedis(0)
		ended := time.Now()
		r.over = &ended
		r.fail("forget", errors.New("down"))
		stop := run(newScanner(t, r, &broker{}, nil))
		defer stop()
		time.Sleep(scanner.ConfigDefault.ForgetAfter - time.Second)
		synctest.Wait()
		listed := func() int { skus, _ := r.Activities(t.Context()); return len(skus) }
		if listed() != 1 {
			t.Error("forgotten too early")
		}
		r.fail("forget", nil)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if listed() != 0 {
			t.Error("not forgotten")
		}
	})
}

// An entry of the index that names no SKU keeps the scanner from none.
func TestAnIndexEntryThatIsNoneHoldsUpNothing(t *testing.T) {
	r, b := newRedis(5), &broker{}
	r.fail("activities", reservation.ErrUnreadable)
	if err := newScanner(t, r, b, nil).Scan(t.Context()); !errors.Is(err, reservation.ErrUnreadable) || r.left() != 0 {
		t.Errorf("error %v, %d pending", err, r.left())
	}
}

type failsFor struct {
	*redis
	activity int64
}

func (f failsFor) PendingCounts(ctx context.Context, skus []reservation.SKU) ([]int64, error) {
	counts, err := f.redis.PendingCounts(ctx, skus)
	for i := range skus {
		if skus[i].ActivityID == f.activity {
			counts[i] = 1
		}
	}
	return counts, err
}

func (f failsFor) ClaimDue(ctx context.Context, activity, sku int64, limit int, b reservation.Backoff) ([]reservation.Reservation, error) {
	if activity == f.activity {
		return nil, errors.New("a reservation cannot be read")
	}
	return f.redis.ClaimDue(ctx, activity, sku, limit, b)
}

// A scanner told to end in the middle of a send notes what it sent.
func TestADrainMarksWhatWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sending, confirm := make(chan struct{}), make(chan struct{})
		r := newRedis(reservation.BatchMax)
		b := &broker{hold: func() { close(sending); <-confirm }}
		stop := run(newScanner(t, r, b, nil))
		<-sending
		stopped := make(chan struct{})
		go func() { stop(); close(stopped) }()
		synctest.Wait() // it has been told
		close(confirm)
		<-stopped
		if r.left() != 0 {
			t.Errorf("%d of what was sent are still pending", r.left())
		}
	})
}

func TestNewRefusesAConfigurationThatIsNone(t *testing.T) {
	for rule, mend := range map[string]func(*scanner.Config){
		"no poll":                      func(c *scanner.Config) { c.Poll = 0 },
		"forgetting while clients ask": func(c *scanner.Config) { c.ForgetAfter = time.Second },
		"no bound":                     func(c *scanner.Config) { c.Call = 0 },
		"no backoff":                   func(c *scanner.Config) { c.Backoff.Base = 0 },
		"no range":                     func(c *scanner.Config) { c.Backoff.Max = c.Backoff.Base - 1 },
		"no time":                      func(c *scanner.Config) { c.HandOverAfter = c.Backoff.Max - 1 },
		"no attempt":                   func(c *scanner.Config) { c.HandOverAttempts = 0 },
	} {
		p := params(newRedis(0), &broker{}, nil)
		mend(&p.Config)
		if _, err := scanner.New(p); err == nil {
			t.Errorf("%s: no error", rule)
		}
	}
}
