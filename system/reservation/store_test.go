package reservation_test

import (
	"context"
	"fmt"
	"io/fs"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/lua"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

const sku = 20001

// bundle is a store on the real Redis with an activity of its own.
type bundle struct {
	*reservation.Store
	raw      *redis.Client
	keys     seckill.Keys
	activity int64
	ids      *seckill.IDGenerator
}

func setup(t testing.TB, stock int64, mend ...func(*reservation.Config, *reservation.Activity)) *bundle {
	t.Helper()
	cfg := reservation.Config{Addr: systest.Redis(t)}
	a := reservation.Activity{ActivityID: systest.ActivityID(), SKUID: sku, Stock: stock, Version: 7,
		StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour)}
	for _, m := range mend {
		m(&cfg, &a)
	}
	s, err := reservation.New(cfg, lua.FS)
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{Store: s, raw: redis.NewClient(&redis.Options{Addr: cfg.Addr}), keys: seckill.KeysOf(a.ActivityID, sku),
		activity: a.ActivityID, ids: seckill.NewIDGenerator(time.Now, [32]byte{byte(a.ActivityID), byte(a.ActivityID >> 8), byte(a.ActivityID >> 16), byte(a.ActivityID >> 24)})}
	t.Cleanup(func() {
		// Keys would outlive the test by a week.
		ctx := context.Background()
		var keys []string
		iter := b.raw.Scan(ctx, 0, b.keys.Prefix()+"*", 1000).Iterator()
		for iter.Next(ctx) {
			keys = append(keys, iter.Val())
		}
		if len(keys) > 0 {
			b.raw.Del(ctx, keys...)
		}
		b.raw.SRem(ctx, seckill.ActivityIndexKey, fmt.Sprintf("%d:%d", b.activity, sku))
		b.raw.Close()
		s.Close()
	})
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Warm(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	return b
}

// candidate is user's request, with ids made before the script (R7.7.1).
func (b *bundle) candidate(user int64, request string) reservation.Candidate {
	id := b.ids.NewReservationID()
	cmd := seckill.SubmitCommand{ActivityID: b.activity, SKUID: sku, UserID: user, Quantity: 1}
	return reservation.Candidate{RequestID: request, UserID: user, PayloadHash: cmd.PayloadHash(),
		ReservationID: id, MessageID: seckill.MessageIDOf(id)}
}

func (b *bundle) reserve(t testing.TB, c ...reservation.Candidate) []reservation.Outcome {
	t.Helper()
	batch, err := b.Reserve(t.Context(), b.activity, sku, c)
	if err != nil {
		t.Fatal(err)
	}
	return batch.Outcomes
}

func (b *bundle) stock(t testing.TB) int64 {
	t.Helper()
	n, err := b.Stock(t.Context(), b.activity, sku)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// R6.5a R7.9.1 R7.9.2 R7.9.3 R13.1.1 R13.1.2 R13.1.3 R13.1.4
func TestReserveJudgesIdempotencyThenUserThenStock(t *testing.T) { // R7.6.1
	b := setup(t, 2)
	first := b.candidate(1, "r-1")
	steps := []struct {
		rule string
		give reservation.Candidate
		want reservation.Outcome
	}{
		{"a new user and request is reserved", first,
			reservation.Outcome{Verdict: reservation.VerdictCreated, ReservationID: first.ReservationID, Status: "PENDING_MESSAGE"}},
		{"the same request again is the first reservation, replayed", b.candidate(1, "r-1"),
			reservation.Outcome{Verdict: reservation.VerdictReplayed, ReservationID: first.ReservationID, Status: "PENDING_MESSAGE"}},
		{"the same request id of another user is a conflict", b.candidate(2, "r-1"),
			reservation.Outcome{Verdict: reservation.VerdictConflict}},
		{"the same user under another request id is told the reservation he has", b.candidate(1, "r-2"),
			reservation.Outcome{Verdict: reservation.VerdictDuplicateUser, ReservationID: first.ReservationID}},
	}
	for _, s := range steps {
		if got := b.reserve(t, s.give)[0]; got != s.want {
			t.Errorf("%s: got %+v, want %+v", s.rule, got, s.want)
		}
	}
	last, late := b.candidate(3, "r-3"), b.candidate(4, "r-4")
	got := b.reserve(t, last, late, b.candidate(4, "r-4"))
	if got[0].Verdict != reservation.VerdictCreated || got[1].Verdict != reservation.VerdictSoldOut || got[2].Verdict != reservation.VerdictSoldOut {
		t.Errorf("one unit, three candidates: %+v", got)
	}
	if n := b.stock(t); n != 0 {
		t.Errorf("stock is %d, want 0", n)
	}
	if flag, _ := b.raw.Get(t.Context(), b.keys.SoldOut()).Result(); flag != "1" {
		t.Errorf("sold-out flag is %q, want 1", flag)
	}
	// SOLD_OUT is not stored: the request may be judged anew.
	if n, _ := b.raw.Exists(t.Context(), b.keys.Request("r-4")).Result(); n != 0 {
		t.Error("a SOLD_OUT answer left a request record")
	}
}

// R13.1.5
func TestReserveOutsideTheActivityChangesNothing(t *testing.T) {
	for rule, mend := range map[string]func(*reservation.Config, *reservation.Activity){
		"not started": func(_ *reservation.Config, a *reservation.Activity) { a.StartsAt = time.Now().Add(time.Minute) },
		"ended":       func(_ *reservation.Config, a *reservation.Activity) { a.EndsAt = time.Now().Add(-time.Minute) },
	} {
		b := setup(t, 5, mend)
		if got := b.reserve(t, b.candidate(1, "r-1"))[0]; got.Verdict != reservation.VerdictNotOpen {
			t.Errorf("%s: %+v", rule, got)
		}
		if n := b.stock(t); n != 5 {
			t.Errorf("%s: stock is %d, want 5", rule, n)
		}
	}
	b := setup(t, 5)
	if err := b.SetStatus(t.Context(), b.activity, sku, seckill.ActivityClosed); err != nil {
		t.Fatal(err)
	}
	if got := b.reserve(t, b.candidate(1, "r-1"))[0]; got.Verdict != reservation.VerdictNotOpen {
		t.Errorf("closed: %+v", got)
	}
	unknown, err := b.Reserve(t.Context(), b.activity+1, sku, []reservation.Candidate{b.candidate(1, "r-1")})
	if err != nil || unknown.Outcomes[0].Verdict != reservation.VerdictNotOpen {
		t.Errorf("unknown activity: %+v, %v", unknown, err)
	}
	if n, _ := b.raw.Exists(t.Context(), seckill.KeysOf(b.activity+1, sku).SoldOut()).Result(); n != 0 {
		t.Error("an unknown activity was marked sold out")
	}
}

// R8.1.1 R8.1.2 R8.1.3 R8.1.4 R8.1.5 R8.1.6 R8.1.8 R7.7.2
func TestReserveWritesTheKeysOfTheSpecification(t *testing.T) {
	b := setup(t, 3)
	c := b.candidate(42, "r-42")
	batch, err := b.Reserve(t.Context(), b.activity, sku, []reservation.Candidate{c})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if user, _ := b.raw.Get(ctx, b.keys.User(42)).Result(); user != c.ReservationID {
		t.Errorf("user mark is %q, want %q", user, c.ReservationID)
	}
	r, found, err := b.LookupRequest(ctx, b.activity, sku, "r-42")
	if err != nil || !found {
		t.Fatalf("request record: found %v, %v", found, err)
	}
	want := reservation.Reservation{ReservationID: c.ReservationID, MessageID: c.MessageID, RequestID: "r-42",
		ActivityID: b.activity, SKUID: sku, UserID: 42, Status: seckill.StatusPendingMessage, PayloadHash: c.PayloadHash,
		ReservedAt: batch.ReservedAt, ExpiresAt: batch.ReservedAt.Add(reservation.HoldDefault),
		NextRetryAt: batch.ReservedAt.Add(reservation.FirstRetryDefault), ActivityVersion: 7}
	if r != want {
		t.Errorf("reservation is\n%+v, want\n%+v", r, want)
	}
	if score, _ := b.raw.ZScore(ctx, b.keys.Pending(), c.ReservationID).Result(); int64(score) != want.NextRetryAt.UnixMicro() {
		t.Errorf("pending score is %.0f, want %d", score, want.NextRetryAt.UnixMicro())
	}
	if fields, _ := b.raw.HLen(ctx, b.keys.Reservation(c.ReservationID)).Result(); fields != 14 {
		t.Errorf("reservation has %d fields, want the thirteen of 8.1 and activity_version", fields)
	}
	// No key's end depends on the time of the request: all end with the
	// activity's data, so that no purchase can be forgotten and made again.
	meta := b.raw.ExpireTime(ctx, b.keys.Meta()).Val()
	for _, k := range []string{b.keys.Stock(), b.keys.Log(), b.keys.User(42), b.keys.Request("r-42")} {
		if got := b.raw.ExpireTime(ctx, k).Val(); got != meta {
			t.Errorf("%s ends at %v, want the activity's %v", k, got, meta)
		}
	}
	changes, atTail, err := b.ReadLog(ctx, b.activity, sku, reservation.LogStart)
	if err != nil || !atTail || len(changes) != 2 || changes[0].Op != "init" || changes[1].Op != "reserve" ||
		changes[1].Stock != 2 || len(changes[1].Users) != 1 || changes[1].Users[0] != 42 {
		t.Errorf("change log is %+v, at tail %v, %v", changes, atTail, err)
	}
}

// R13.2.1 R13.2.2 R13.2.3 R13.2.4 R10.2: stock 100, 10,000 users, some
// requests twice, from many connections at once.
func TestTenThousandUsersForAHundredUnits(t *testing.T) { // R7.5.1
	const stock, users, workers = 100, 10_000, 16
	b := setup(t, stock)
	type answer struct {
		user    int64
		request string
		id      string
	}
	var mu sync.Mutex
	var won []answer
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for u := w; u < users; u += workers {
				user := int64(u + 1)
				batch := []reservation.Candidate{b.candidate(user, fmt.Sprintf("r-%d", user)), b.candidate(user, fmt.Sprintf("r-%d", user)),
					b.candidate(user, fmt.Sprintf("again-%d", user))}
				result, err := b.Reserve(context.Background(), b.activity, sku, batch)
				if err != nil {
					t.Error(err)
					return
				}
				for i, o := range result.Outcomes {
					if o.Verdict == reservation.VerdictCreated || o.Verdict == reservation.VerdictReplayed {
						mu.Lock()
						won = append(won, answer{user, batch[i].RequestID, o.ReservationID})
						mu.Unlock()
					}
				}
			}
		})
	}
	wg.Wait()
	byUser, byRequest, ids := map[int64]string{}, map[string]string{}, map[string]bool{}
	for _, a := range won {
		if id, ok := byUser[a.user]; ok && id != a.id {
			t.Errorf("user %d has reservations %s and %s", a.user, id, a.id)
		}
		if id, ok := byRequest[a.request]; ok && id != a.id {
			t.Errorf("request %s has reservations %s and %s", a.request, id, a.id)
		}
		byUser[a.user], byRequest[a.request], ids[a.id] = a.id, a.id, true
	}
	if len(ids) != stock {
		t.Errorf("%d reservations of %d units", len(ids), stock)
	}
	if n := b.stock(t); n != 0 {
		t.Errorf("stock is %d, want 0", n)
	}
}

