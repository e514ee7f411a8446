package verify

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// lie is one way to spoil the stores or the history. It returns what the
// witness of the first invariant of violated must say.
type lie struct {
	name     string
	violated string // ids, as reported
	tell     func(w *world) string
}

func lies() []lie {
	return []lie{
		{"an order row deleted", "I1 I3 I4 I15", func(w *world) string {
			o := w.orders[3]
			w.orders = slices.Delete(w.orders, 3, 4)
			return fmt.Sprintf("token %d is CLAIMED and promised to exactly one valid order, 0 hold it: none: -1", o.InventoryTokenID)
		}},
		{"one token in two orders", "I1 I3 I15", func(w *world) string {
			a, b := &w.orders[0], &w.orders[1]
			b.InventoryTokenID = a.InventoryTokenID
			return fmt.Sprintf("token %d is CLAIMED and promised to exactly one valid order, 2 hold it: %s; %s: +1", a.InventoryTokenID, orderWords(a), orderWords(b))
		}},
		{"a token sold twice while another vanishes", "I1 I3 I15", func(w *world) string {
			a, b := &w.orders[0], &w.orders[1]
			gone := b.InventoryTokenID
			b.InventoryTokenID = a.InventoryTokenID
			for i := range w.ledger {
				if deref(w.ledger[i].OrderID) == b.OrderID {
					w.ledger[i].TokenID = &a.InventoryTokenID
				}
			}
			w.tokens = slices.DeleteFunc(w.tokens, func(t rundir.TokenRow) bool { return t.TokenID == gone })
			return fmt.Sprintf("2 hold it: %s; %s: +1", orderWords(a), orderWords(b))
		}},
		{"an order moved to another user", "I4 I5", func(w *world) string {
			o := &w.orders[2]
			was := o.UserID
			o.UserID = 999_999
			return fmt.Sprintf("user %d was answered %s with reservation %s, which must end as one order or one compensated rejection: its %s is another user's: -1",
				was, w.codeFor(o.ReservationID), o.ReservationID, orderWords(o))
		}},
		{"two orders of one user", "I2 I4 I5", func(w *world) string {
			a, b := &w.orders[2], &w.orders[4]
			b.UserID = a.UserID
			return fmt.Sprintf("user %d is promised at most one order and has 2: %s; %s: +1", a.UserID, orderWords(a), orderWords(b))
		}},
		{"a ledger row deleted", "I15", func(w *world) string {
			w.ledger = slices.Delete(w.ledger, w.sale(0), w.sale(0)+1)
			n := len(w.orders)
			return fmt.Sprintf("the ledger records %d sales, and there are %d orders: +1", n-1, n)
		}},
		{"a ledger row duplicated", "I15", func(w *world) string {
			w.ledger = append(w.ledger, w.ledger[w.sale(0)])
			n := len(w.orders)
			return fmt.Sprintf("the ledger records %d sales, and there are %d orders: -1", n+1, n)
		}},
		{"a rejection missing in the ledger", "I15", func(w *world) string {
			r := w.rejected()
			w.ledger = slices.DeleteFunc(w.ledger, func(l rundir.LedgerRow) bool { return l.ReservationID == r.ReservationID })
			return fmt.Sprintf("reservation %s (user %d, request %s) ended as %s and must have 1 rejections in the ledger, and has 0: -1",
				r.ReservationID, r.UserID, r.RequestID, r.Status)
		}},
		{"an accepted request removed from PostgreSQL", "I3 I4 I8 I10 I12 I15", func(w *world) string {
			o := w.orders[5]
			w.forget(o.ReservationID)
			for i := range w.tokens {
				if w.tokens[i].TokenID == o.InventoryTokenID {
					w.tokens[i].Status, w.tokens[i].OrderID, w.tokens[i].ReservationID = "AVAILABLE", nil, nil
				}
			}
			return fmt.Sprintf("reservation %s (user %d, request %s) must end in exactly one of ordered, compensated, set aside, and is in none of them: -1",
				o.ReservationID, o.UserID, o.RequestID)
		}},
		{"a unit too many in Redis", "I9 I10 I15", func(w *world) string {
			was := w.setStock(+1)
			return fmt.Sprintf("= %d, and is %d: +1", was, was+1)
		}},
		{"a unit too few in Redis", "I9 I10 I15", func(w *world) string {
			was := w.setStock(-1)
			return fmt.Sprintf("= %d, and is %d: -1", was, was-1)
		}},
		{"an answer's reservation changed", "I4 I6", func(w *world) string {
			a := w.answer(seckill.CodeQueued)
			a.Tag[15] ^= 1
			return fmt.Sprintf("request %d of user %d was answered QUEUED with reservation %s, and no store knows it: -1", a.N, a.Subject, named(a))
		}},
		{"a replay that names another reservation", "I6", func(w *world) string {
			a, b := w.replay()
			b.Tag = w.otherTag(a)
			return fmt.Sprintf("request id %s may lead to one reservation, and its answers name 2:", w.plan.Workload.RequestID(a.Ordinal))
		}},
		{"a conflict turned into an acceptance", "I6", func(w *world) string {
			a := w.answer(seckill.CodeIdempotencyConflict)
			r := w.byReq[a.Ordinal]
			tag, _ := seckill.ReservationTag([]byte(r.id))
			a.Code, a.Tag = uint8(seckill.CodeQueued), tag
			return fmt.Sprintf("request id %s belongs to reservation %s (user %d, request %s), and user %d, another user, was answered QUEUED for it instead of IDEMPOTENCY_CONFLICT",
				w.plan.Workload.RequestID(a.Ordinal), r.id, r.user, w.plan.Workload.RequestID(a.Ordinal), a.Subject)
		}},
		{"an acceptance turned into a conflict", "I6", func(w *world) string {
			_, a := w.replay()
			a.Code, a.Tag = uint8(seckill.CodeIdempotencyConflict), [16]byte{}
			return fmt.Sprintf("user %d was answered IDEMPOTENCY_CONFLICT for request id %s, which needs another user's reservation under it: its reservation is that user's",
				a.Subject, w.plan.Workload.RequestID(a.Ordinal))
		}},
		{"a conflict over a request id nobody holds", "I6", func(w *world) string {
			a := w.answer(seckill.CodeSoldOut)
			a.Code = uint8(seckill.CodeIdempotencyConflict)
			return fmt.Sprintf("user %d was answered IDEMPOTENCY_CONFLICT for request id %s, which needs another user's reservation under it: no reservation is stored under it",
				a.Subject, w.plan.Workload.RequestID(a.Ordinal))
		}},
		{"SOLD_OUT after QUEUED", "I6", func(w *world) string {
			a, b := w.replay()
			b.Code, b.Tag = uint8(seckill.CodeSoldOut), [16]byte{}
			b.Sent, b.Done = a.Done+1_000_000, a.Done+800_000_000
			return fmt.Sprintf("user %d was answered %s for request id %s at %s, and SOLD_OUT for the same request sent 1.000 ms later",
				a.Subject, codeOf(a), w.plan.Workload.RequestID(a.Ordinal), clock(a.Done))
		}},
		{"a duplicate user without a reservation", "I6", func(w *world) string {
			a := w.answer(seckill.CodeSoldOut)
			a.Code, a.Tag = uint8(seckill.CodeDuplicateUser), w.otherTag(a)
			return fmt.Sprintf("user %d was answered DUPLICATE_USER with %q, and holds no reservation", a.Subject, named(a))
		}},
		{"a duplicate user told of another's reservation", "I6", func(w *world) string {
			a := w.answer(seckill.CodeDuplicateUser)
			a.Tag = w.otherTag(a)
			return fmt.Sprintf("user %d was answered DUPLICATE_USER with %q, and the user's reservation is %s", a.Subject, named(a), w.byUser[int64(a.Subject)].id)
		}},
		{"a refusal that reserved", "I6", func(w *world) string {
			r := w.lonely()
			a := w.recordOf(r)
			a.Code, a.Tag, a.Done = uint8(seckill.CodeSoldOut), [16]byte{}, a.Done+int64(1e9)
			return fmt.Sprintf("user %d was only ever answered SOLD_OUT for request id %s, which promises that nothing was changed, and it made reservation %s",
				r.user, w.plan.Workload.RequestID(r.ordinal), r.id)
		}},
		{"a request record that leads elsewhere", "I6", func(w *world) string {
			k := w.key("req:" + w.plan.Workload.RequestID(w.held[0].ordinal))
			k.Hash["reservation_id"] = w.held[1].id
			return fmt.Sprintf("must lead to reservation %s of user %d again, and its record in Redis leads to %q", w.held[0].id, w.held[0].user, w.held[1].id)
		}},
		{"a user mark lost", "I2", func(w *world) string {
			r := w.held[0]
			w.key(fmt.Sprintf("user:%d", r.user)).String = ""
			return fmt.Sprintf("user %d holds reservation %s, and the user's mark in Redis says \"\"", r.user, r.id)
		}},
		{"two reservations of one user", "I2 I6", func(w *world) string {
			a, b := w.held[0], w.held[1]
			w.key("resv:" + b.id).Hash["user_id"] = fmt.Sprint(a.user)
			return fmt.Sprintf("user %d may hold one reservation for the activity's life and has 2:", a.user)
		}},
		{"a compensation made twice", "I9", func(w *world) string {
			r := w.rejected()
			for _, ev := range w.outbox {
				if ev.AggregateID == r.ReservationID {
					w.outbox = append(w.outbox, ev)
					break
				}
			}
			return fmt.Sprintf("ended as %s and must be compensated 1 times by PostgreSQL, and was 2 times: +1", r.Status)
		}},
		{"a compensation applied twice in Redis", "I9 I15", func(w *world) string {
			r := w.rejected()
			w.stock++
			for _, e := range w.log {
				if e.Op == "return" && e.Reservations[0] == r.ReservationID {
					e.Stock = w.stock
					w.log = append(w.log, e)
					break
				}
			}
			w.setStock(+1)
			return fmt.Sprintf("the unit of reservation %s (user %d, request %s) must have returned 1 times by the change log, and did 2 times: +1", r.ReservationID, r.UserID, r.RequestID)
		}},
		{"a compensation never applied in Redis", "I9 I4 I10 I15", func(w *world) string {
			r := w.rejected()
			h := w.key("resv:" + r.ReservationID).Hash
			delete(h, "compensated_at")
			delete(h, "returned")
			w.setStock(-1)
			return fmt.Sprintf("ended as %s and must be compensated once, and Redis never did: -1", r.Status)
		}},
		{"a phantom unit returned", "I9 I13", func(w *world) string {
			r := w.rejected()
			for i := range w.reservations {
				if w.reservations[i].ReservationID == r.ReservationID {
					w.reservations[i].Status = "REJECTED_NO_FINAL_STOCK"
				}
			}
			w.key("resv:" + r.ReservationID).Hash["status"] = "REJECTED_NO_FINAL_STOCK"
			return "ended as REJECTED_NO_FINAL_STOCK, whose unit returns: false; PostgreSQL recorded true"
		}},
		{"an order compensated", "I3 I9", func(w *world) string {
			o := w.orders[0]
			ev := seckill.Event{SchemaVersion: 1, EventType: seckill.EventCompensate, OperationID: seckill.OperationIDOf(o.ReservationID),
				ReservationID: o.ReservationID, ActivityID: activityID, SKUID: skuID, UserID: o.UserID, Status: seckill.StatusRejectedLate, ReturnStock: true}
			payload, _ := json.Marshal(ev)
			w.outbox = append(w.outbox, rundir.OutboxRow{EventType: ev.EventType, AggregateID: o.ReservationID, Payload: payload, PublishedAt: w.outbox[0].PublishedAt})
			return "must end in exactly one of ordered, compensated, set aside, and is in ordered and in compensated: +1"
		}},
		{"an order nobody asked for", "I1 I3 I5 I15", func(w *world) string {
			w.items = append(w.items, rundir.OrderItemRow{OrderID: "ord_X", LineNo: 1, SKUID: skuID, Quantity: 1})
			w.orders = append(w.orders, rundir.OrderRow{OrderID: "ord_X", ActivityID: activityID, SKUID: skuID, UserID: 5, RequestID: "r1-1",
				ReservationID: "resv_X", InventoryTokenID: 4, Status: "CREATED"})
			return "order ord_X (user 5, request r1-1, CREATED) was promised a unit, and token 4 does not exist: +1 order without a unit"
		}},
		{"an order for a request that was never sent", "I5", func(w *world) string {
			o := w.orders[0]
			for i := range w.records {
				if r := &w.records[i]; r.Ordinal == w.byUser[o.UserID].ordinal {
					r.Outcome, r.Sent, r.Done, r.Code, r.Tag = history.Dropped, history.Never, history.Never, 0, [16]byte{}
				}
			}
			for i := range w.records {
				if r := &w.records[i]; int64(r.Subject) == o.UserID && codeOf(r) == seckill.CodeDuplicateUser {
					r.Code, r.Tag = uint8(seckill.CodeUnavailable), [16]byte{}
				}
			}
			return fmt.Sprintf("%s must trace to a request, and user %d never sent request id %s: +1 phantom order", orderWords(&o), o.UserID, o.RequestID)
		}},
		{"an order of a message that came too late", "I5", func(w *world) string {
			o := w.orders[0]
			for i := range w.inbox {
				if row := &w.inbox[i]; row.ReservationID == o.ReservationID && row.ConsumerGroup == seckill.GroupOrder {
					for _, r := range w.reservations {
						if r.ReservationID == o.ReservationID {
							row.ReceivedAt = r.ReservedAt.Add(time.Minute + 3*time.Second)
						}
					}
				}
			}
			return fmt.Sprintf("no longer held when its message was taken in, %s late, and became %s: +1 late order", clock(int64(3*time.Second)), orderWords(&o))
		}},
		{"a second message id for a reservation", "I7", func(w *world) string {
			m := w.messages[0]
			first := seckill.MessageIDOf(m.Keys)
			m.Body = json.RawMessage(strings.Replace(string(m.Body), first, first[:len(first)-2]+"00", 1))
			m.Offset = int64(len(w.messages))
			w.messages = append(w.messages, m)
			w.offsets[0].Max, w.offsets[0].Consumed = w.offsets[0].Max+1, w.offsets[0].Max+1
			return fmt.Sprintf("reservation %s may have one message id, and its", m.Keys)
		}},
		{"an inbox row missing", "I7", func(w *world) string {
			id := w.inbox[2].ReservationID
			w.inbox = slices.Delete(w.inbox, 2, 3)
			return fmt.Sprintf("reservation %s was decided (%s) and must have one inbox row, and has 0: none: -1", id, w.statusOf(id))
		}},
		{"an inbox row twice", "I7", func(w *world) string {
			in := w.inbox[2]
			in.MessageID = "msg_other"
			w.inbox = append(w.inbox, in)
			return fmt.Sprintf("and must have one inbox row, and has 2: %s, msg_other: +1", w.inbox[2].MessageID)
		}},
		{"a token row removed", "I1 I3 I15", func(w *world) string {
			o := w.orders[0]
			w.tokens = slices.DeleteFunc(w.tokens, func(t rundir.TokenRow) bool { return t.TokenID == o.InventoryTokenID })
			return fmt.Sprintf("%s was promised a unit, and token %d does not exist: +1 order without a unit", orderWords(&o), o.InventoryTokenID)
		}},
		{"an order without items", "I3", func(w *world) string {
			o := w.orders[0]
			w.items = slices.DeleteFunc(w.items, func(i rundir.OrderItemRow) bool { return i.OrderID == o.OrderID })
			return fmt.Sprintf("%s must be for one unit, and its items are 0: -1", orderWords(&o))
		}},
		{"an order for two units", "I3", func(w *world) string {
			w.items[0].Quantity = 2
			return "must be for one unit, and its items are 2: +1"
		}},
		{"a reservation decided twice", "I3", func(w *world) string {
			w.reservations = append(w.reservations, w.reservations[0])
			return fmt.Sprintf("reservation %s (user %d, request %s) may be decided once, and PostgreSQL decided it 2 times: +1",
				w.reservations[0].ReservationID, w.reservations[0].UserID, w.reservations[0].RequestID)
		}},
		{"another total of the SKU", "I15", func(w *world) string {
			w.skus[0].TotalStock++
			return "a stock of 40 was planned, and the SKU's total is 41: +1"
		}},
		{"a free token marked claimed", "I3 I1 I15", func(w *world) string {
			for i := range w.tokens {
				if w.tokens[i].Status == "AVAILABLE" {
					w.tokens[i].Status = "CLAIMED"
					return fmt.Sprintf("token %d must be in exactly one place and is in 0: none (no valid order holds it, and it is not free): -1", w.tokens[i].TokenID)
				}
			}
			panic("no free token")
		}},
		{"a claimed token marked free", "I1 I3 I10 I15", func(w *world) string {
			for i := range w.tokens {
				if t := &w.tokens[i]; t.Status == "CLAIMED" {
					t.Status = "AVAILABLE"
					return fmt.Sprintf("and its token %d is AVAILABLE: +1 order without a unit", t.TokenID)
				}
			}
			panic("no claimed token")
		}},
		{"stock below nothing in the change log", "I1 I10", func(w *world) string {
			e := &w.log[len(w.log)/2]
			e.Stock = -1
			return fmt.Sprintf("change log entry %s (%s) left -1: -1", e.ID, e.Op)
		}},
		{"SOLD_OUT while units were left", "I10", func(w *world) string {
			a := w.lateFresh()
			a.Sent, a.Done = 1000, 2000
			return fmt.Sprintf("user %d was answered SOLD_OUT at 0.002 ms for request %d sent at 0.001 ms, and the stock came to nothing only", a.Subject, a.N)
		}},
		{"an answer without a reservation", "I4", func(w *world) string {
			a := w.answer(seckill.CodeQueued)
			a.Tag = [16]byte{}
			return fmt.Sprintf("request %d was answered QUEUED without a reservation: nothing stands behind it: -1", a.N)
		}},
		{"the query shows another end", "I4", func(w *world) string {
			o := w.orders[1]
			w.key("resv:" + o.ReservationID).Hash["status"] = "MESSAGE_SENT"
			return fmt.Sprintf("user %d's reservation %s ended as ORDER_CREATED %s, and the query shows MESSAGE_SENT order %s", o.UserID, o.ReservationID, o.OrderID, o.OrderID)
		}},
		{"not quiescent at the limit", "I14", func(w *world) string {
			w.snapshot.Quiescent, w.snapshot.WaitedMS, w.snapshot.Lag, w.snapshot.Overdue = false, 30_100, 7, 2
			return "nothing may be pending 30000 ms after the last answer, and after 30100 ms there were 0 reservations pending, 7 messages not consumed, 0 events not published, 2 orders overdue"
		}},
		{"quiescent in words only", "I14", func(w *world) string {
			w.offsets[0].Consumed -= 2
			return "the snapshot was taken as quiescent, and in it are 0 reservations pending, 2 messages not consumed, 0 events not published: +2"
		}},
	}
}
