package verify

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// asked finds an answer to a query; when the sale was over if census.
func (w *world) asked(census bool, status string) *rundir.Query {
	for i := range w.queries {
		q := &w.queries[i]
		if q.Census == census && q.Status == status && w.codeFor(q.ReservationID).Accepted() && w.sentAfterAnswer(q) {
			return q
		}
	}
	panic("nobody was told " + status)
}

func (w *world) sentAfterAnswer(q *rundir.Query) bool {
	return slices.ContainsFunc(w.records, func(a history.Record) bool {
		return int64(a.Subject) == q.User && w.plan.Workload.RequestID(a.Ordinal) == q.RequestID && codeOf(&a).Accepted() && w.us(a.Done)+clockToleranceUS < q.SentUS
	})
}

// askingLies are told by the orders role, or of it.
func askingLies() []lie {
	const created = string(seckill.StatusOrderCreated)
	return []lie{
		{"an order told before its commit", "I8", func(w *world) string {
			q := w.asked(false, created)
			for i := range w.ledger {
				if l := &w.ledger[i]; l.EntryType == entrySale && deref(l.OrderID) == q.OrderID {
					l.CommittedAt = time.UnixMicro(q.DoneUS).Add(40 * time.Millisecond)
				}
			}
			return fmt.Sprintf("was told FOUND ORDER_CREATED order %s at %s, and the order was committed only 40.000 ms later: it may be told after its commit",
				q.OrderID, clock(q.DoneUS*1000-w.start.UnixNano()))
		}},
		{"ORDER_CREATED answered for a reservation", "I8", func(w *world) string {
			a := w.recordOf(w.lonely())
			a.Code, a.Status = uint8(seckill.CodeOrderCreated), 201
			i := slices.IndexFunc(w.ledger, func(l rundir.LedgerRow) bool { return l.EntryType == entrySale && l.ReservationID == named(a) })
			w.ledger[i].CommittedAt = w.wall(a.Done).Truncate(time.Microsecond).Add(11 * time.Millisecond)
			return fmt.Sprintf("user %d was answered ORDER_CREATED at %s for request %d, and order %s was committed only 11.000 ms later",
				a.Subject, clock(a.Done), a.N, deref(w.ledger[i].OrderID))
		}},
		{"ORDER_CREATED answered for a rejection", "I8", func(w *world) string {
			r := w.rejected()
			for i := range w.records {
				if a := &w.records[i]; named(a) == r.ReservationID && codeOf(a).Accepted() {
					a.Code, a.Status = uint8(seckill.CodeOrderCreated), 201
					return fmt.Sprintf("user %d was answered ORDER_CREATED with reservation %s at %s for request %d, and no order of it was ever committed: +1 success without an order",
						a.Subject, r.ReservationID, clock(a.Done), a.N)
				}
			}
			panic("none")
		}},
		{"an order told that never was", "I8 I13", func(w *world) string {
			q := w.asked(true, created)
			q.OrderID = "ord_X"
			return fmt.Sprintf("user %d, asking for request id %s at %s, was told FOUND ORDER_CREATED order ord_X, and no such order was ever committed: +1 success without an order",
				q.User, q.RequestID, clock(q.SentUS*1000-w.start.UnixNano()))
		}},
		{"a payment told that never was", "I8", func(w *world) string {
			q := *w.asked(false, created)
			q.Ask, q.Order, q.Status = rundir.AskPay, q.OrderID, string(seckill.OrderPaid)
			w.queries = append(w.queries, q)
			return fmt.Sprintf("user %d, who wanted to pay the order of request id %s at %s, was told FOUND PAID order %s, and no PAY of that order was ever committed: +1 end that never was",
				q.User, q.RequestID, clock(q.SentUS*1000-w.start.UnixNano()), q.OrderID)
		}},
		{"an accepted request called not accepted", "I13", func(w *world) string {
			q := w.asked(false, created)
			q.Code, q.Status, q.OrderID, q.ReservationID = seckill.CodeNotAccepted.String(), "", "", ""
			return "was told NOT_ACCEPTED: what was accepted is called not accepted, which invites to buy again"
		}},
		{"an accepted request not found", "I13", func(w *world) string {
			q := w.asked(false, created)
			q.Code, q.Status, q.OrderID, q.ReservationID = seckill.CodeNotFound.String(), "", "", ""
			return "was told NOT_FOUND: an accepted request is still to be known"
		}},
		{"still processing when all is over", "I13", func(w *world) string {
			q := w.asked(true, created)
			id := q.ReservationID
			q.Code, q.Status, q.OrderID = seckill.CodeProcessing.String(), "", ""
			return fmt.Sprintf("after it was answered %s with reservation %s, was told PROCESSING: it must be told how it ended, for nothing is pending any more", w.firstCode(q), id)
		}},
		{"another's reservation told", "I13", func(w *world) string {
			q := w.asked(false, created)
			for _, r := range w.held {
				if r.id != q.ReservationID && r.order != "" {
					q.ReservationID, q.OrderID = r.id, r.order
					return "was told FOUND ORDER_CREATED order " + r.order + ": it names reservation " + r.id
				}
			}
			panic("none")
		}},
		{"another end told", "I13", func(w *world) string {
			q := w.asked(true, created)
			q.Status, q.Reason, q.OrderID = seckill.StatusCompensated, string(seckill.StatusRejectedLate), ""
			return "was told FOUND COMPENSATED (REJECTED_LATE): it ended as ORDER_CREATED"
		}},
	}
}

