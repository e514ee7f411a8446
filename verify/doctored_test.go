package verify

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// healthyWorld is what the tables below doctor: no answer is missing in it,
// and some reservations ended rejected with their unit returned.
func healthyWorld() *world {
	return simulate(options{seed: 11, stock: 40, requests: 700, repeat: 200, conflict: 20, sameUser: 60, rejects: true, step: 300_000})
}

// smallWorld has just enough for every invariant to have something to check.
func smallWorld() *world {
	return simulate(options{seed: 11, stock: 15, requests: 150, repeat: 200, conflict: 20, sameUser: 60, rejects: true, step: 300_000})
}

func TestEveryLieIsFoundByItsInvariant(t *testing.T) {
	for _, l := range slices.Concat(lies(), askingLies()) {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			l.mustBeFound(t, healthyWorld())
		})
	}
}

// mustBeFound tells the lie, and checks who says what.
func (l lie) mustBeFound(t *testing.T, w *world) {
	t.Helper()
	want := l.tell(w)
	run := w.judged(t)
	funnelNarrows(t, run)
	var violated []string
	for _, inv := range run.Invariants {
		if inv.Status == rundir.StatusViolated {
			violated = append(violated, inv.ID)
		}
	}
	expected := strings.Fields(l.violated)
	primary := expected[0]
	slices.Sort(expected)
	sorted := slices.Sorted(slices.Values(violated))
	if !slices.Equal(sorted, expected) || run.Verdict != rundir.VerdictFail || run.ExitCode != ExitFail {
		t.Errorf("violated %v (%s, exit %d), want %s\n%s", violated, run.Verdict, run.ExitCode, l.violated, strings.Join(run.Reasons, "\n"))
	}
	if all := witnesses(run, primary); !strings.Contains(all, want) {
		t.Errorf("%s says\n%s\nwant\n%s", primary, all, want)
	}
}

// The headline counts oversold units one by one, whatever else is wrong
// beside them. R1.6.
func TestOversoldIsCountedByUnit(t *testing.T) {
	sellTwice := func(w *world, again int) {
		w.orders[again].InventoryTokenID = w.orders[0].InventoryTokenID
	}
	lose := func(w *world) { w.orders = w.orders[:len(w.orders)-1] }
	for name, c := range map[string]struct {
		tell func(*world)
		want int64
	}{
		"healthy":                               {func(*world) {}, 0},
		"an order lost":                         {lose, 0},
		"a unit sold twice":                     {func(w *world) { sellTwice(w, 1) }, 1},
		"a unit sold twice beside a lost order": {func(w *world) { sellTwice(w, 1); lose(w) }, 1},
		"a unit sold three times":               {func(w *world) { sellTwice(w, 1); sellTwice(w, 2); lose(w) }, 2},
		"a unit that does not exist": {func(w *world) {
			w.orders[0].InventoryTokenID = 999_999
			lose(w)
		}, 1},
		"a unit that is still free": {func(w *world) {
			for i := range w.tokens {
				if w.tokens[i].TokenID == w.orders[0].InventoryTokenID {
					w.tokens[i].Status = "AVAILABLE"
				}
			}
		}, 1},
		"more units than were issued": {func(w *world) { w.plan.Activities[0].Tokens = int64(len(w.orders) - 3) }, 3},
		"a cancelled order sells nothing": {func(w *world) {
			sellTwice(w, 1)
			w.orders[1].Status = "CANCELLED"
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := healthyWorld()
			c.tell(w)
			if got := w.judged(t).Orders.Oversold; got != c.want {
				t.Errorf("%d oversold, want %d", got, c.want)
			}
		})
	}
}

func witnesses(run *rundir.Run, id string) string {
	for _, inv := range run.Invariants {
		if inv.ID == id {
			return strings.Join(inv.Witness, "\n")
		}
	}
	return ""
}

// What follows finds parts of a world to spoil.

func (w *world) answer(code seckill.Code) *history.Record {
	for i := len(w.records) - 1; i >= 0; i-- {
		if codeOf(&w.records[i]) == code {
			return &w.records[i]
		}
	}
	panic("no answer " + code.String())
}