// R7.4.4 R7.7.3 R7.7.4 R7.8.4
func TestDueReservationsAreLeasedToOneScannerWithTheirOriginalMessage(t *testing.T) {
	b := setup(t, 50, func(c *reservation.Config, _ *reservation.Activity) { c.FirstRetry = 10 * time.Millisecond })
	var made []reservation.Candidate
	for u := int64(1); u <= 32; u++ {
		made = append(made, b.candidate(u, fmt.Sprintf("r-%d", u)))
	}
	b.reserve(t, made...)
	// One is confirmed and decided meanwhile: nobody may send it again.
	if err := b.MarkSent(t.Context(), b.activity, sku, []string{made[0].ReservationID}); err != nil {
		t.Fatal(err)
	}
	backoff := reservation.Backoff{Base: time.Hour, Max: 2 * time.Hour}
	claimed := map[string]reservation.Reservation{}
	var mu sync.Mutex
	deadline := time.Now().Add(10 * time.Second)
	for len(claimed) < 31 && time.Now().Before(deadline) {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				due, err := b.ClaimDue(context.Background(), b.activity, sku, 8, backoff)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, r := range due {
					if _, twice := claimed[r.ReservationID]; twice {
						t.Errorf("%s was given to two scanners", r.ReservationID)
					}
					claimed[r.ReservationID] = r
				}
			})
		}
		wg.Wait()
	}
	for i, c := range made {
		r, ok := claimed[c.ReservationID]
		switch {
		case i == 0 && ok:
			t.Error("a confirmed reservation was claimed")
		case i > 0 && !ok:
			t.Errorf("%s was never claimed", c.ReservationID)
		case i > 0:
			m := r.Message(time.Now())
			if m.MessageID != c.MessageID || m.RetryCount != 1 || m.PayloadHash != seckill.PayloadHashPrefix+c.PayloadHash {
				t.Errorf("message of %s is %+v", c.ReservationID, m)
			}
			if body, err := m.Encode(); err != nil {
				t.Error(err)
			} else if _, err := seckill.DecodeOrderCreate(body); err != nil {
				t.Error(err)
			}
		}
	}
	if n, _ := b.PendingCount(t.Context(), b.activity, sku); n != 31 {
		t.Errorf("%d pending, want 31: leased, not gone", n)
	}
}

