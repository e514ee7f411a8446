package app_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

// unsent makes reservations that nobody sends, as access processes do that
// die after the script, and returns their ids.
func (w *world) unsent(users int64) (ids []string) {
	w.t.Helper()
	generator := seckill.NewIDGenerator(time.Now, [32]byte{byte(rand.Uint32()), byte(rand.Uint32()), 2})
	var batch []reservation.Candidate
	for user := int64(1); user <= users; user++ {
		cmd := seckill.SubmitCommand{ActivityID: w.sku.ActivityID, SKUID: w.sku.SKUID, UserID: user, RequestID: requestOf(user), Quantity: 1}
		id := generator.NewReservationID()
		ids = append(ids, id)
		batch = append(batch, reservation.Candidate{RequestID: cmd.RequestID, UserID: user, PayloadHash: cmd.PayloadHash(),
			ReservationID: id, MessageID: seckill.MessageIDOf(id)})
		if len(batch) < reservation.BatchMax && user < users {
			continue
		}
		made, err := w.redis.Reserve(w.t.Context(), w.sku.ActivityID, w.sku.SKUID, batch)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, o := range made.Outcomes {
			if o.Verdict != reservation.VerdictCreated {
				w.t.Fatalf("%+v", o)
			}
		}
		batch = batch[:0]
	}
	return ids
}

// R7.4.4 R7.10.2 R11.3 R11.12: two scanner processes share what nobody sent; one is
// killed again and again, and everything comes home, each once.
func TestScannersThatAreKilledLoseNothing(t *testing.T) {
	const n = 1500
	w := setup(t, n, n)
	w.cfg.Scanner.Poll, w.cfg.Scanner.Backoff = 10*time.Millisecond, reservation.Backoff{Base: time.Second, Max: time.Second}
	consumer := w.start(app.RoleConsumer)
	w.start(app.RoleScanner)
	pending := func() int64 {
		left, err := w.redis.PendingCount(t.Context(), w.sku.ActivityID, w.sku.SKUID)
		if err != nil {
			t.Fatal(err)
		}
		return left
	}
	var killing sync.WaitGroup
	done := make(chan struct{})
	var kills int
	w.unsent(n)
	killing.Go(func() {
		for {
			p := launch(t, part{Role: app.RoleScanner, Config: w.cfg, SKU: w.sku, Seed: byte(rand.Uint32())})
			select {
			case <-p.started:
				time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond) // anywhere in its work
				p.killed()
				kills++
			case <-done:
				p.killed()
				return
			}
		}
	})
	eventually(t, "nothing is pending", 60*time.Second, func() bool { return pending() == 0 })
	close(done)
	killing.Wait()
	pool := systest.Pool(t, postgres.Config{URL: w.cfg.Postgres})
	eventually(t, "every reservation is an order", 60*time.Second, func() bool {
		var orders int
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM orders`).Scan(&orders); err != nil {
			t.Fatal(err)
		}
		return orders == n
	})
	t.Logf("%d kills, %v messages the inbox knew", kills, consumer.metric("inbox_conflict_total", ""))
}

// R7.8.5: a scanner that cannot bring reservations home hands them to a
// person, through PostgreSQL: the query shows it, and their messages, should
// they arrive after all, are no orders any more.
func TestWhatCannotBeBroughtHomeIsSetAside(t *testing.T) {
	const n = 40
	w := setup(t, n, n)
	w.cfg.Scanner.Backoff = reservation.Backoff{Base: time.Second, Max: time.Second}
	w.cfg.Scanner.HandOverAfter, w.cfg.Scanner.HandOverAttempts = time.Second, 1
	ids := w.unsent(n)
	// They were tried before, by a scanner that died.
	var tried []reservation.Reservation
	eventually(t, "all are claimed", 10*time.Second, func() bool {
		due, err := w.redis.ClaimDue(t.Context(), w.sku.ActivityID, w.sku.SKUID, reservation.BatchMax, w.cfg.Scanner.Backoff)
		if err != nil {
			t.Fatal(err)
		}
		tried = append(tried, due...)
		return len(tried) >= n
	})
	scanner := w.start(app.RoleScanner)
	pool := systest.Pool(t, postgres.Config{URL: w.cfg.Postgres})
	eventually(t, "all are set aside", 30*time.Second, func() bool {
		var aside int
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM inventory_reservation WHERE status = 'SET_ASIDE'`).Scan(&aside); err != nil {
			t.Fatal(err)
		}
		return aside == n
	})
	for i, id := range ids {
		eventually(t, fmt.Sprintf("Redis follows for reservation %d", i), 10*time.Second, func() bool {
			r, found, err := w.redis.LookupReservation(t.Context(), w.sku.ActivityID, w.sku.SKUID, id)
			return err == nil && found && r.Status == seckill.StatusSetAside
		})
	}
	if got := scanner.metric("reservation_handed_over_total", ""); got != n {
		t.Errorf("%v handed over, want %d", got, n)
	}
	if left, err := w.redis.PendingCount(t.Context(), w.sku.ActivityID, w.sku.SKUID); err != nil || left != 0 {
		t.Errorf("%d pending, %v", left, err)
	}

	// The messages arrive after all.
	consumer := w.start(app.RoleConsumer)
	producer, err := mq.NewProducer(w.cfg.MQ, 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	var late []seckill.OrderCreateMessage
	for i := range tried[:n] {
		late = append(late, tried[i].Message(time.Now()))
	}
	if err := producer.SendOrderCreates(late); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the inbox knows them", 30*time.Second, func() bool { return consumer.metric("inbox_conflict_total", "") == n })
	var orders int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM orders`).Scan(&orders); err != nil || orders != 0 {
		t.Errorf("%d orders of what was set aside, %v", orders, err)
	}
}

// killed ends the process at once.
func (p *process) killed() {
	_ = p.cmd.Process.Kill()
	<-p.done
}
