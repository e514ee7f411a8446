package submit_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// R10.1 R9.1.5: however many ask at once, exactly InFlight get a place, and a
// place is free again once its request was judged.
func TestThePlacesAreCountedExactly(t *testing.T) {
	bubble(t, cfg, &redis{}, &broker{}, func(p *path) {
		for range 3 {
			var got atomic.Int64
			var wg sync.WaitGroup
			for range 16 {
				wg.Go(func() {
					for range cfg.InFlight / 4 {
						if p.TryAcquire() {
							got.Add(1)
						}
					}
				})
			}
			wg.Wait()
			if n := got.Load(); n != int64(cfg.InFlight) {
				t.Fatalf("%d places, want %d", n, cfg.InFlight)
			}
			for i := range cfg.InFlight {
				p.Submit(seckill.SubmitCommand{ActivityID: 7, SKUID: 8, UserID: int64(i + 1), RequestID: "r", Quantity: 1}, &client{})
			}
			synctest.Wait()
		}
		if n := p.Stats.TurnedAway.Load(); n != 3*3*int64(cfg.InFlight) {
			t.Errorf("%d turned away, want %d", n, 3*3*cfg.InFlight)
		}
	})
}

func TestStopAnswersEverythingInside(t *testing.T) {
	const n = 700
	r, b := &redis{}, &broker{}
	synctest.Test(t, func(t *testing.T) {
		p := newPath(t, cfg, r, b, nil)
		var clients []*client
		for range n {
			c, _ := p.submit()
			clients = append(clients, c)
		}
		p.Start()
		p.stop()
		for _, c := range clients {
			if a := c.only(t); a.Code != seckill.CodeQueued {
				t.Errorf("answered %+v", a)
			}
		}
		if len(b.messages()) != n || p.Stats.Marked.Load() != n {
			t.Errorf("%d sent, %d marked, want %d", len(b.messages()), p.Stats.Marked.Load(), n)
		}
		late, cmd := p.submit()
		if a := late.only(t); a.Code != seckill.CodeUnavailable || a.Reason != "draining" || a.RequestID != cmd.RequestID {
			t.Errorf("after Stop: %+v", a)
		}
		if free := p.free(); free != cfg.InFlight {
			t.Errorf("%d places free, want all %d", free, cfg.InFlight)
		}
	})
}

// With Redis and broker hanging to their limits Stop still ends, within the
// stages' timeouts.
func TestStopIsBoundedWhenNothingAnswers(t *testing.T) {
	r := &redis{reserve: func(ctx context.Context, call int, c []reservation.Candidate) (reservation.Batch, error) {
		if call == 2 {
			<-ctx.Done()
			return reservation.Batch{}, ctx.Err()
		}
		return created(c), nil
	}}
	b := &broker{send: func(int, []seckill.OrderCreateMessage) error {
		time.Sleep(cfg.SendTimeout)
		return errors.New("timeout")
	}}
	synctest.Test(t, func(t *testing.T) {
		p := newPath(t, cfg, r, b, nil)
		var clients []*client
		for range 3 * reservation.BatchMax {
			c, _ := p.submit()
			clients = append(clients, c)
		}
		p.Start()
		began := time.Now()
		p.stop()
		for _, c := range clients {
			c.only(t)
		}
		if took := time.Since(began); took > cfg.QueueWait+cfg.CallTimeout+3*cfg.SendTimeout {
			t.Errorf("Stop took %v", took)
		}
	})
}

// A drain gives up on a broker, or a Redis, that fails it once: what is left
// is the scanner's, thousands of reservations or not.
func TestStopDoesNotTryEverythingAgainstAServerThatIsGone(t *testing.T) {
	const n, patience = 3000, time.Second
	c := cfg
	c.InFlight = n
	for gone, w := range map[string]struct {
		redis  *redis
		broker *broker
	}{
		"the broker": {&redis{}, &broker{send: func(int, []seckill.OrderCreateMessage) error {
			time.Sleep(patience)
			return errors.New("timeout")
		}}},
		"Redis": {&redis{mark: func(ctx context.Context, _ []string) error {
			<-ctx.Done()
			return ctx.Err()
		}}, &broker{}},
	} {
		t.Run(gone, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPath(t, c, w.redis, w.broker, nil)
				var clients []*client
				for range n {
					cl, _ := p.submit()
					clients = append(clients, cl)
				}
				p.Start()
				began := time.Now()
				p.stop()
				if took := time.Since(began); took > 2*patience+2*c.CallTimeout {
					t.Errorf("Stop took %v", took)
				}
				for _, cl := range clients {
					if a := cl.only(t); !a.Code.Accepted() {
						t.Fatalf("answered %+v", a)
					}
				}
				if marks := p.Stats.Marked.Load() + p.Stats.MarksDropped.Load(); gone == "Redis" && marks != n {
					t.Errorf("%d marks accounted for, want %d", marks, n)
				}
			})
		})
	}
}

