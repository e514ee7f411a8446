package submit_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hotsku/hotsku/system/access/submit"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// R9.1.2 R7.9.1 R7.9.3 R13.1.1-4 R13.1.7: what the script decides is what the
// client hears, nothing of it is sent, and a verdict that is none is never
// taken for one.
func TestAnswersOfRequestsThatMadeNoReservation(t *testing.T) {
	for rule, c := range map[string]struct {
		give reservation.Outcome
		want seckill.Answer
	}{
		"a replay before its message was sent": {
			reservation.Outcome{Verdict: reservation.VerdictReplayed, ReservationID: "resv_1", Status: "PENDING_MESSAGE"},
			seckill.Answer{Code: seckill.CodeQueuedPending, ReservationID: "resv_1", Replayed: true, Status: "PENDING_MESSAGE"}},
		"a replay after it was sent": {
			reservation.Outcome{Verdict: reservation.VerdictReplayed, ReservationID: "resv_1", Status: "MESSAGE_SENT"},
			seckill.Answer{Code: seckill.CodeQueued, ReservationID: "resv_1", Replayed: true, Status: "MESSAGE_SENT"}},
		"a replay after the order": {
			reservation.Outcome{Verdict: reservation.VerdictReplayed, ReservationID: "resv_1", Status: "ORDER_CREATED", OrderID: "ord_1"},
			seckill.Answer{Code: seckill.CodeQueued, ReservationID: "resv_1", Replayed: true, Status: "ORDER_CREATED", OrderID: "ord_1"}},
		"the same request_id with another payload": {
			reservation.Outcome{Verdict: reservation.VerdictConflict}, seckill.Answer{Code: seckill.CodeIdempotencyConflict}},
		"a user who holds a reservation": {
			reservation.Outcome{Verdict: reservation.VerdictDuplicateUser, ReservationID: "resv_1"},
			seckill.Answer{Code: seckill.CodeDuplicateUser, ReservationID: "resv_1"}},
		"an activity that is not open": {
			reservation.Outcome{Verdict: reservation.VerdictNotOpen}, seckill.Answer{Code: seckill.CodeActivityInvalid}},
		"no stock": {
			reservation.Outcome{Verdict: reservation.VerdictSoldOut}, seckill.Answer{Code: seckill.CodeSoldOut}},
		"a verdict that is none": {
			reservation.Outcome{Verdict: "SURPRISE"}, seckill.Answer{Code: seckill.CodeUnavailable, Reason: "unknown verdict"}},
	} {
		t.Run(rule, func(t *testing.T) {
			r := &redis{reserve: func(_ context.Context, _ int, cs []reservation.Candidate) (reservation.Batch, error) {
				return verdicts(cs, func(int) reservation.Outcome { return c.give }), nil
			}}
			b := &broker{}
			bubble(t, cfg, r, b, func(p *path) {
				client, cmd := p.submit()
				p.stop()
				c.want.RequestID = cmd.RequestID
				if diff := cmp.Diff(c.want, client.only(t)); diff != "" {
					t.Errorf("answer (-want +got):\n%s", diff)
				}
				if len(b.messages()) > 0 || len(r.marked) > 0 {
					t.Errorf("sent %v, marked %v", b.messages(), r.marked)
				}
			})
		})
	}
}

