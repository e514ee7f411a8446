package reconcile_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hotsku/hotsku/system/activity"
	"github.com/hotsku/hotsku/system/reconcile"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/setaside"
	"github.com/hotsku/hotsku/system/valve"
)

// R12.5: both checks over a sale with every end there is.
func TestASaleIsConserved(t *testing.T) {
	w := setup(t, 20, func(p *activity.Params) { p.Tokens = 15 })
	messages := w.reserve(users(1, 19)...) // 18 of 20 units
	w.markSent(messages[:17])              // 18 is pending
	w.consume(messages[:16])               // 15 orders, one for whom there is no token; 17 is on its way
	aside := setaside.OfMessage(&messages[16])
	if _, err := setaside.End(t.Context(), w.pool, []setaside.Reservation{aside}); err != nil {
		t.Fatal(err)
	}
	w.publish(false)
	r := w.reconciler(reconcile.ConfigDefault)
	got := w.round(r, false)
	if u := got.Units; u.Issued != 15 || u.Claimed != 15 || u.Available != 0 || u.OrdersCreated != 15 || u.Misplaced != 0 || u.LedgerOff != 0 {
		t.Errorf("units %+v", u)
	}
	want := reconcile.Reservations{Made: 18, Ordered: 15, Compensated: 1, SetAside: 1, InProcess: 1}
	if got.Reservations != want {
		t.Errorf("reservations %+v, want %+v", got.Reservations, want)
	}
	if got.Redis != (reconcile.Redis{Known: true, Stock: 2, Pending: 1}) {
		t.Errorf("redis %+v", got.Redis)
	}
	if !got.Conserved() || len(got.Witnesses) > 0 || len(got.Repair.Resend)+len(got.Repair.Republish) > 0 {
		t.Errorf("report %+v", got)
	}
	// R6.7c: the result stands beside the totals.
	var saved reconcile.Report
	var body []byte
	if err := w.pool.QueryRow(t.Context(), `SELECT reconciliation FROM sku_inventory WHERE reconciled_at IS NOT NULL`).Scan(&body); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &saved); err != nil || saved.Reservations != want {
		t.Errorf("saved %s, %v", body, err)
	}
	if latest := r.Latest(); len(latest) != 1 || latest[0].Reservations != want {
		t.Errorf("latest %+v", latest)
	}
}

// R7.8.5 R11.5: messages that the broker confirmed and lost are sent again
// under their own ids; the inbox absorbs those that come after all.
func TestLostMessagesAreSentAgain(t *testing.T) {
	w := setup(t, 250)
	messages := w.reserve(users(1, 251)...)
	w.markSent(messages)
	r := w.reconciler(eager)
	got := w.round(r, false)
	if got.Reservations.Lost != 250 || got.Repair.Resent != 250 || !got.Conserved() {
		t.Fatalf("report %+v", got)
	}
	again := w.take()
	born := map[string]string{}
	for _, m := range messages {
		born[m.ReservationID] = m.MessageID
	}
	for _, m := range again {
		if m.MessageID != born[m.ReservationID] || m.MessageID == "" {
			t.Errorf("%s is sent as %s, born as %s", m.ReservationID, m.MessageID, born[m.ReservationID])
		}
	}
	// Another process, or one that was restarted, does it once more.
	w.round(w.reconciler(eager), false)
	again = append(again, w.take()...)
	w.consume(again)
	w.consume(messages) // and the lost ones turn up
	w.publish(false)
	got = w.round(r, false)
	if got.Reservations.Ordered != 250 || got.Units.Claimed != 250 || !got.Conserved() || got.Redis.Drift != 0 {
		t.Errorf("in the end %+v", got)
	}
	if n := w.count(`SELECT count(*) FROM orders`); n != 250 {
		t.Errorf("%d orders", n)
	}
}

func TestWhatWasSentAgainIsLeftToThat(t *testing.T) {
	w := setup(t, 1)
	w.markSent(w.reserve(1))
	patient := eager
	patient.LostAfter = 200 * time.Millisecond
	r := w.reconciler(patient)
	time.Sleep(patient.LostAfter) // Redis' clock is judged by: there is no event to wait for
	if got := w.round(r, false); got.Repair.Resent != 1 {
		t.Fatalf("first round %+v", got.Repair)
	}
	if got := w.round(r, false); got.Repair.ResendDue != 1 || len(got.Repair.Resend) != 0 {
		t.Errorf("second round %+v", got.Repair)
	}
}

