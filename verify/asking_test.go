package verify

import (
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// ask has the owner of a request ask what became of it.
func (w *world) ask(pick rundir.Pick, at int64) {
	q := rundir.Query{Schema: rundir.QueriesSchema, Ask: rundir.AskRequest, User: pick.User, RequestID: w.plan.Workload.RequestID(pick.Ordinal),
		SentUS: w.us(at) - 300, DoneUS: w.us(at) + 300}
	r := w.byReq[pick.Ordinal]
	switch {
	case w.chance(50):
		q.Failed = "connection refused"
	case w.chance(50):
		q.Code = seckill.CodeRateLimited.String()
	case r == nil:
		q.Code = seckill.CodeProcessing.String()
	case r.user != pick.User:
		q.Code = seckill.CodeForbidden.String()
	default:
		w.tell(r, &q)
	}
	w.queries = append(w.queries, q)
	if q.Status == string(seckill.StatusOrderCreated) && w.paid[r.id] {
		end := q
		end.Ask, end.Order, end.Code, end.Status = rundir.AskPay, r.order, seckill.CodeFound.String(), string(seckill.OrderPaid)
		w.queries = append(w.queries, end)
	}
}

// tell is what a query says of a reservation now.
func (w *world) tell(r *simReservation, q *rundir.Query) {
	q.Code, q.Status, q.ReservationID, q.OrderID = seckill.CodeFound.String(), string(r.status), r.id, r.order
	switch {
	case r.status.Undecided():
		q.Code = seckill.CodeProcessing.String()
	case r.compensate != 0:
		q.Status, q.Reason = seckill.StatusCompensated, string(r.status)
	}
}

// census asks for every accepted request when all is over.
func (w *world) census() {
	at := w.snapshotAt().UnixMicro() + 1_000_000
	seen := map[asker]bool{}
	for i := range w.records {
		a := &w.records[i]
		k := asker{int64(a.Subject), w.plan.Workload.RequestID(a.Ordinal)}
		if !codeOf(a).Accepted() || seen[k] {
			continue
		}
		seen[k] = true
		at += 500
		q := rundir.Query{Schema: rundir.QueriesSchema, Census: true, Ask: rundir.AskRequest, User: k.user, RequestID: k.requestID, SentUS: at, DoneUS: at + 400}
		w.tell(w.byReq[a.Ordinal], &q)
		w.queries = append(w.queries, q)
	}
}
