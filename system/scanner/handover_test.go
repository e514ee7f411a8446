package scanner_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/scanner"
)

// handOver is a scanner against a broker that never confirms.
func handOver(t *testing.T, r *redis, b *broker, d *desk) *scanner.Scanner {
	t.Helper()
	p := params(r, b, nil)
	p.Desk = d
	p.ErrorCode = func(error) string { return "TIMEOUT" }
	s, err := scanner.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// R7.8.5: what was sent again and again, for longer than the recovery time,
// is handed to a person, once; its last error stays with it until then.
func TestWhatStaysUnconfirmedIsHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, b, d := newRedis(3), &broker{err: errors.New("timeout")}, &desk{}
		s := handOver(t, r, b, d)
		stop := run(s)
		time.Sleep(scanner.ConfigDefault.HandOverAfter - time.Second)
		synctest.Wait()
		if r.left() != 3 || len(d.ended) != 0 {
			t.Errorf("before its time %d are pending, %d handed over", r.left(), len(d.ended))
		}
		for _, p := range r.now() {
			if p.LastErrorCode != "TIMEOUT" || p.SendAttempts <= scanner.ConfigDefault.HandOverAttempts {
				t.Errorf("it was tried %d times, last error %q", p.SendAttempts, p.LastErrorCode)
			}
		}
		time.Sleep(time.Second + scanner.ConfigDefault.Backoff.Max + scanner.ConfigDefault.Poll)
		synctest.Wait()
		sent := len(b.order)
		if r.left() != 0 || len(d.ended) != 3 || len(r.aside) != 3 || s.Stats.HandedOver.Load() != 3 {
			t.Errorf("%d pending, %d ended by PostgreSQL, %d set aside in Redis, %d counted", r.left(), len(d.ended), len(r.aside), s.Stats.HandedOver.Load())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		stop()
		if len(b.order) != sent {
			t.Error("sent after it was handed over")
		}
	})
}

// A scanner that was away for hours sends before it gives up.
func TestWhatWasNeverSentIsNotHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, b, d := newRedis(3), &broker{}, &desk{}
		for _, p := range r.pending {
			p.ReservedAt = p.ReservedAt.Add(-24 * time.Hour)
		}
		if err := handOver(t, r, b, d).Scan(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r.left() != 0 || len(b.seen()) != 3 || len(d.ended) != 0 {
			t.Errorf("%d pending, %d sent, %d handed over", r.left(), len(b.seen()), len(d.ended))
		}
	})
}

// late makes reservations that are beyond their time at the next claim.
func late(r *redis) {
	for _, p := range r.pending {
		p.ReservedAt = p.ReservedAt.Add(-scanner.ConfigDefault.HandOverAfter)
		p.SendAttempts = scanner.ConfigDefault.HandOverAttempts
	}
}

// R7.7.5: PostgreSQL may know the message: then it had arrived, and there is
// nothing to hand over or to send.
func TestWhatHadArrivedIsNotHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, b, d := newRedis(2), &broker{err: errors.New("timeout")}, &desk{decided: map[string]bool{}}
		late(r)
		for id := range r.pending {
			d.decided[id] = true
			break
		}
		s := handOver(t, r, b, d)
		if err := s.Scan(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r.left() != 0 || len(r.marked) != 1 || !d.decided[r.marked[0]] || len(r.aside) != 1 || d.decided[r.aside[0]] || s.Stats.HandedOver.Load() != 1 {
			t.Errorf("%d pending, marked %v, set aside %v of decided %v", r.left(), r.marked, r.aside, d.decided)
		}
		if len(b.seen()) != 0 {
			t.Errorf("sent %v", b.seen())
		}
	})
}

// Without PostgreSQL nobody is given up on: it is sent once more.
func TestWithoutADeskItIsSentOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, b, d := newRedis(2), &broker{err: errors.New("timeout")}, &desk{err: errors.New("down")}
		late(r)
		stop := run(handOver(t, r, b, d))
		time.Sleep(time.Minute)
		synctest.Wait()
		if r.left() != 2 || len(r.aside) != 0 {
			t.Errorf("%d pending, set aside %v", r.left(), r.aside)
		}
		for id, n := range b.seen() {
			if n < 5 {
				t.Errorf("%s was sent %d times in a minute", id, n)
			}
		}
		b.set(nil)
		time.Sleep(scanner.ConfigDefault.Backoff.Max + scanner.ConfigDefault.Poll)
		synctest.Wait()
		stop()
		if r.left() != 0 || len(r.marked) != 2 {
			t.Errorf("the broker is back, and %d are pending", r.left())
		}
	})
}

// A scanner that dies between PostgreSQL and Redis leaves its work to the
// next, which finds it decided.
func TestAHandOverThatWasNotNotedIsFoundAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, b, d := newRedis(1), &broker{}, &desk{}
		late(r)
		r.fail("set aside", errors.New("down"))
		s := handOver(t, r, b, d)
		if err := s.Scan(t.Context()); err == nil {
			t.Error("no error")
		}
		if r.left() != 1 || len(d.ended) != 1 {
			t.Fatalf("%d pending, %d ended", r.left(), len(d.ended))
		}
		time.Sleep(scanner.ConfigDefault.Backoff.Max)
		r.fail("set aside", nil)
		if err := s.Scan(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r.left() != 0 || len(b.seen()) != 0 || s.Stats.HandedOver.Load() != 1 {
			t.Errorf("%d pending, sent %v, %d handed over", r.left(), b.seen(), s.Stats.HandedOver.Load())
		}
	})
}

// While the broker confirms nothing, a scan ends at its first failure: what
// it has not claimed is not counted as tried, and due at once when the broker
// is back.
func TestAScanEndsAtTheFirstFailure(t *testing.T) {
	r, b := newRedis(10*reservation.BatchMax), &broker{err: errors.New("timeout")}
	r.skus = []reservation.SKU{item, item}
	if err := newScanner(t, r, b, nil).Scan(t.Context()); err == nil {
		t.Error("no error")
	}
	if len(r.claims) != 1 || len(b.seen()) != reservation.BatchMax {
		t.Errorf("%d claims, %d sent", len(r.claims), len(b.seen()))
	}
}

// What cannot be read holds up nothing else.
func TestUnreadableReservationsHoldUpNothing(t *testing.T) {
	r, b := newRedis(5), &broker{}
	s := newScanner(t, unreadable{r}, b, nil)
	if err := s.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.left() != 0 || s.Stats.Unreadable.Load() != 1 {
		t.Errorf("%d pending, %d unreadable", r.left(), s.Stats.Unreadable.Load())
	}
}

// unreadable is a store in which some reservation cannot be read.
type unreadable struct{ *redis }

func (u unreadable) ClaimDue(ctx context.Context, activity, sku int64, limit int, b reservation.Backoff) ([]reservation.Reservation, error) {
	due, err := u.redis.ClaimDue(ctx, activity, sku, limit, b)
	return due, errors.Join(err, reservation.ErrUnreadable)
}