// R7.7.1 R7.2.1 R9.1.1: the script is given the request's payload hash and
// ids that exist before it runs; the fault points lie where they say.
func TestTheStepsComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var steps []string
		r := &redis{reserve: func(_ context.Context, _ int, c []reservation.Candidate) (reservation.Batch, error) {
			steps = append(steps, "reserve")
			return created(c), nil
		}, mark: func(context.Context, []string) error {
			steps = append(steps, "mark")
			return nil
		}}
		b := &broker{send: func(int, []seckill.OrderCreateMessage) error {
			steps = append(steps, "send")
			return nil
		}}
		p := newPath(t, cfg, r, b, func(at seckill.FaultPoint) { steps = append(steps, string(at)) })
		p.Start()
		client, cmd := p.submit()
		p.stop()
		want := []string{"access.before-reserve", "reserve", "access.after-reserve", "send", "access.after-send", "mark"}
		if diff := cmp.Diff(want, steps); diff != "" {
			t.Errorf("steps (-want +got):\n%s", diff)
		}
		c := r.calls[0].candidates[0]
		if c.RequestID != cmd.RequestID || c.UserID != cmd.UserID || c.PayloadHash != cmd.PayloadHash() ||
			c.MessageID != seckill.MessageIDOf(c.ReservationID) {
			t.Errorf("candidate is %+v for %+v", c, cmd)
		}
		if a := client.only(t); a.Code != seckill.CodeQueued || a.ReservationID != c.ReservationID || a.RequestID != cmd.RequestID {
			t.Errorf("answered %+v", a)
		}
		if n := p.Stats.Marked.Load(); n != 1 {
			t.Errorf("%d marked", n)
		}
	})
}

// R7.11.1 R11.1: once the call was dispatched nobody knows what Redis did, so
// the client is told to repeat the same request_id, and nothing is sent.
func TestARedisErrorAfterDispatchIsUnavailable(t *testing.T) { // R11.2
	r := &redis{reserve: func(context.Context, int, []reservation.Candidate) (reservation.Batch, error) {
		return reservation.Batch{}, reservation.ErrUnavailable
	}}
	b := &broker{}
	bubble(t, cfg, r, b, func(p *path) {
		client, cmd := p.submit()
		p.stop()
		a := client.only(t)
		if a.Code != seckill.CodeUnavailable || a.RequestID != cmd.RequestID || a.Reason == "" || a.RetryAfterMS == 0 {
			t.Errorf("answered %+v", a)
		}
		if len(b.messages()) > 0 || p.Stats.ReserveFails.Load() != 1 {
			t.Errorf("sent %v, %d calls failed", b.messages(), p.Stats.ReserveFails.Load())
		}
	})
}

// R9.1.3: the answer does not wait for a late reply, and what the reply made
// is sent and marked all the same: no work is left to the scanner.
func TestALateReplyIsUnavailableAndItsReservationsAreSent(t *testing.T) {
	r := &redis{reserve: func(_ context.Context, _ int, c []reservation.Candidate) (reservation.Batch, error) {
		time.Sleep(cfg.CallTimeout - time.Millisecond)
		return created(c), nil
	}}
	b := &broker{}
	bubble(t, cfg, r, b, func(p *path) {
		client, _ := p.submit()
		p.stop()
		if a := client.only(t); a.Code != seckill.CodeUnavailable || client.after != cfg.ReserveTimeout {
			t.Errorf("answered %+v after %v, want UNAVAILABLE after %v", a, client.after, cfg.ReserveTimeout)
		}
		if sent := len(b.messages()); sent != 1 || p.Stats.Marked.Load() != 1 || p.Stats.ReserveLate.Load() != 1 || p.Stats.ReserveFails.Load() != 0 {
			t.Errorf("%d messages sent, %d marked, %d calls late, %d failed", sent, p.Stats.Marked.Load(), p.Stats.ReserveLate.Load(), p.Stats.ReserveFails.Load())
		}
	})
}

// R9.1.3
func TestAReserveCallEndsAtItsTimeout(t *testing.T) {
	r := &redis{reserve: func(ctx context.Context, _ int, _ []reservation.Candidate) (reservation.Batch, error) {
		<-ctx.Done()
		return reservation.Batch{}, ctx.Err()
	}}
	bubble(t, cfg, r, &broker{}, func(p *path) {
		client, _ := p.submit()
		p.stop()
		if a := client.only(t); a.Code != seckill.CodeUnavailable || client.after != cfg.ReserveTimeout {
			t.Errorf("answered %+v after %v, want UNAVAILABLE after %v", a, client.after, cfg.ReserveTimeout)
		}
	})
}