// firstCode is the code of the first accepted answer to what is asked for.
func (w *world) firstCode(q *rundir.Query) seckill.Code {
	records := slices.Clone(w.records)
	slices.SortFunc(records, func(a, b history.Record) int { return int(a.Sent - b.Sent) })
	for i := range records {
		if a := &records[i]; int64(a.Subject) == q.User && w.plan.Workload.RequestID(a.Ordinal) == q.RequestID && codeOf(a).Accepted() {
			return codeOf(a)
		}
	}
	panic("never accepted")
}

// Who was not asked for proves nothing: the census is missing evidence, and
// so is an order whose commit time nobody knows.
func TestWhatWasNotAskedIsNotChecked(t *testing.T) {
	for name, c := range map[string]struct {
		spoil    func(*world)
		id, says string
	}{
		"one accepted request": {func(w *world) {
			w.queries = slices.DeleteFunc(w.queries, func(q rundir.Query) bool { return q.Census && q.User == w.held[3].user })
		}, "I13", "were asked for at the end, and must be"},
		"an answer that never came": {func(w *world) {
			q := w.asked(true, string(seckill.StatusOrderCreated))
			*q = rundir.Query{Schema: q.Schema, Census: true, Ask: q.Ask, User: q.User, RequestID: q.RequestID, SentUS: q.SentUS, DoneUS: q.DoneUS, Failed: "timeout"}
		}, "I13", "were asked for at the end, and must be"},
		"a sale without its commit time": {func(w *world) { w.ledger[w.sale(3)].CommittedAt = time.Time{} }, "I8", "has no commit time"},
		"another schema":                 {func(w *world) { w.queries[0].Schema = 9 }, "I13", "queries.jsonl: has schema 9, this build reads 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := healthyWorld()
			c.spoil(w)
			run := w.judged(t)
			if inv := statusOf(run, c.id); inv.Status != rundir.StatusNotChecked || run.ExitCode != ExitInconclusive || !strings.Contains(inv.Witness[0], c.says) {
				t.Errorf("exit %d, %+v", run.ExitCode, inv)
			}
		})
	}
}

// A plan of before there were queries asks for none.
func TestAPlanMayAskForNoQueries(t *testing.T) {
	w := healthyWorld()
	w.plan.Invariants = slices.DeleteFunc(w.plan.Invariants, func(id string) bool { return id == "I8" || id == "I13" })
	dir := rundir.Dir(scratch(t))
	w.write(t, dir)
	if err := os.Remove(dir.Queries()); err != nil {
		t.Fatal(err)
	}
	if run := judgeDir(t, dir); run.ExitCode != ExitPass || statusOf(run, "I13").Status != rundir.StatusNotChecked {
		t.Errorf("exit %d: %q", run.ExitCode, run.Reasons)
	}
}