// replay finds the first and a later accepted answer to one request id.
func (w *world) replay() (first, again *history.Record) {
	seen := map[uint32]*history.Record{}
	for i := range w.records {
		r := &w.records[i]
		if !codeOf(r).Accepted() {
			continue
		}
		if a := seen[r.Ordinal]; a != nil && !w.dupes(r) {
			return a, r
		}
		seen[r.Ordinal] = r
	}
	panic("no replay")
}

func (w *world) dupes(r *history.Record) bool {
	return slices.ContainsFunc(w.records, func(o history.Record) bool {
		return o.Subject == r.Subject && codeOf(&o) == seckill.CodeDuplicateUser
	})
}

func (w *world) otherTag(r *history.Record) [16]byte {
	for _, o := range w.held {
		if o.user != int64(r.Subject) {
			tag, _ := seckill.ReservationTag([]byte(o.id))
			return tag
		}
	}
	panic("no other reservation")
}

// lonely is a reservation whose user sent one request only.
func (w *world) lonely() *simReservation {
	for _, r := range w.held {
		n := 0
		for i := range w.records {
			if rec := &w.records[i]; int64(rec.Subject) == r.user || rec.Ordinal == r.ordinal {
				n++
			}
		}
		if n == 1 {
			return r
		}
	}
	panic("none")
}

func (w *world) recordOf(r *simReservation) *history.Record {
	for i := range w.records {
		if rec := &w.records[i]; rec.Ordinal == r.ordinal && int64(rec.Subject) == r.user {
			return rec
		}
	}
	panic("none")
}

// lateFresh is a SOLD_OUT of a user and request id nobody else used.
func (w *world) lateFresh() *history.Record {
	for i := len(w.records) - 1; i >= 0; i-- {
		r := &w.records[i]
		if codeOf(r) == seckill.CodeSoldOut && w.plan.Workload.Pick(r.N).Kind == rundir.KindFresh && w.byUser[int64(r.Subject)] == nil {
			return r
		}
	}
	panic("none")
}

func (w *world) rejected() *rundir.ReservationRow {
	for i := range w.reservations {
		if w.reservations[i].ReturnStock {
			return &w.reservations[i]
		}
	}
	panic("no rejection")
}

func (w *world) statusOf(id string) string {
	for _, r := range w.reservations {
		if r.ReservationID == id {
			return r.Status
		}
	}
	return ""
}

func (w *world) codeFor(id string) seckill.Code {
	tag, _ := seckill.ReservationTag([]byte(id))
	records := slices.Clone(w.records)
	slices.SortFunc(records, func(a, b history.Record) int { return int(a.Sent - b.Sent) })
	for i := range records {
		if records[i].Tag == tag {
			return codeOf(&records[i])
		}
	}
	return seckill.CodeNone
}

// sale is the index of the n-th SALE.
func (w *world) sale(n int) int {
	for i := range w.ledger {
		if w.ledger[i].EntryType == "SALE" {
			if n == 0 {
				return i
			}
			n--
		}
	}
	panic("no sale")
}

func (w *world) key(suffix string) *rundir.RedisKey {
	name := seckill.KeysOf(activityID, skuID).Prefix() + suffix
	for i := range w.keys {
		if w.keys[i].Key == name {
			return &w.keys[i]
		}
	}
	panic("no key " + name)
}

// setStock changes the stock key and returns what it was.
func (w *world) setStock(by int64) int64 {
	k := w.key("stock")
	var was int64
	fmt.Sscan(k.String, &was)
	k.String = fmt.Sprint(was + by)
	return was
}

// forget removes a reservation from every table of PostgreSQL.
func (w *world) forget(id string) {
	w.orders = slices.DeleteFunc(w.orders, func(r rundir.OrderRow) bool { return r.ReservationID == id })
	w.items = slices.DeleteFunc(w.items, func(r rundir.OrderItemRow) bool { return r.OrderID == "ord_"+id[5:] })
	w.reservations = slices.DeleteFunc(w.reservations, func(r rundir.ReservationRow) bool { return r.ReservationID == id })
	w.ledger = slices.DeleteFunc(w.ledger, func(r rundir.LedgerRow) bool { return r.ReservationID == id })
	w.inbox = slices.DeleteFunc(w.inbox, func(r rundir.InboxRow) bool { return r.ReservationID == id })
	w.outbox = slices.DeleteFunc(w.outbox, func(r rundir.OutboxRow) bool { return r.AggregateID == id })
}