// R7.11.4: behind a backlog nothing is lost, only late.
func TestABacklogIsNotALoss(t *testing.T) {
	w := setup(t, 3)
	w.markSent(w.reserve(1, 2))
	post := func(age time.Duration) {
		t.Helper()
		if err := w.store.PostSignals(t.Context(), []reservation.Signal{{Name: string(valve.SignalOldestMessage), Value: age.Milliseconds()}}); err != nil {
			t.Fatal(err)
		}
	}
	post(time.Minute)
	if got := w.round(w.reconciler(eager), true); got.Reservations.InProcess != 2 || got.Reservations.Lost != 0 {
		t.Errorf("behind a backlog: %+v", got.Reservations)
	}
	post(0)
	time.Sleep(5 * time.Millisecond) // the figure's own age stays below the reservations'
	if got := w.round(w.reconciler(eager), true); got.Reservations.Lost != 2 {
		t.Errorf("without one: %+v", got.Reservations)
	}
}

// R11.12: with no scanner alive, what is pending is sent by reconcile, also
// when it is missing in the scanner's list.
func TestStuckReservationsAreSent(t *testing.T) {
	w := setup(t, 2)
	messages := w.reserve(1, 2)
	if err := w.raw.ZRem(t.Context(), w.keys.Pending(), messages[1].ReservationID).Err(); err != nil {
		t.Fatal(err)
	}
	for _, m := range messages { // the resend was due an hour ago
		if err := w.raw.HSet(t.Context(), w.keys.Reservation(m.ReservationID), "next_retry_at", time.Now().Add(-time.Hour).UnixMicro()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	r := w.reconciler(eager)
	w.down = true
	if got := w.round(r, false); got.Reservations.Stuck != 2 || got.Repair.Resent != 0 || len(got.Repair.Failed) != 1 {
		t.Errorf("broker down: %+v", got)
	}
	w.down = false
	if got := w.round(r, false); got.Repair.Resent != 2 || got.Redis.Pending != 1 {
		t.Errorf("broker up: %+v", got)
	}
	for _, m := range messages {
		if r := w.lookup(m.ReservationID); r.Status != seckill.StatusMessageSent {
			t.Errorf("%s is %s", m.ReservationID, r.Status)
		}
	}
	w.consume(w.take())
	w.publish(false)
	if got := w.round(r, false); got.Reservations.Ordered != 2 || !got.Conserved() || got.Redis.Pending != 0 {
		t.Errorf("in the end %+v", got)
	}
}

// R11.14 R7.6.4 R7.10.7: decisions that never reached Redis are published
// again until they do, each applied once.
func TestEventsThatGotLostArePublishedAgain(t *testing.T) {
	w := setup(t, 5, func(p *activity.Params) { p.Tokens = 2 })
	messages := w.reserve(1, 2, 3)
	w.markSent(messages)
	w.consume(messages) // two orders, one rejection
	w.publish(true)
	r := w.reconciler(eager)
	got := w.round(r, false)
	if v := got.Reservations; v.Ordered != 2 || v.CompensationPending != 1 || v.Unapplied != 3 || got.Repair.Republished != 3 || !got.Conserved() {
		t.Fatalf("report %+v", got)
	}
	if got := w.round(r, false); got.Repair.Republished != 0 { // they wait for the publisher
		t.Errorf("second round %+v", got.Repair)
	}
	if n := w.publish(false); n != 3 {
		t.Errorf("%d events published again", n)
	}
	w.exec(`UPDATE event_outbox SET published_at = NULL`)
	w.publish(false) // and once more: applied before
	if got := w.round(r, false); got.Reservations.Unapplied != 0 || got.Reservations.Compensated != 1 || got.Redis.Stock != 2 || !got.Conserved() {
		t.Errorf("in the end %+v", got)
	}
}

// A dry run says what it would do, and changes nothing anywhere.
func TestADryRunChangesNothing(t *testing.T) {
	w := setup(t, 5)
	messages := w.reserve(1, 2, 3)
	w.markSent(messages)
	w.consume(messages[:1])
	w.publish(true)
	before := w.picture()
	got := w.round(w.reconciler(eager), true)
	if !got.Repair.DryRun || len(got.Repair.Resend) != 2 || len(got.Repair.Republish) != 1 || got.Repair.Resent+got.Repair.Republished != 0 {
		t.Errorf("repair %+v", got.Repair)
	}
	if after := w.picture(); after != before {
		t.Errorf("it changed\n%s\nto\n%s", before, after)
	}
	if len(w.take()) != 0 {
		t.Error("it sent something")
	}
}

// picture is all that both stores hold, in text.
func (w *world) picture() string {
	w.Helper()
	var b strings.Builder
	for _, table := range []string{"sku_inventory", "inventory_token", "orders", "inventory_reservation", "inventory_ledger", "consumer_inbox", "event_outbox"} {
		var text string
		if err := w.pool.QueryRow(w.Context(), `SELECT coalesce(string_agg(x::text, E'\n' ORDER BY x::text), '') FROM `+table+` AS x`).Scan(&text); err != nil {
			w.Fatal(err)
		}
		b.WriteString(table + ":\n" + text + "\n")
	}
	keys, err := w.raw.Keys(w.Context(), w.keys.Prefix()+"*").Result()
	if err != nil {
		w.Fatal(err)
	}
	slices.Sort(keys) // KEYS answers in no order
	for _, k := range keys {
		dump, err := w.raw.Dump(w.Context(), k).Result()
		if err != nil {
			w.Fatal(err)
		}
		b.WriteString(k + "=" + dump)
	}
	return b.String()
}

// I3 R12.5: lies are found by id, even where every sum is right.
func TestLiesAreFoundById(t *testing.T) {
	for lie, c := range map[string]struct {
		tell  func(w *world, id string)
		delta int64
		words string
	}{
		"a claimed token set free and a free one claimed": {func(w *world, id string) {
			w.exec(`UPDATE inventory_token SET status = 'AVAILABLE', order_id = NULL, reservation_id = NULL WHERE reservation_id = $1`, id)
			w.exec(`UPDATE inventory_token SET status = 'CLAIMED', order_id = 'ord_x', reservation_id = 'resv_x'
				WHERE token_id = (SELECT token_id FROM inventory_token WHERE status = 'AVAILABLE' ORDER BY seq DESC LIMIT 1)`)
		}, 2, "no order of theirs says so"},
		"a token deleted": {func(w *world, _ string) {
			w.exec(`DELETE FROM inventory_token WHERE token_id = (SELECT token_id FROM inventory_token WHERE status = 'AVAILABLE' LIMIT 1)`)
		}, 2, "issued"}, // missing by its id, and by the ledger
		"a sale deleted from the ledger": {func(w *world, id string) {
			w.exec(`DELETE FROM inventory_ledger WHERE reservation_id = $1`, id)
		}, 1, "ledger"},
		"an order cancelled behind everybody's back": {func(w *world, id string) {
			w.exec(`UPDATE orders SET status = 'CANCELLED' WHERE reservation_id = $1`, id)
		}, 1, "no order of theirs says so"},
		"a decision deleted": {func(w *world, id string) {
			w.exec(`DELETE FROM inventory_reservation WHERE reservation_id = $1`, id)
		}, 1, "never decided"},
		"a unit added to Redis": {func(w *world, _ string) {
			w.raw.Incr(w.Context(), w.keys.Stock())
		}, 1, "+1"},
		"a compensation in Redis that nobody decided": {func(w *world, id string) {
			w.raw.HSet(w.Context(), w.keys.Reservation(id), "compensated_at", time.Now().UnixMicro(), "returned", "0")
		}, 1, "compensated in Redis"},
		"an entry of the change log deleted": {func(w *world, _ string) {
			entries, err := w.raw.XRange(w.Context(), w.keys.Log(), "-", "+").Result()
			if err != nil {
				w.Fatal(err)
			}
			w.raw.XDel(w.Context(), w.keys.Log(), entries[1].ID)
		}, 1, "change log entry"},
		"a pending reservation's record deleted": {func(w *world, _ string) {
			m := w.reserve(99)
			w.raw.Del(w.Context(), w.keys.Reservation(m[0].ReservationID))
		}, 1, "is gone"},
	} {
		t.Run(lie, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 5)
			m := append(w.reserve(1), w.reserve(2)...)
			w.markSent(m)
			w.consume(m)
			w.publish(false)
			r := w.reconciler(reconcile.ConfigDefault)
			if got := w.round(r, true); !got.Conserved() {
				t.Fatalf("before: %+v", got)
			}
			c.tell(w, m[0].ReservationID)
			got := w.round(r, false)
			if got.Delta != c.delta || got.Conserved() || !strings.Contains(strings.Join(got.Witnesses, "\n"), c.words) {
				t.Errorf("delta %d, want %d; witnesses %q", got.Delta, c.delta, got.Witnesses)
			}
		})
	}
}

