package submit_test

import (
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotsku/hotsku/system/access/submit"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/valve"
)

// guarded runs test with a path that has a breaker and a valve.
func guarded(t *testing.T, r *redis, b *broker, shut func() string, test func(p *path, breaker *valve.Breaker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		breaker, err := valve.NewBreaker(valve.BreakerConfigDefault, time.Now, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := submit.New(submit.Params{Config: cfg, Store: r, Sender: b, Breaker: breaker, Valves: shut,
			ErrorCode: func(error) string { return "TIMEOUT" }, IDs: seckill.NewIDGenerator(time.Now, [32]byte{1}), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		p := &path{Service: s, t: t, redis: r, broker: b, stop: sync.OnceFunc(s.Stop)}
		p.Start()
		defer p.stop()
		test(p, breaker)
	})
}

// R7.11.3 R16.11: a broker that confirms nothing for longer than the window
// stops new reservations; a few try it, and its first confirmation lets all
// in again. No reservation made before is touched or forgotten.
func TestABrokerThatStaysDownStopsReservations(t *testing.T) {
	down := true
	r := &redis{}
	b := &broker{send: func(int, []seckill.OrderCreateMessage) error {
		if down {
			time.Sleep(time.Second)
			return errors.New("timeout")
		}
		return nil
	}}
	guarded(t, r, b, nil, func(p *path, breaker *valve.Breaker) {
		began := time.Now()
		for breaker.Allow() { // one request each 10 ms
			p.submit()
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			if time.Since(began) > 10*time.Second {
				t.Fatal("the breaker never opened")
			}
		}
		if took := time.Since(began); took < valve.BreakerConfigDefault.Window {
			t.Errorf("it opened after %v", took)
		}
		reserved := len(r.calls)
		var clients []*client
		for range 50 {
			c, _ := p.submit()
			clients = append(clients, c)
		}
		for _, c := range clients {
			a := c.only(t)
			if a.Code != seckill.CodeUnavailable || a.Reason != seckill.ReasonBrokerBreaker || a.RetryAfterMS == 0 || a.ReservationID != "" {
				t.Fatalf("while open: %+v", a)
			}
		}
		time.Sleep(cfg.SendTimeout) // what is reserved is answered all the same
		synctest.Wait()
		if len(r.calls) != reserved || p.Stats.Broken.Load() != 50 || p.free() != cfg.InFlight {
			t.Errorf("%d reserve calls while open, %d refused, %d places free", len(r.calls)-reserved, p.Stats.Broken.Load(), cfg.InFlight)
		}
	})
}

// The broker is back: one of the few that try it is confirmed, and all come in.
func TestTheFirstConfirmationLetsAllIn(t *testing.T) {
	r, b := &redis{}, &broker{}
	guarded(t, r, b, nil, func(p *path, breaker *valve.Breaker) {
		began := time.Now()
		time.Sleep(valve.BreakerConfigDefault.Window)
		for range valve.BreakerConfigDefault.Failures {
			breaker.Sent(began, errors.New("timeout"))
		}
		refused, _ := p.submit()
		if a := refused.only(t); a.Reason != seckill.ReasonBrokerBreaker {
			t.Fatalf("while open: %+v", a)
		}
		time.Sleep(valve.BreakerConfigDefault.OpenFor)
		var tried []*client
		for range valve.BreakerConfigDefault.Probes + 1 {
			c, _ := p.submit()
			tried = append(tried, c)
		}
		if a := tried[len(tried)-1].only(t); a.Code != seckill.CodeUnavailable {
			t.Errorf("one more than may try: %+v", a)
		}
		time.Sleep(cfg.SendTimeout)
		synctest.Wait()
		for _, c := range tried[:len(tried)-1] {
			if a := c.only(t); a.Code != seckill.CodeQueued {
				t.Errorf("one that tried: %+v", a)
			}
		}
		c, _ := p.submit()
		time.Sleep(cfg.SendTimeout)
		synctest.Wait()
		if a := c.only(t); a.Code != seckill.CodeQueued {
			t.Errorf("after the confirmation: %+v", a)
		}
	})
}

// R7.8.2: what is reserved and not yet sent when the breaker opens is the
// scanner's, at once: it stands in nobody's way when the broker is back.
func TestAnOpenBreakerLeavesTheQueueToTheScanner(t *testing.T) {
	r := &redis{}
	b := &broker{send: func(int, []seckill.OrderCreateMessage) error {
		time.Sleep(2 * time.Second)
		return errors.New("timeout")
	}}
	guarded(t, r, b, nil, func(p *path, breaker *valve.Breaker) {
		began := time.Now()
		var clients []*client
		for range 800 {
			c, _ := p.submit()
			clients = append(clients, c)
		}
		for range valve.BreakerConfigDefault.Failures - 1 { // as other batches would
			breaker.Sent(began, errors.New("timeout"))
		}
		time.Sleep(2*time.Second + 100*time.Millisecond)
		synctest.Wait()
		if sent := len(b.messages()); sent > 200 || p.Stats.Unsent.Load() != int64(800-sent) {
			t.Errorf("%d sent, %d left to the scanner, of 800", sent, p.Stats.Unsent.Load())
		}
		for _, c := range clients {
			if a := c.only(t); a.Code != seckill.CodeQueuedPending || a.ReservationID == "" {
				t.Fatalf("answered %+v", a)
			}
		}
		if len(r.marked) != 0 {
			t.Error("marked what was not sent")
		}
	})
}

// R7.11.5 R7.11.1: a closed valve refuses with its reason before anything is
// reserved, and an open one lets all in.
func TestAClosedValveRefuses(t *testing.T) {
	reason := seckill.ReasonOrderLag
	r, b := &redis{}, &broker{}
	guarded(t, r, b, func() string { return reason }, func(p *path, _ *valve.Breaker) {
		for _, why := range []string{seckill.ReasonOrderLag, seckill.ReasonRedis} {
			reason = why
			c, cmd := p.submit()
			if a := c.only(t); a.Code != seckill.CodeUnavailable || a.Reason != why || a.RequestID != cmd.RequestID || a.RetryAfterMS == 0 {
				t.Errorf("answered %+v", a)
			}
		}
		if len(r.calls) != 0 || p.Stats.Shut.Load() != 2 || p.Stats.Submitted.Load() != 0 || p.free() != cfg.InFlight {
			t.Errorf("%d reserve calls, %d shut out, %d submitted", len(r.calls), p.Stats.Shut.Load(), p.Stats.Submitted.Load())
		}
	})
	reason = ""
	guarded(t, r, b, func() string { return reason }, func(p *path, _ *valve.Breaker) {
		c, _ := p.submit()
		time.Sleep(cfg.SendTimeout)
		synctest.Wait()
		if a := c.only(t); a.Code != seckill.CodeQueued {
			t.Errorf("open: %+v", a)
		}
	})
}

// R8.1.8: the cause of an unconfirmed send is noted with each reservation of
// the batch, by SKU and in batches a script takes; no answer waits for it.
func TestTheCauseOfAFailureIsNoted(t *testing.T) {
	r := &redis{}
	b := &broker{send: func(int, []seckill.OrderCreateMessage) error { return errors.New("timeout") }}
	guarded(t, r, b, nil, func(p *path, _ *valve.Breaker) {
		for i := range 90 {
			p.submitSKU(7, int64(1+i%2))
		}
		time.Sleep(cfg.SendTimeout)
		synctest.Wait()
		noted := map[int64]int{}
		for _, n := range r.noted {
			if len(n.ids) > reservation.BatchMax || n.code != "TIMEOUT" {
				t.Errorf("noted %d with %q", len(n.ids), n.code)
			}
			noted[n.sku] += len(n.ids)
		}
		if noted[1] != 45 || noted[2] != 45 {
			t.Errorf("noted %v", noted)
		}
	})
}

// R12.6: a request's trace goes into its reservation and its message.
func TestTheTraceGoesAlong(t *testing.T) {
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	r, b := &redis{}, &broker{}
	bubble(t, cfg, r, b, func(p *path) {
		if !p.TryAcquire() {
			t.Fatal("no place")
		}
		p.Submit(seckill.SubmitCommand{ActivityID: 7, SKUID: 8, UserID: 1, RequestID: "r", Quantity: 1, Traceparent: trace}, &client{began: time.Now()})
		p.stop()
		if got := r.calls[0].candidates[0].Traceparent; got != trace {
			t.Errorf("the reservation has %q", got)
		}
		if got := b.messages()[0].Traceparent; got != trace {
			t.Errorf("the message has %q", got)
		}
	})
}

// A drain says so before anything else: this process is no evidence of an
// outage.
func TestDrainingComesBeforeOtherReasons(t *testing.T) {
	r, b := &redis{}, &broker{}
	guarded(t, r, b, func() string { return seckill.ReasonOrderLag }, func(p *path, _ *valve.Breaker) {
		p.stop()
		c, _ := p.submit()
		if a := c.only(t); a.Reason != seckill.ReasonDraining {
			t.Errorf("answered %+v", a)
		}
	})
}