// Architecture 3: what expires before its batch was dispatched is
// RATE_LIMITED, and Redis never hears of it: nothing was changed.
func TestARequestThatWaitedTooLongIsTurnedAwayUnjudged(t *testing.T) {
	for name, second := range map[string]int64{"behind another batch": 8, "behind another SKU of its own batch": 9} {
		t.Run(name, func(t *testing.T) {
			slow := func(_ context.Context, call int, c []reservation.Candidate) (reservation.Batch, error) {
				if call == 1 {
					time.Sleep(cfg.QueueWait + time.Nanosecond)
				}
				return created(c), nil
			}
			r := &redis{reserve: slow}
			synctest.Test(t, func(t *testing.T) {
				p := newPath(t, cfg, r, &broker{}, nil)
				var first, late *client
				if second == 8 {
					p.Start()
					first, _ = p.submit()
					synctest.Wait() // the first is at Redis
					late, _ = p.submit()
				} else {
					first, _ = p.submit()
					late, _ = p.submitSKU(7, second)
					p.Start() // both in one batch
				}
				p.stop()
				if a := first.only(t); !a.Code.Accepted() {
					t.Errorf("the first was answered %+v", a)
				}
				if a := late.only(t); a.Code != seckill.CodeRateLimited || a.RetryAfterMS == 0 {
					t.Errorf("the late one was answered %+v", a)
				}
				if len(r.calls) != 1 || p.Stats.Expired.Load() != 1 {
					t.Errorf("%d calls, %d expired, want 1 and 1", len(r.calls), p.Stats.Expired.Load())
				}
			})
		})
	}
}

