package submit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// R8.3.1-3 R7.6.2 R7.5.2: the message is the reservation's, and QUEUED
// promises no order.
func TestAConfirmedSendIsQueued(t *testing.T) { // R15.1
	r, b := &redis{}, &broker{}
	bubble(t, cfg, r, b, func(p *path) {
		client, cmd := p.submit()
		p.stop()
		a := client.only(t)
		if a.Code != seckill.CodeQueued || a.Status != "MESSAGE_SENT" || a.OrderID != "" {
			t.Errorf("answered %+v", a)
		}
		m, c := b.messages()[0], r.calls[0].candidates[0]
		if m.ReservationID != c.ReservationID || m.MessageID != c.MessageID || m.MessageKey != c.ReservationID || m.RequestID != cmd.RequestID ||
			m.RetryCount != 0 || m.OrderID != "" || m.ActivityVersion != 7 || !m.ReservedAt.Equal(reservedAt) {
			t.Errorf("message is %+v", m)
		}
		body, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := seckill.DecodeOrderCreate(body); err != nil {
			t.Errorf("the consumer would refuse it: %v", err)
		}
	})
}

// R7.8.1 R7.8.2 R7.8.3 R13.1.6: an unknown send releases nothing, renames
// nothing, marks nothing; the client hears QUEUED_PENDING_MESSAGE with the
// reservation that stands.
func TestASendWithoutConfirmationLeavesTheReservationToTheScanner(t *testing.T) { // R11.4
	r := &redis{}
	b := &broker{send: func(int, []seckill.OrderCreateMessage) error { return errors.New("timeout") }}
	bubble(t, cfg, r, b, func(p *path) {
		client, _ := p.submit()
		time.Sleep(cfg.SendLinger)
		synctest.Wait() // long before the deadline
		a := client.only(t)
		p.stop()
		c := r.calls[0].candidates[0]
		if a.Code != seckill.CodeQueuedPending || a.ReservationID != c.ReservationID || a.Status != "PENDING_MESSAGE" {
			t.Errorf("answered %+v", a)
		}
		if len(r.calls) != 1 || len(r.marked) != 0 {
			t.Errorf("%d calls and %d marks after an unknown send", len(r.calls), len(r.marked))
		}
		if m := b.messages(); len(m) != 1 || m[0].MessageID != c.MessageID {
			t.Errorf("sent %+v, want once, as %s", m, c.MessageID)
		}
		if p.Stats.SendsUnknown.Load() != 1 || p.Stats.Late.Load() != 1 {
			t.Errorf("%d sends unknown, %d answers pending", p.Stats.SendsUnknown.Load(), p.Stats.Late.Load())
		}
	})
}

