package dlq_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hotsku/hotsku/system/dlq"
	"github.com/hotsku/hotsku/system/seckill"
)

// R7.4.8, I12: what the broker gave up on is taken over once, classified, and
// counted.
func TestWhatTheBrokerGaveUpIsTakenOverAndClassified(t *testing.T) {
	w := setup(t)
	m := w.message(1)
	newer := strings.Replace(string(w.encode(w.message(2))), `"schema_version":1`, `"schema_version":2`, 1)
	event, err := json.Marshal(seckill.Event{SchemaVersion: 1, EventType: seckill.EventCompensate, OperationID: seckill.OperationIDOf(m.ReservationID),
		ReservationID: m.ReservationID, ActivityID: w.activity, SKUID: 1, UserID: 1, Status: seckill.StatusRejectedLate})
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		group string
		body  string
		kind  dlq.Kind
		class dlq.Class
		resv  string
		open  bool
	}{
		"a sound message":      {seckill.GroupOrder, string(w.encode(m)), dlq.KindOrderCreate, dlq.ClassHandedBack, m.ReservationID, true},
		"a newer schema":       {seckill.GroupOrder, newer, dlq.KindOrderCreate, dlq.ClassNewerSchema, "any", true},
		"no message":           {seckill.GroupOrder, "\x00{", dlq.KindOrderCreate, dlq.ClassPoison, "", true},
		"nothing":              {seckill.GroupOrder, "", dlq.KindOrderCreate, dlq.ClassPoison, "", true},
		"NUL in its ids":       {seckill.GroupOrder, `{"schema_version":1,"message_id":"msg_\u0000","reservation_id":"\u0000"}`, dlq.KindOrderCreate, dlq.ClassPoison, "", true},
		"a sound event":        {seckill.GroupProjector, string(event), dlq.KindEvent, dlq.ClassHandedBack, m.ReservationID, true},
		"no event":             {seckill.GroupProjector, "[]", dlq.KindEvent, dlq.ClassPoison, "", true},
		"a reminder of expiry": {seckill.GroupExpiry, "{}", dlq.KindExpiryCheck, dlq.ClassPoison, "", false},
	} {
		t.Run(what, func(t *testing.T) {
			w := &world{TB: t, pool: w.pool, collector: w.collector}
			w.exec(`TRUNCATE dead_letter`)
			d := w.giveUp(c.group, []byte(c.body))
			if err := w.collector.Handle(t.Context(), []dlq.Delivery{d, d}); err != nil { // delivered again
				t.Fatal(err)
			}
			l := w.only()
			if l.Kind != c.kind || l.Class != c.class || l.Open() != c.open || string(l.Body) != c.body || l.Reason == "" {
				t.Errorf("got %+v", l)
			}
			if c.resv != "any" && l.ReservationID != c.resv {
				t.Errorf("reservation %q, want %q", l.ReservationID, c.resv)
			}
			sum, err := dlq.Summary(t.Context(), w.pool)
			if err != nil {
				t.Fatal(err)
			}
			if (len(sum) == 1 && sum[0].Class == c.class && sum[0].Open == 1 && sum[0].Oldest >= 0) != c.open {
				t.Errorf("summary %+v", sum)
			}
		})
	}
}

// A broker that lost its disk counts from 0 again: another message at a known
// position is another letter.
func TestAReusedPositionHidesNoLetter(t *testing.T) {
	w := setup(t)
	d := w.giveUp(seckill.GroupOrder, w.encode(w.message(1)))
	d.Body = w.encode(w.message(2))
	if err := w.collector.Handle(t.Context(), []dlq.Delivery{d}); err != nil {
		t.Fatal(err)
	}
	if n := len(w.open()); n != 2 {
		t.Errorf("%d letters, want 2", n)
	}
	w.consume([]byte("x")) // the consumer's own letters likewise
	w.offset--
	w.consume([]byte("y"))
	if n := len(w.open()); n != 4 {
		t.Errorf("%d letters, want 4", n)
	}
}

