package reservation_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/lua"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// dueNow makes every reservation due a millisecond after it was made.
func dueNow(c *reservation.Config, _ *reservation.Activity) { c.FirstRetry = 10 * time.Millisecond }

func (b *bundle) lookup(t testing.TB, id string) reservation.Reservation {
	t.Helper()
	r, found, err := b.LookupReservation(t.Context(), b.activity, sku, id)
	if err != nil || !found {
		t.Fatalf("%s: found %t, %v", id, found, err)
	}
	return r
}

// claim waits until something is due.
func (b *bundle) claim(t testing.TB) ([]reservation.Reservation, error) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		due, err := b.ClaimDue(t.Context(), b.activity, sku, reservation.BatchMax, reservation.Backoff{Base: time.Minute, Max: time.Minute})
		if len(due) > 0 || err != nil {
			return due, err
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing is due")
		}
	}
}

// R7.7.2 R12.6: the trace of a request is part of its reservation, and of the
// message at every attempt; a reservation without one has no field for it.
func TestTheTraceStaysWithTheReservation(t *testing.T) {
	b := setup(t, 5, dueNow)
	traced, plain := b.candidate(1, "r-1"), b.candidate(2, "r-2")
	traced.Traceparent = trace
	b.reserve(t, plain, traced)
	r := b.lookup(t, traced.ReservationID)
	if m := r.Message(time.Now()); r.Traceparent != trace || m.Traceparent != trace {
		t.Errorf("reservation has %q, its message %q", r.Traceparent, m.Traceparent)
	}
	if n, _ := b.raw.HLen(t.Context(), b.keys.Reservation(plain.ReservationID)).Result(); n != 14 { // R8.1.8 and activity_version
		t.Errorf("a reservation without a trace has %d fields", n)
	}
	if got := b.lookup(t, plain.ReservationID); got.Traceparent != "" || got.UserID != 2 || got.MessageID != plain.MessageID {
		t.Errorf("the neighbour is %+v", got)
	}
	due, err := b.claim(t)
	if err != nil || len(due) != 2 || due[0].Traceparent+due[1].Traceparent != trace {
		t.Errorf("claimed %+v, %v", due, err)
	}
}

// R8.1.8: why a send was not confirmed is noted while the reservation is
// pending, and not after.
func TestAFailureIsNotedWhilePending(t *testing.T) {
	b := setup(t, 5)
	pending, sent := b.candidate(1, "r-1"), b.candidate(2, "r-2")
	b.reserve(t, pending, sent)
	if err := b.MarkSent(t.Context(), b.activity, sku, []string{sent.ReservationID}); err != nil {
		t.Fatal(err)
	}
	if err := b.NoteFailure(t.Context(), b.activity, sku, []string{pending.ReservationID, sent.ReservationID, "resv_gone"}, "TIMEOUT"); err != nil {
		t.Fatal(err)
	}
	if p, s := b.lookup(t, pending.ReservationID), b.lookup(t, sent.ReservationID); p.LastErrorCode != "TIMEOUT" || s.LastErrorCode != "" ||
		p.Status != seckill.StatusPendingMessage || p.SendAttempts != 0 {
		t.Errorf("pending has %+v, sent has code %q", p, s.LastErrorCode)
	}
	if n, _ := b.raw.Exists(t.Context(), b.keys.Reservation("resv_gone")).Result(); n != 0 {
		t.Error("a reservation was made of a note")
	}
}