// R11.15: a Redis that lost its last writes, or all of them, is told apart
// from one that lies; nothing is sold because of it here.
func TestARedisThatForgot(t *testing.T) {
	w := setup(t, 5)
	m := w.reserve(1, 2)
	w.markSent(m)
	w.consume(m)
	w.publish(false)
	// Back to before the reservations: what a replica that lagged would have.
	for _, id := range []string{m[0].ReservationID, m[1].ReservationID} {
		w.raw.Del(t.Context(), w.keys.Reservation(id))
	}
	entries, err := w.raw.XRange(t.Context(), w.keys.Log(), "-", "+").Result()
	if err != nil || len(entries) != 2 {
		t.Fatal(entries, err)
	}
	w.raw.XDel(t.Context(), w.keys.Log(), entries[1].ID)
	w.raw.Set(t.Context(), w.keys.Stock(), 5, 0)
	r := w.reconciler(eager)
	if got := w.round(r, false); got.Reservations.NotInRedis != 2 || got.Redis.Drift != -2 || !got.Conserved() || len(got.Repair.Republish) != 0 {
		t.Errorf("older: %+v", got)
	}
	keys, err := w.raw.Keys(t.Context(), w.keys.Prefix()+"*").Result()
	if err != nil {
		t.Fatal(err)
	}
	w.raw.Del(t.Context(), keys...)
	if got := w.round(r, false); got.Redis.Known || got.Reservations.NotInRedis != 2 || !got.Conserved() {
		t.Errorf("empty: %+v", got)
	}
}

