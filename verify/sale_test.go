package verify

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// request schedules the judging of request n, and its record.
func (w *world) request(n uint64, step int64, failures bool) {
	pick := w.plan.Workload.Pick(n)
	rec := history.Record{N: n, Subject: uint64(pick.User), Ordinal: pick.Ordinal, Intended: int64(n) * step, Outcome: history.Completed}
	rec.Sent = rec.Intended + w.between(0, 100_000)
	judged := rec.Sent + w.between(1000, 2_000_000)
	rec.Done = judged + w.between(1000, 2_000_000)
	fate := w.rng.IntN(1000)
	w.schedule(judged, func(at int64) {
		code, id := seckill.CodeRateLimited, ""
		if at >= w.closed.from && at < w.closed.to {
			code = seckill.CodeUnavailable
		} else if fate < 970 {
			code, id = w.judge(pick, at)
		}
		if tag, ok := seckill.ReservationTag([]byte(id)); ok {
			rec.Tag = tag
		}
		rec.Code, rec.Status = uint8(code), uint16(code.HTTPStatus())
		if w.chance(100) {
			w.schedule(at+w.between(1_000_000, 60_000_000), func(at int64) { w.ask(pick, at) })
		}
		if failures {
			w.fail(&rec, fate)
		}
		w.records = append(w.records, rec)
	})
}

// fail takes the answer from some: judged or not, the user does not know.
func (w *world) fail(rec *history.Record, fate int) {
	without := func(o history.Outcome, after int64) {
		rec.Outcome, rec.Code, rec.Status, rec.Tag = o, 0, 0, [16]byte{}
		rec.Done += after
	}
	switch {
	case fate < 20:
		without(history.TimedOut, int64(time.Second))
	case fate < 30:
		without(history.Failed, 0)
		rec.Code = 4
	case fate < 35:
		without(history.Unfinished, 0)
	case fate < 45:
		rec.Code, rec.Status, rec.Tag = uint8(seckill.CodeUnavailable), 503, [16]byte{}
	}
}

// judge is the edge and the reserve script.
func (w *world) judge(pick rundir.Pick, at int64) (seckill.Code, string) {
	sellable := w.stock > 0 && at >= w.openAt
	_, member := w.byUser[pick.User]
	if !sellable && !member && w.chance(700) {
		return seckill.CodeSoldOut, "" // by the gate, before the conflict check
	}
	if r := w.byReq[pick.Ordinal]; r != nil {
		if r.user != pick.User {
			return seckill.CodeIdempotencyConflict, ""
		}
		if r.status == seckill.StatusPendingMessage {
			return seckill.CodeQueuedPending, r.id
		}
		return seckill.CodeQueued, r.id
	}
	if member {
		return seckill.CodeDuplicateUser, w.byUser[pick.User].id
	}
	if !sellable {
		return seckill.CodeSoldOut, ""
	}
	return w.reserve(pick, at)
}

func (w *world) reserve(pick rundir.Pick, at int64) (seckill.Code, string) {
	var tag [16]byte
	for i := range tag {
		tag[i] = byte(w.rng.UintN(256))
	}
	r := &simReservation{id: seckill.ReservationIDOfTag(tag), user: pick.User, ordinal: pick.Ordinal, at: at, status: seckill.StatusPendingMessage}
	w.stock--
	w.held = append(w.held, r)
	w.byUser[r.user], w.byReq[r.ordinal] = r, r
	w.logEntry("reserve", r, at, 0)
	code := seckill.CodeQueued
	if w.chance(100) { // the send's outcome is unknown: the scanner sends again
		code = seckill.CodeQueuedPending
		if w.chance(500) {
			w.send(r, 0)
		}
		w.send(r, 1)
	} else {
		w.send(r, 0)
		r.status = seckill.StatusMessageSent
	}
	w.schedule(at+w.between(1_000_000, 20_000_000), func(at int64) { w.decide(r, at) })
	return code, r.id
}