// R7.8.5: set aside, a reservation is nobody's to send; its end is fixed like
// any other's, and what was decided otherwise stays so.
func TestSetAsideEndsWhatIsUndecided(t *testing.T) {
	b := setup(t, 5, dueNow)
	pending, ordered := b.candidate(1, "r-1"), b.candidate(2, "r-2")
	b.reserve(t, pending, ordered)
	if _, err := b.Apply(t.Context(), b.activity, sku, []seckill.Event{event(ordered, b, seckill.EventOrderCreated, seckill.StatusOrderCreated, false)}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it repeats harmlessly
		if err := b.SetAside(t.Context(), b.activity, sku, []string{pending.ReservationID, ordered.ReservationID, "resv_gone"}); err != nil {
			t.Fatal(err)
		}
	}
	if r := b.lookup(t, pending.ReservationID); r.Status != seckill.StatusSetAside || !r.CompensatedAt.IsZero() {
		t.Errorf("set aside it is %+v", r)
	}
	if r := b.lookup(t, ordered.ReservationID); r.Status != seckill.StatusOrderCreated {
		t.Errorf("an order became %s", r.Status)
	}
	if n, err := b.PendingCount(t.Context(), b.activity, sku); err != nil || n != 0 {
		t.Errorf("%d pending, %v", n, err)
	}
	if n := b.stock(t); n != 3 {
		t.Errorf("stock is %d: setting aside returns nothing", n)
	}
	ttl, err := b.raw.TTL(t.Context(), b.keys.Reservation(pending.ReservationID)).Result()
	if err != nil || ttl < reservation.KeepAfterEnd {
		t.Errorf("its key lives for %v, %v", ttl, err)
	}
	if o := b.reserve(t, b.candidate(1, "r-1"), b.candidate(1, "r-9")); o[0].Verdict != reservation.VerdictReplayed || o[0].Status != "SET_ASIDE" || o[1].Verdict != reservation.VerdictDuplicateUser {
		t.Errorf("its user is told %+v", o)
	}
}

// R7.8.5: the event about it, however often it comes, and before or after the
// scanner's own note, shows SET_ASIDE and nothing else.
func TestTheEventOfASetAside(t *testing.T) {
	b := setup(t, 5, dueNow)
	first, second := b.candidate(1, "r-1"), b.candidate(2, "r-2")
	b.reserve(t, first, second)
	if err := b.SetAside(t.Context(), b.activity, sku, []string{first.ReservationID}); err != nil {
		t.Fatal(err)
	}
	about := func(c reservation.Candidate) seckill.Event {
		e := event(c, b, seckill.EventSetAside, seckill.StatusSetAside, false)
		e.OrderID = ""
		return e
	}
	for i, want := range []reservation.Applied{{Changed: 1, Known: 1}, {Known: 2}} {
		got, err := b.Apply(t.Context(), b.activity, sku, []seckill.Event{about(first), about(second)})
		if err != nil || got != want {
			t.Errorf("delivery %d: %+v, %v, want %+v", i+1, got, err, want)
		}
	}
	for _, c := range []reservation.Candidate{first, second} {
		if r := b.lookup(t, c.ReservationID); r.Status != seckill.StatusSetAside || r.OrderID != "" {
			t.Errorf("%+v", r)
		}
		if has, _ := b.raw.HExists(t.Context(), b.keys.Reservation(c.ReservationID), "order_id").Result(); has {
			t.Error("an order id that is none was written")
		}
	}
	if n, err := b.PendingCount(t.Context(), b.activity, sku); err != nil || n != 0 || b.stock(t) != 3 {
		t.Errorf("%d pending, %v, stock %d", n, err, b.stock(t))
	}
}

// One reservation that cannot be read holds up no other, and is told of.
func TestAnUnreadableReservationSinksNoOther(t *testing.T) {
	for rule, spoil := range map[string][2]string{
		"a field that is no number":    {"reserved_at", "yesterday"},
		"an attempt that is no number": {"send_attempts", "many"},
		"a version that is none":       {"activity_version", ""},
	} {
		b := setup(t, 5, dueNow)
		sound, broken := b.candidate(1, "r-1"), b.candidate(2, "r-2")
		b.reserve(t, broken, sound)
		if err := b.raw.HSet(t.Context(), b.keys.Reservation(broken.ReservationID), spoil[0], spoil[1]).Err(); err != nil {
			t.Fatal(err)
		}
		due, err := b.claim(t)
		if rule == "an attempt that is no number" { // counting begins anew: it is readable again
			if err != nil || len(due) != 2 {
				t.Errorf("%s: %d claimed, %v", rule, len(due), err)
			}
			continue
		}
		if !errors.Is(err, reservation.ErrUnreadable) || len(due) != 1 || due[0].ReservationID != sound.ReservationID {
			t.Errorf("%s: %d claimed, %v", rule, len(due), err)
		}
	}
}