// R7.8.3 R9.1.3: the answer comes at the send timeout, whatever the broker
// does, and the confirmation that comes later changes only the mark.
func TestTheAnswerDoesNotWaitLongerThanTheSendTimeout(t *testing.T) {
	confirm := make(chan struct{})
	r := &redis{}
	b := &broker{send: func(int, []seckill.OrderCreateMessage) error { <-confirm; return nil }}
	synctest.Test(t, func(t *testing.T) {
		confirm = make(chan struct{})
		p := newPath(t, cfg, r, b, nil)
		p.Start()
		defer p.stop()
		client, _ := p.submit()
		time.Sleep(cfg.SendTimeout - 1)
		synctest.Wait()
		if client.answered() {
			t.Error("answered before the timeout")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if a := client.only(t); a.Code != seckill.CodeQueuedPending || client.after != cfg.SendTimeout {
			t.Errorf("answered %+v after %v", a, client.after)
		}
		if len(r.marked) != 0 {
			t.Error("marked before the confirmation")
		}
		close(confirm)
		p.stop()
		client.only(t)
		if len(r.marked) != 1 {
			t.Errorf("%d marks after the confirmation", len(r.marked))
		}
	})
}

// A batch that is answered in time does not delay the deadline of the next.
func TestEachReservationHasItsOwnDeadline(t *testing.T) {
	b := &broker{send: func(call int, _ []seckill.OrderCreateMessage) error {
		if call > 1 {
			time.Sleep(time.Second)
		}
		return nil
	}}
	bubble(t, cfg, &redis{}, b, func(p *path) {
		prompt, _ := p.submit()
		time.Sleep(10 * time.Millisecond) // the first is answered, its deadline is still to come
		hung, _ := p.submit()
		time.Sleep(10 * time.Millisecond)
		alsoHung, _ := p.submit()
		p.stop()
		if a := prompt.only(t); a.Code != seckill.CodeQueued {
			t.Errorf("the first was answered %+v", a)
		}
		for _, c := range []*client{hung, alsoHung} {
			if a := c.only(t); a.Code != seckill.CodeQueuedPending || c.after != cfg.SendTimeout {
				t.Errorf("answered %+v after %v, want QUEUED_PENDING_MESSAGE after %v", a, c.after, cfg.SendTimeout)
			}
		}
	})
}

func TestASenderWaitsToFillABatchNoLongerThanItsLinger(t *testing.T) {
	b := &broker{}
	bubble(t, cfg, &redis{}, b, func(p *path) {
		first, _ := p.submit()
		time.Sleep(cfg.SendLinger / 2)
		second, _ := p.submit()
		time.Sleep(cfg.SendLinger)
		p.stop()
		if len(b.batches) != 1 || first.after != cfg.SendLinger || second.after != cfg.SendLinger/2 {
			t.Errorf("%d sends, answered after %v and %v", len(b.batches), first.after, second.after)
		}
	})
}

// R9.1.4: marks have a bounded context of their own, and no answer depends
// on them.
func TestMarksAreBestEffort(t *testing.T) {
	var limit time.Duration
	r := &redis{mark: func(ctx context.Context, _ []string) error {
		by, ok := ctx.Deadline()
		if !ok {
			t.Error("a mark without a deadline")
		}
		limit = time.Until(by)
		<-ctx.Done()
		return ctx.Err()
	}}
	bubble(t, cfg, r, &broker{}, func(p *path) {
		client, _ := p.submit()
		time.Sleep(cfg.SendLinger)
		synctest.Wait() // the mark hangs
		if a := client.only(t); a.Code != seckill.CodeQueued {
			t.Errorf("answered %+v", a)
		}
		p.stop()
		if limit != cfg.CallTimeout || p.Stats.MarksDropped.Load() != 1 || p.Stats.Marked.Load() != 0 {
			t.Errorf("mark was given %v; %d dropped, %d marked", limit, p.Stats.MarksDropped.Load(), p.Stats.Marked.Load())
		}
	})
}

// With the broker hanging, reservations pile up to a bound; beyond it the
// answer comes at once, and the scanner owns the rest. No reservation is
// taken back, and no queue blocks the way to Redis.
func TestAFullWayToTheBrokerIsTheScanners(t *testing.T) {
	const outboundMax, senders, sendBatch = 8192, 1, 100
	release := make(chan struct{})
	r := &redis{}
	b := &broker{send: func(int, []seckill.OrderCreateMessage) error { <-release; return errors.New("down") }}
	c := cfg
	c.InFlight, c.Reservers = 1<<15, 4
	synctest.Test(t, func(t *testing.T) {
		release = make(chan struct{})
		p := newPath(t, c, r, b, nil)
		p.Start()
		defer p.stop()
		first := make([]*client, outboundMax+senders*sendBatch)
		for i := range first {
			first[i], _ = p.submit()
		}
		synctest.Wait()
		time.Sleep(c.SendLinger) // let the sender take its batch
		synctest.Wait()
		const over = 50
		var late []*client
		for range over + senders*sendBatch {
			cl, _ := p.submit()
			late = append(late, cl)
		}
		synctest.Wait()
		answered := 0
		for _, cl := range append(first, late...) {
			if cl.answered() {
				answered++
				if a := cl.only(t); a.Code != seckill.CodeQueuedPending {
					t.Fatalf("answered %+v", a)
				}
			}
		}
		if answered < over {
			t.Errorf("%d answered at once, want the %d that do not fit", answered, over)
		}
		time.Sleep(c.SendTimeout)
		synctest.Wait()
		for _, cl := range append(first, late...) {
			cl.only(t)
		}
		// The deadlines have passed, the way to the broker is still full.
		last, _ := p.submit()
		synctest.Wait()
		if a := last.only(t); a.Code != seckill.CodeQueuedPending {
			t.Errorf("the last was answered %+v", a)
		}
		close(release)
		p.stop()
		if n := p.Stats.Created.Load(); n != int64(len(first)+len(late)+1) || len(r.marked) > 0 {
			t.Errorf("%d created, %d marks", n, len(r.marked))
		}
	})
}

// R15.2 is impossible here: the path's Store has no way to give a unit back.
var _ interface {
	Reserve(context.Context, int64, int64, []reservation.Candidate) (reservation.Batch, error)
	MarkSent(context.Context, int64, int64, []string) error
} = (*redis)(nil)