// R7.4.8: a replay has the message id of always, so it becomes at most one
// order however often it is made (R8.3.5).
func TestReplayedWithTheSameMessageID(t *testing.T) {
	w := setup(t)
	m := w.message(1)
	w.giveUp(seckill.GroupOrder, w.encode(m))
	id := w.only().ID
	w.refuse = errRefused
	if err := dlq.Replay(t.Context(), w.pool, w, id); !errors.Is(err, errRefused) {
		t.Errorf("an unconfirmed replay: %v", err)
	}
	if l := w.only(); !l.Open() || l.State() != "replayed" {
		t.Errorf("after an unconfirmed replay: %+v", l)
	}
	w.refuse = nil
	if err := dlq.Replay(t.Context(), w.pool, w, id); err != nil {
		t.Fatal(err)
	}
	for _, sent := range w.creates {
		if sent.MessageID != m.MessageID {
			t.Errorf("sent as %s, was %s", sent.MessageID, m.MessageID)
		}
		w.consume(w.encode(sent))
	}
	if l := w.only(); l.Open() || l.Decided != seckill.StatusOrderCreated || l.Replays != 2 {
		t.Errorf("after the replay: %+v", l)
	}
	var orders int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM orders`).Scan(&orders); err != nil || orders != 1 {
		t.Errorf("%d orders, %v", orders, err)
	}
	if err := dlq.Replay(t.Context(), w.pool, w, id); !errors.Is(err, dlq.ErrPointless) || len(w.creates) != 2 {
		t.Errorf("a replay of what is decided: %v", err)
	}
}

func TestWhatNoReplayMendsIsRefused(t *testing.T) {
	w := setup(t)
	w.giveUp(seckill.GroupOrder, []byte("{"))
	if err := dlq.Replay(t.Context(), w.pool, w, w.only().ID); !errors.Is(err, dlq.ErrPointless) || strings.Contains(err.Error(), "\n") {
		t.Errorf("poison: %v", err)
	}
	if err := dlq.Replay(t.Context(), w.pool, w, 1<<40); !errors.Is(err, dlq.ErrNoLetter) {
		t.Errorf("a letter that is none: %v", err)
	}
	if l := w.only(); l.Replays != 0 || len(w.creates) != 0 {
		t.Errorf("something was done: %+v", l)
	}
}

func TestAnEventIsSettledByItsReplay(t *testing.T) {
	w := setup(t)
	m := w.message(1)
	body, err := json.Marshal(seckill.Event{SchemaVersion: 1, EventType: seckill.EventOrderCreated, ReservationID: m.ReservationID,
		ActivityID: w.activity, SKUID: 1, UserID: 1, OrderID: "ord_1", Status: seckill.StatusOrderCreated})
	if err != nil {
		t.Fatal(err)
	}
	w.giveUp(seckill.GroupProjector, body)
	w.consume(w.encode(m)) // that the reservation is decided settles no event
	if err := dlq.Replay(t.Context(), w.pool, w, w.only().ID); err != nil {
		t.Fatal(err)
	}
	if l := w.only(); l.Open() || len(w.events) != 1 {
		t.Errorf("%d events sent, letter %+v", len(w.events), l)
	}
}

// R7.4.8: setting aside decides the reservation through the inbox door; the
// message, should it come again, changes nothing.
func TestSetAsideEndsTheReservation(t *testing.T) {
	w := setup(t)
	m := w.message(1)
	newer := []byte(strings.Replace(string(w.encode(m)), `"schema_version":1`, `"schema_version":2`, 1))
	w.consume(newer) // parked undecided
	id := w.only().ID
	if _, err := dlq.SetAside(t.Context(), w.pool, id, ""); err == nil {
		t.Error("set aside without saying why")
	}
	ended, err := dlq.SetAside(t.Context(), w.pool, id, "fraud, ticket 12")
	if err != nil || ended != m.ReservationID {
		t.Errorf("ended %q, %v", ended, err)
	}
	if ended, err = dlq.SetAside(t.Context(), w.pool, id, "again"); err != nil || ended != "" {
		t.Errorf("again: ended %q, %v", ended, err)
	}
	w.consume(w.encode(m))
	if s := w.status(m.ReservationID); s != seckill.StatusSetAside {
		t.Errorf("status %s", s)
	}
	if l := w.only(); l.Open() || l.Note != "fraud, ticket 12" {
		t.Errorf("letter %+v", l)
	}
	if err := dlq.Replay(t.Context(), w.pool, w, id); !errors.Is(err, dlq.ErrPointless) {
		t.Errorf("replay of what was set aside: %v", err)
	}
}

func TestSetAsideChangesNoDecision(t *testing.T) {
	w := setup(t)
	m := w.message(1)
	w.consume(w.encode(m))
	w.giveUp(seckill.GroupOrder, w.encode(m))
	if l := w.only(); l.Open() {
		t.Errorf("its reservation is decided, and it is open: %+v", l)
	}
	if ended, err := dlq.SetAside(t.Context(), w.pool, w.only().ID, "x"); err != nil || ended != "" {
		t.Errorf("ended %q, %v", ended, err)
	}
	if s := w.status(m.ReservationID); s != seckill.StatusOrderCreated {
		t.Errorf("status %s", s)
	}
	w.exec(`TRUNCATE dead_letter`)
	w.giveUp(seckill.GroupOrder, []byte("?"))
	if ended, err := dlq.SetAside(t.Context(), w.pool, w.only().ID, "line noise"); err != nil || ended != "" || w.only().Open() {
		t.Errorf("a letter of no reservation: ended %q, %v, %+v", ended, err, w.only())
	}
}

// R11.13: readable letters are replayed by themselves, a bounded number of
// times, by one of several processes.
func TestAutomaticReplays(t *testing.T) {
	w := setup(t)
	const letters = 5
	for user := range letters {
		w.giveUp(seckill.GroupOrder, w.encode(w.message(int64(user+1))))
	}
	w.giveUp(seckill.GroupOrder, []byte("?")) // never
	auto := dlq.Automatic{Tries: 2, After: time.Minute}
	replay := func() int {
		t.Helper()
		n, err := auto.ReplayDue(t.Context(), w.pool, w)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	age := func(by string) {
		w.exec(`UPDATE dead_letter SET created_at = created_at - $1::interval, replayed_at = replayed_at - $1::interval`, by)
	}
	if n := replay(); n != 0 {
		t.Errorf("%d replayed at once", n)
	}
	age("61s")
	var both sync.WaitGroup
	total := make([]int, 2)
	for i := range total {
		both.Go(func() { total[i] = replay() })
	}
	both.Wait()
	if total[0]+total[1] != letters || len(w.creates) != letters {
		t.Errorf("two processes replayed %v, sent %d, want %d", total, len(w.creates), letters)
	}
	age("61s")
	if n := replay(); n != 0 {
		t.Errorf("%d replayed before twice the wait", n)
	}
	age("61s")
	w.consume(w.encode(w.creates[0])) // one was decided meanwhile
	if n := replay(); n != letters-1 {
		t.Errorf("%d replayed the second time, want %d", n, letters-1)
	}
	age("1 day")
	if n := replay(); n != 0 {
		t.Errorf("%d replayed after all tries", n)
	}
	if n := len(w.open()); n != letters {
		t.Errorf("%d letters are left to a person, want %d", n, letters)
	}
	for _, bad := range []dlq.Automatic{{Tries: -1, After: 1}, {Tries: 11, After: 1}, {Tries: 1}} {
		if bad.Validate() == nil {
			t.Errorf("%+v is valid", bad)
		}
	}
}

func TestListing(t *testing.T) {
	w := setup(t)
	for i := range 5 {
		w.giveUp(seckill.GroupOrder, fmt.Appendf(nil, "?%d", i))
	}
	w.giveUp(seckill.GroupOrder, w.encode(w.message(1)))
	first := w.list(dlq.Filter{Limit: 2})
	rest := w.list(dlq.Filter{Limit: 100, After: first[1].ID})
	if len(first) != 2 || len(rest) != 4 || rest[0].ID <= first[1].ID {
		t.Errorf("pages of %d and %d", len(first), len(rest))
	}
	if poison := w.list(dlq.Filter{Limit: 100, Class: dlq.ClassPoison}); len(poison) != 5 {
		t.Errorf("%d poison", len(poison))
	}
	for _, limit := range []int{0, -1, dlq.ListMax + 1} {
		if _, err := dlq.List(t.Context(), w.pool, dlq.Filter{Limit: limit}); err == nil {
			t.Errorf("limit %d was taken", limit)
		}
	}
	if _, err := dlq.ParseClass("posion"); err == nil || !strings.Contains(err.Error(), "poison") {
		t.Errorf("a class that is none: %v", err)
	}
}