// R13.3.7: rounds of two processes in the midst of a sale raise no false
// alarm, mend only what needs it, and leave everything conserved.
func TestRoundsDuringASale(t *testing.T) {
	const stock = 300
	w := setup(t, stock)
	var sale, audits sync.WaitGroup
	work := make(chan []seckill.OrderCreateMessage, stock)
	sale.Go(func() {
		defer close(work)
		for first := int64(1); first <= stock; first += 10 {
			m := w.reserve(users(first, first+10)...)
			w.markSent(m)
			work <- m[:8]    // two of ten get lost
			work <- w.take() // what reconcile sent
		}
	})
	sale.Go(func() {
		rng := rand.New(rand.NewPCG(7, 7))
		for m := range work {
			w.consume(m)
			w.publish(rng.IntN(4) == 0)
		}
	})
	done := make(chan struct{})
	rounds := 0
	for range 2 {
		r := w.reconciler(eager)
		audits.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				reports, err := r.Round(t.Context(), false)
				if err != nil || len(reports) != 1 {
					t.Errorf("%d reports, %v", len(reports), err)
					return
				}
				if !reports[0].Conserved() {
					t.Errorf("false alarm: %+v", reports[0])
					return
				}
				w.mu.Lock()
				rounds++
				w.mu.Unlock()
			}
		})
	}
	sale.Wait()
	close(done)
	audits.Wait()
	r := w.reconciler(eager)
	var got reconcile.Report
	for range 5 { // what is left is mended within a few rounds
		got = w.round(r, false)
		w.consume(w.take())
		w.publish(false)
	}
	if got.Reservations.Ordered != stock || got.Units.Claimed != stock || got.Reservations.Unapplied != 0 || got.Redis.Drift != 0 || !got.Conserved() {
		t.Errorf("in the end %+v", got)
	}
	t.Logf("%d rounds during the sale", rounds)
}

func TestEndedSalesAreLeftAlone(t *testing.T) {
	w := setup(t, 1)
	w.exec(`UPDATE activity SET starts_at = now() - interval '3 days', ends_at = now() - interval '2 days'`)
	reports, err := w.reconciler(eager).Round(t.Context(), false)
	if err != nil || len(reports) != 0 {
		t.Errorf("%d reports, %v", len(reports), err)
	}
}

func TestWhatTheServersSayOfThemselves(t *testing.T) { // R12.4 R12.2
	w := setup(t, 3)
	m := w.reserve(1)
	w.consume(m)
	r := w.reconciler(eager)
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), `SELECT FROM orders FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	waiter := make(chan error, 1)
	go func() {
		_, err := w.pool.Exec(t.Context(), `UPDATE orders SET updated_at = now()`)
		waiter <- err
	}()
	for {
		got, err := r.Postgres(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got.LockWaiters == 1 && got.LockWait > 0 && got.WALBytes > 0 && got.Unpublished == 1 && got.OldestEvent > 0 && got.Replicas == 0 {
			break
		}
		select {
		case err := <-waiter:
			t.Fatalf("the waiter did not wait: %v", err)
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatalf("last %+v", got)
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-waiter; err != nil {
		t.Error(err)
	}
	if s, err := r.Redis(t.Context()); err != nil || s.RunID == "" || !s.Master {
		t.Errorf("redis %+v, %v", s, err)
	}
}