// R12.2: the oldest pending reservation is found by its age, whatever the
// order in which they are due.
func TestTheOldestPendingIsFoundByAge(t *testing.T) {
	b := setup(t, 5000)
	if age, err := b.OldestPending(t.Context(), b.activity, sku); err != nil || age != 0 {
		t.Fatalf("with none pending: %v, %v", age, err)
	}
	oldest := b.candidate(1, "r-1")
	b.reserve(t, oldest)
	user := int64(2)
	for range 2*1000/reservation.BatchMax + 2 { // more than two pages
		var batch []reservation.Candidate
		for range reservation.BatchMax {
			batch = append(batch, b.candidate(user, fmt.Sprint("r-", user)))
			user++
		}
		b.reserve(t, batch...)
	}
	// Leased by a scanner, it is the last of all that are due.
	b.raw.ZAdd(t.Context(), b.keys.Pending(), zAt(time.Now().Add(time.Hour), oldest.ReservationID))
	b.raw.HSet(t.Context(), b.keys.Reservation(oldest.ReservationID), "reserved_at", time.Now().Add(-time.Minute).UnixMicro())
	if age, err := b.OldestPending(t.Context(), b.activity, sku); err != nil || age < time.Minute || age > 2*time.Minute {
		t.Errorf("the oldest is %v old, %v; want a minute", age, err)
	}
	if err := b.MarkSent(t.Context(), b.activity, sku, []string{oldest.ReservationID}); err != nil {
		t.Fatal(err)
	}
	if age, err := b.OldestPending(t.Context(), b.activity, sku); err != nil || age <= 0 || age > time.Minute {
		t.Errorf("without it the oldest is %v old, %v", age, err)
	}
}

// Figures posted by one are read by all, each as old as its own posting.
func TestSignals(t *testing.T) {
	b := setup(t, 1)
	cfg := reservation.Config{Addr: systest.Redis(t), SignalsKey: b.keys.Prefix() + "signals"}
	s, err := reservation.New(cfg, lua.FS)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got, err := s.Signals(t.Context()); err != nil || len(got) != 0 {
		t.Fatalf("before any was posted: %v, %v", got, err)
	}
	post := func(signals ...reservation.Signal) {
		t.Helper()
		if err := s.PostSignals(t.Context(), signals); err != nil {
			t.Fatal(err)
		}
	}
	post(reservation.Signal{Name: "lag", Value: 7}, reservation.Signal{Name: "age", Value: -1})
	post(reservation.Signal{Name: "lag", Value: 1 << 60})
	got, err := s.Signals(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]reservation.Signal{}
	for _, sig := range got {
		byName[sig.Name] = sig
	}
	if len(got) != 2 || byName["lag"].Value != 1<<60 || byName["age"].Value != -1 || byName["age"].Age < byName["lag"].Age {
		t.Errorf("read %+v", got)
	}
	if ttl, _ := b.raw.PTTL(t.Context(), cfg.SignalsKey).Result(); ttl <= 0 {
		t.Error("figures nobody renews stay for ever")
	}
	for rule, spoilt := range map[string]string{"no time": "7", "no number": "x@1", "no time after @": "7@"} {
		b.raw.HSet(t.Context(), cfg.SignalsKey, "lag", spoilt)
		if _, err := s.Signals(t.Context()); err == nil {
			t.Errorf("%s: no error", rule)
		}
	}
}

func zAt(at time.Time, id string) redis.Z { return redis.Z{Score: float64(at.UnixMicro()), Member: id} }