// Random delays and failures of Redis and broker, several SKUs, submitters at
// once, a Stop in the middle: every request gets exactly one answer that
// fits what happened, every created reservation is sent once at most, and
// every place is free in the end.
func TestEveryRequestIsAnsweredExactlyOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := cfg
		c.Reservers = rapid.IntRange(1, 4).Draw(rt, "reservers")
		c.Senders = rapid.IntRange(1, 3).Draw(rt, "senders")
		c.InFlight = rapid.IntRange(1, 300).Draw(rt, "in flight")
		c.SendLinger = time.Duration(rapid.IntRange(0, 3).Draw(rt, "linger ms")) * time.Millisecond
		delays := rapid.SliceOfN(rapid.IntRange(0, 90), 16, 16).Draw(rt, "delays ms")
		fails := rapid.SliceOfN(rapid.Bool(), 16, 16).Draw(rt, "failures")
		submitters := rapid.IntRange(1, 4).Draw(rt, "submitters")
		each := rapid.IntRange(1, 150).Draw(rt, "requests")
		stopAfter := time.Duration(rapid.IntRange(0, 300).Draw(rt, "stop after ms")) * time.Millisecond
		codes := []reservation.Verdict{reservation.VerdictCreated, reservation.VerdictCreated, reservation.VerdictReplayed,
			reservation.VerdictSoldOut, reservation.VerdictDuplicateUser}
		var sends, calls atomic.Int64
		behave := func(n int64) (time.Duration, bool) {
			return time.Duration(delays[n%16]) * time.Millisecond, fails[n%16]
		}
		r := &redis{}
		r.reserve = func(ctx context.Context, _ int, cs []reservation.Candidate) (reservation.Batch, error) {
			d, fail := behave(calls.Add(1))
			select {
			case <-time.After(d):
			case <-ctx.Done():
				return reservation.Batch{}, ctx.Err()
			}
			if fail {
				return reservation.Batch{}, reservation.ErrUnavailable
			}
			return verdicts(cs, func(i int) reservation.Outcome {
				return reservation.Outcome{Verdict: codes[int(cs[i].UserID)%len(codes)]}
			}), nil
		}
		r.mark = func(ctx context.Context, _ []string) error {
			d, fail := behave(calls.Add(1))
			select {
			case <-time.After(d):
			case <-ctx.Done():
			}
			if fail {
				return errors.New("mark lost")
			}
			return ctx.Err()
		}
		b := &broker{send: func(int, []seckill.OrderCreateMessage) error {
			d, fail := behave(sends.Add(1))
			time.Sleep(d)
			if fail {
				return errors.New("timeout")
			}
			return nil
		}}
		var failure string
		synctest.Test(t, func(t *testing.T) {
			p := newPath(t, c, r, b, nil)
			p.Start()
			var mu sync.Mutex
			var clients []*client
			var refused int
			var wg sync.WaitGroup
			for s := range submitters {
				wg.Go(func() {
					for i := range each {
						if !p.TryAcquire() {
							mu.Lock()
							refused++
							mu.Unlock()
							time.Sleep(time.Millisecond)
							continue
						}
						cl := &client{began: time.Now()}
						mu.Lock()
						clients = append(clients, cl)
						mu.Unlock()
						p.Submit(seckill.SubmitCommand{ActivityID: 7, SKUID: int64(8 + i%2), UserID: int64(s*1000 + i + 1), RequestID: "r", Quantity: 1}, cl)
					}
				})
			}
			time.Sleep(stopAfter)
			p.stop()
			wg.Wait()
			tally := map[seckill.Code]int{}
			for _, cl := range clients {
				if len(cl.answers) != 1 {
					failure = "a request was not answered exactly once"
					return
				}
				tally[cl.answers[0].Code]++
			}
			sent := map[string]bool{}
			for _, m := range b.messages() {
				if sent[m.MessageID] {
					failure = "a message was sent twice"
					return
				}
				sent[m.MessageID] = true
			}
			created := int(p.Stats.Created.Load())
			replayed := tally[seckill.CodeQueued] + tally[seckill.CodeQueuedPending] - created
			switch {
			case len(clients)+refused != submitters*each:
				failure = "a request vanished"
			case len(sent) > created || len(sent) < created && p.Stats.SendsUnknown.Load() == 0: // a drain gives up on a broker that fails
				failure = "not every reservation was sent"
			case replayed+tally[seckill.CodeUnavailable] < 0: // a late reply's were told that it is unknown
				failure = "a reservation was not answered as one"
			case p.free() != c.InFlight:
				failure = "a place was lost"
			}
		})
		if failure != "" {
			rt.Fatal(failure)
		}
	})
}