func event(c reservation.Candidate, b *bundle, kind string, status seckill.ReservationStatus, returns bool) seckill.Event {
	e := seckill.Event{SchemaVersion: 1, EventType: kind, ReservationID: c.ReservationID, ActivityID: b.activity, SKUID: sku,
		UserID: c.UserID, Status: status, ReturnStock: returns}
	if kind == seckill.EventCompensate {
		e.OperationID = seckill.OperationIDOf(c.ReservationID)
	} else {
		e.OrderID = "ord_" + c.ReservationID[5:]
	}
	return e
}

// R13.4.7 R7.6.6: a compensation delivered many times, in any order with its
// neighbours and from several connections, returns its unit once.
func TestCompensationIsAppliedOnce(t *testing.T) { // R8.2.1
	b := setup(t, 3)
	winners := []reservation.Candidate{b.candidate(1, "r-1"), b.candidate(2, "r-2"), b.candidate(3, "r-3")}
	b.reserve(t, winners...)
	events := []seckill.Event{
		event(winners[0], b, seckill.EventOrderCreated, seckill.StatusOrderCreated, false),
		event(winners[1], b, seckill.EventCompensate, seckill.StatusRejectedDuplicateUser, true),
		event(winners[2], b, seckill.EventCompensate, seckill.StatusRejectedNoFinalStock, false), // a phantom: stays gone
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := b.Apply(context.Background(), b.activity, sku, events); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := b.stock(t); n != 1 {
		t.Errorf("stock is %d, want 1", n)
	}
	for i, want := range []struct {
		status      seckill.ReservationStatus
		compensated bool
	}{{seckill.StatusOrderCreated, false}, {seckill.StatusRejectedDuplicateUser, true}, {seckill.StatusRejectedNoFinalStock, true}} {
		r, found, err := b.LookupReservation(t.Context(), b.activity, sku, winners[i].ReservationID)
		if err != nil || !found || r.Status != want.status || r.CompensatedAt.IsZero() == want.compensated {
			t.Errorf("reservation %d is %+v, found %v, %v", i+1, r, found, err)
		}
	}
	if n, _ := b.PendingCount(t.Context(), b.activity, sku); n != 0 {
		t.Errorf("%d pending after all were decided", n)
	}
	// The user mark and the request outlive compensation: no second try.
	if got := b.reserve(t, b.candidate(2, "r-2"))[0]; got.Verdict != reservation.VerdictReplayed || got.Status != "COMPENSATED" {
		t.Errorf("the compensated user's request is %+v", got)
	}
	if got := b.reserve(t, b.candidate(2, "other"))[0]; got.Verdict != reservation.VerdictDuplicateUser {
		t.Errorf("the compensated user's second try is %+v", got)
	}
}

// A returned unit is not reservable until every gate can know of it.
func TestAReturnedUnitWaitsForTheGates(t *testing.T) {
	b := setup(t, 1, func(c *reservation.Config, _ *reservation.Activity) { c.Reopen = 300 * time.Millisecond })
	c := b.candidate(1, "r-1")
	b.reserve(t, c)
	if _, err := b.Apply(t.Context(), b.activity, sku, []seckill.Event{event(c, b, seckill.EventCompensate, seckill.StatusRejectedLate, true)}); err != nil {
		t.Fatal(err)
	}
	if got := b.reserve(t, b.candidate(2, "r-2"))[0]; got.Verdict != reservation.VerdictSoldOut {
		t.Errorf("right after the return: %+v", got)
	}
	sold := false
	for deadline := time.Now().Add(10 * time.Second); !sold && time.Now().Before(deadline); {
		sold = b.reserve(t, b.candidate(2, "r-2"))[0].Verdict == reservation.VerdictCreated
	}
	if !sold {
		t.Error("the returned unit was never sold")
	}
	entries, err := b.raw.XRange(t.Context(), b.keys.Log(), "-", "+").Result()
	if err != nil || len(entries) != 4 || entries[2].Values["op"] != "return" {
		t.Fatalf("log is %v, %v", entries, err)
	}
	var at, open int64
	fmt.Sscan(entries[2].Values["at"].(string), &at)
	fmt.Sscan(entries[2].Values["open_at"].(string), &open)
	var reserved int64
	fmt.Sscan(entries[3].Values["at"].(string), &reserved)
	if open-at != 300_000 || reserved < open {
		t.Errorf("returned at %d, open at %d, reserved at %d", at, open, reserved)
	}
}

func TestScriptsAreSentAgainToARedisThatForgotThem(t *testing.T) {
	b := setup(t, 1)
	if err := b.raw.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if got := b.reserve(t, b.candidate(1, "r-1"))[0]; got.Verdict != reservation.VerdictCreated {
		t.Errorf("after SCRIPT FLUSH: %+v", got)
	}
}

// R13.1.7 R9.1.2
func TestAVerdictThatIsNoneIsAnError(t *testing.T) {
	files := fstest.MapFS{}
	names, err := fs.Glob(lua.FS, "*.lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		body, err := fs.ReadFile(lua.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: body}
	}
	files["reserve.lua"] = &fstest.MapFile{Data: []byte("return {'1','2','3','SURPRISE','','',''}")}
	s, err := reservation.New(reservation.Config{Addr: systest.Redis(t)}, files)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Reserve(t.Context(), 1, 1, []reservation.Candidate{{RequestID: "r", UserID: 1, ReservationID: "x"}}); err == nil {
		t.Error("an unknown verdict was accepted")
	}
}

// R7.11.1
func TestARedisThatIsGoneIsUnavailable(t *testing.T) {
	s, err := reservation.New(reservation.Config{Addr: "127.0.0.1:1", Timeout: 200 * time.Millisecond}, lua.FS)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Reserve(t.Context(), 1, 1, []reservation.Candidate{{RequestID: "r", UserID: 1, ReservationID: "x"}})
	if err == nil || !isUnavailable(err) {
		t.Errorf("error is %v, want ErrUnavailable", err)
	}
}