// One batch may hold several SKUs; each is a call of its own, with its own
// requests in their order.
func TestABatchOfSeveralSKUsIsACallEach(t *testing.T) {
	r, b := &redis{}, &broker{}
	synctest.Test(t, func(t *testing.T) {
		p := newPath(t, cfg, r, b, nil)
		want := map[int64][]string{}
		var clients []*client
		for i := range 30 {
			sku := int64(8 + i%3)
			c, cmd := p.submitSKU(7, sku)
			want[sku] = append(want[sku], cmd.RequestID)
			clients = append(clients, c)
		}
		p.Start()
		p.stop()
		got := map[int64][]string{}
		for _, call := range r.calls {
			for _, c := range call.candidates {
				got[call.sku] = append(got[call.sku], c.RequestID)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || len(r.calls) != 3 {
			t.Errorf("%d calls (-want +got):\n%s", len(r.calls), diff)
		}
		for _, c := range clients {
			if a := c.only(t); a.Code != seckill.CodeQueued {
				t.Errorf("answered %+v", a)
			}
		}
		marked := map[int64]int{}
		for _, m := range r.marked {
			marked[m.sku] += len(m.ids)
		}
		if diff := cmp.Diff(map[int64]int{8: 10, 9: 10, 10: 10}, marked); diff != "" {
			t.Errorf("marked by SKU (-want +got):\n%s", diff)
		}
		for _, m := range b.messages() {
			if m.SKUID < 8 || m.SKUID > 10 {
				t.Errorf("message of SKU %d", m.SKUID)
			}
		}
	})
}

func TestBatchesNeverExceedTheirBounds(t *testing.T) {
	r, b := &redis{}, &broker{}
	synctest.Test(t, func(t *testing.T) {
		p := newPath(t, cfg, r, b, nil)
		for range cfg.InFlight {
			p.submit()
		}
		p.Start()
		p.stop()
		seen := 0
		for _, c := range r.calls {
			seen += len(c.candidates)
			if n := len(c.candidates); n > reservation.BatchMax {
				t.Errorf("a reserve call of %d", n)
			}
		}
		if seen != cfg.InFlight || len(r.calls) > cfg.InFlight/reservation.BatchMax+1 {
			t.Errorf("%d requests in %d calls: full batches were possible", seen, len(r.calls))
		}
		for _, m := range b.batches {
			if len(m) > 100 {
				t.Errorf("a send of %d", len(m))
			}
		}
		if n := len(b.messages()); n != cfg.InFlight || len(b.batches) > cfg.InFlight/reservation.BatchMax+1 {
			t.Errorf("%d messages in %d sends", n, len(b.batches))
		}
		for _, m := range r.marked {
			if n := len(m.ids); n > reservation.BatchMax {
				t.Errorf("a mark call of %d", n)
			}
		}
	})
}

func TestNewRefusesBoundsThatAreNone(t *testing.T) {
	for rule, mend := range map[string]func(*submit.Config){
		"no place":                       func(c *submit.Config) { c.InFlight = 0 },
		"too many places":                func(c *submit.Config) { c.InFlight = 1<<20 + 1 },
		"no reserver":                    func(c *submit.Config) { c.Reservers = 0 },
		"no sender":                      func(c *submit.Config) { c.Senders = 0 },
		"senders without bound":          func(c *submit.Config) { c.Senders = 17 },
		"no time in the queue":           func(c *submit.Config) { c.QueueWait = 0 },
		"no time for Redis":              func(c *submit.Config) { c.ReserveTimeout = 0 },
		"no time for the broker":         func(c *submit.Config) { c.SendTimeout = -1 },
		"a linger as long as the answer": func(c *submit.Config) { c.SendLinger = c.SendTimeout },
	} {
		t.Run(rule, func(t *testing.T) {
			c := submit.ConfigDefault
			mend(&c)
			if err := c.Validate(); err == nil {
				t.Error("no error")
			}
		})
	}
	if err := submit.ConfigDefault.Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
	if _, err := submit.New(submit.Params{Config: cfg}); err == nil {
		t.Error("a path without store and sender was made")
	}
}

// Reservers held up by Redis hold up nobody else: who waits is turned away in
// time, unjudged.
func TestQueueWaitIsKeptWhileEveryReserverIsHeldUp(t *testing.T) {
	r := &redis{reserve: func(ctx context.Context, _ int, _ []reservation.Candidate) (reservation.Batch, error) {
		<-ctx.Done()
		return reservation.Batch{}, ctx.Err()
	}}
	bubble(t, cfg, r, &broker{}, func(p *path) {
		p.submit()
		synctest.Wait() // the only reserver is at Redis
		late, _ := p.submit()
		p.stop()
		if a := late.only(t); a.Code != seckill.CodeRateLimited || late.after > cfg.QueueWait+time.Millisecond {
			t.Errorf("answered %+v after %v, want RATE_LIMITED after %v", a, late.after, cfg.QueueWait)
		}
		if len(r.calls) != 1 {
			t.Errorf("%d calls, want 1: the second request must not reach Redis", len(r.calls))
		}
	})
}

// R1.3: the limits of the stages do not add up in one answer.
func TestTheAnswerBudgetBoundsAllStagesTogether(t *testing.T) {
	budget := cfg
	budget.AnswerBudget = 60 * time.Millisecond
	r := &redis{reserve: func(_ context.Context, _ int, c []reservation.Candidate) (reservation.Batch, error) {
		time.Sleep(40 * time.Millisecond)
		return created(c), nil
	}}
	b := &broker{send: func(int, []seckill.OrderCreateMessage) error { time.Sleep(70 * time.Millisecond); return nil }}
	bubble(t, budget, r, b, func(p *path) {
		client, _ := p.submit()
		p.stop()
		if a := client.only(t); a.Code != seckill.CodeQueuedPending || client.after != budget.AnswerBudget {
			t.Errorf("answered %+v after %v, want QUEUED_PENDING_MESSAGE after %v", a, client.after, budget.AnswerBudget)
		}
		if p.Stats.Marked.Load() != 1 {
			t.Error("the confirmation that came after the answer was not marked")
		}
	})
}