func (w *world) send(r *simReservation, retry int) {
	cmd := seckill.SubmitCommand{ActivityID: activityID, SKUID: skuID, UserID: r.user, RequestID: w.plan.Workload.RequestID(r.ordinal), Quantity: 1}
	m := seckill.OrderCreateMessage{
		SchemaVersion: 1, EventType: seckill.EventTypeOrderCreateRequested, MessageID: seckill.MessageIDOf(r.id), MessageKey: r.id,
		RequestID: cmd.RequestID, ReservationID: r.id, ActivityID: activityID, SKUID: skuID, UserID: r.user,
		ReservedAt: w.wall(r.at), ReservationExpiresAt: w.wall(r.at).Add(time.Minute), RetryCount: retry,
		PayloadHash: seckill.PayloadHashPrefix + cmd.PayloadHash(), ActivityVersion: 1, CreatedAt: w.wall(r.at),
	}
	body, err := m.Encode()
	if err != nil {
		panic(err)
	}
	w.messages = append(w.messages, rundir.Message{Topic: seckill.TopicOrderCreate, Queue: 0, Offset: int64(len(w.messages)), StoredAtMS: w.us(r.at) / 1000, Keys: r.id, Body: body})
}

// decide is the consumer's transaction.
func (w *world) decide(r *simReservation, at int64) {
	committed := w.wall(at)
	request := w.plan.Workload.RequestID(r.ordinal)
	row := rundir.ReservationRow{ReservationID: r.id, MessageID: seckill.MessageIDOf(r.id), ActivityID: activityID, SKUID: skuID,
		UserID: r.user, RequestID: request, ReservedAt: w.wall(r.at).Truncate(time.Microsecond), CommittedAt: committed}
	entry := rundir.LedgerRow{LedgerID: int64(len(w.ledger) + 1), ActivityID: activityID, SKUID: skuID, ReservationID: r.id, CommittedAt: committed}
	ev := seckill.Event{SchemaVersion: 1, EventType: seckill.EventCompensate, ReservationID: r.id, ActivityID: activityID, SKUID: skuID, UserID: r.user}
	switch {
	case w.rejects && w.chance(150):
		r.status = []seckill.ReservationStatus{seckill.StatusRejectedLate, seckill.StatusRejectedVersion, seckill.StatusRejectedPoison}[w.rng.IntN(3)]
	case len(w.free) == 0:
		r.status = seckill.StatusRejectedNoFinalStock
	default:
		r.status = seckill.StatusOrderCreated
	}
	if r.status == seckill.StatusOrderCreated {
		t := &w.tokens[w.free[0]]
		w.free = w.free[1:]
		r.order = "ord_" + r.id[5:]
		t.Status, t.ReservationID, t.OrderID = "CLAIMED", &r.id, &r.order
		w.orders = append(w.orders, rundir.OrderRow{OrderID: r.order, ActivityID: activityID, SKUID: skuID, UserID: r.user, RequestID: request,
			ReservationID: r.id, InventoryTokenID: t.TokenID, AmountCents: 999, Status: "CREATED", CommittedAt: committed})
		w.items = append(w.items, rundir.OrderItemRow{OrderID: r.order, LineNo: 1, SKUID: skuID, Quantity: 1})
		entry.EntryType, entry.Delta, entry.OrderID, entry.TokenID = "SALE", -1, &r.order, &t.TokenID
		row.OrderID = &r.order
		ev.EventType, ev.OrderID = seckill.EventOrderCreated, r.order
	} else {
		row.ReturnStock = r.status.ReturnsStock(false)
		entry.EntryType = "REJECT"
		if row.ReturnStock {
			entry.RedisReturn = 1
		}
		ev.OperationID, ev.ReturnStock = seckill.OperationIDOf(r.id), row.ReturnStock
		w.schedule(at+w.between(500_000, 10_000_000), func(at int64) { w.compensate(r, row.ReturnStock, at) })
	}
	row.Status, ev.Status = string(r.status), r.status
	payload, err := json.Marshal(ev)
	if err != nil {
		panic(err)
	}
	if row.OrderID != nil && w.ends && w.chance(800) {
		i, o := len(w.reservations), len(w.orders)-1
		w.schedule(at+w.between(500_000, 40_000_000), func(at int64) { w.end(r, i, o, at) })
	}
	w.reservations = append(w.reservations, row)
	w.ledger = append(w.ledger, entry)
	w.inbox = append(w.inbox, rundir.InboxRow{ConsumerGroup: seckill.GroupOrder, MessageID: row.MessageID, ReservationID: r.id, ReceivedAt: committed, CommittedAt: committed})
	w.outbox = append(w.outbox, rundir.OutboxRow{EventID: int64(len(w.outbox) + 1), EventType: ev.EventType, AggregateID: r.id, Payload: payload, PublishedAt: &committed})
}

// end pays, cancels or expires order o, of reservation row i.
func (w *world) end(r *simReservation, i, o int, at int64) {
	order, row := &w.orders[o], &w.reservations[i]
	token := slices.IndexFunc(w.tokens, func(t rundir.TokenRow) bool { return t.TokenID == order.InventoryTokenID })
	t := &w.tokens[token]
	committed := w.wall(at)
	entry := rundir.LedgerRow{LedgerID: int64(len(w.ledger) + 1), ActivityID: activityID, SKUID: skuID, ReservationID: r.id,
		OrderID: &r.order, TokenID: &t.TokenID, CommittedAt: committed}
	order.CommittedAt = committed
	w.inbox = append(w.inbox, rundir.InboxRow{ConsumerGroup: seckill.InboxOrderEnd, MessageID: seckill.EndIDOf(r.id), ReservationID: r.id, CommittedAt: committed})
	switch w.rng.IntN(3) {
	case 0:
		order.Status, t.Status, entry.EntryType = "PAID", "SOLD", "PAY"
		w.paid[r.id] = true
		w.ledger = append(w.ledger, entry)
		return
	case 1:
		r.status, order.Status, entry.EntryType = seckill.StatusCancelled, "CANCELLED", "CANCEL"
	case 2:
		r.status, order.Status, entry.EntryType = seckill.StatusExpired, "EXPIRED", "EXPIRE"
	}
	t.Status, t.OrderID, t.ReservationID = "RELEASED", nil, nil
	if w.resell {
		t.Status, entry.Delta, entry.RedisReturn = "AVAILABLE", 1, 1
		w.free = append(w.free, token)
	}
	w.ledger = append(w.ledger, entry)
	row.Status, row.ReturnStock, row.CommittedAt = string(r.status), w.resell, committed
	ev := seckill.Event{SchemaVersion: 1, EventType: seckill.EventCompensate, OperationID: seckill.OperationIDOf(r.id), ReservationID: r.id,
		ActivityID: activityID, SKUID: skuID, UserID: r.user, OrderID: r.order, Status: r.status, ReturnStock: w.resell}
	payload, err := json.Marshal(ev)
	if err != nil {
		panic(err)
	}
	w.outbox = append(w.outbox, rundir.OutboxRow{EventID: int64(len(w.outbox) + 1), EventType: ev.EventType, AggregateID: r.id, Payload: payload, PublishedAt: &committed})
	w.schedule(at+w.between(500_000, 10_000_000), func(at int64) { w.compensate(r, w.resell, at) })
}

// compensate is the projector.
func (w *world) compensate(r *simReservation, giveBack bool, at int64) {
	r.compensate, r.returned = at, giveBack
	if !giveBack {
		return
	}
	w.stock++
	openAt := int64(0)
	if w.stock == 1 {
		openAt = at + 220_000_000
		w.openAt = openAt
	}
	w.logEntry("return", r, at, openAt)
}
