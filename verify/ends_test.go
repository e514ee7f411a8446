package verify

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// endedWorld is a sale in which orders were paid, cancelled and expired.
func endedWorld(resell bool) *world {
	return simulate(options{seed: 23, stock: 40, requests: 1200, repeat: 100, sameUser: 40, ends: true, resell: resell, step: 300_000})
}

func TestTheWorldOfEndsHoldsThemAll(t *testing.T) {
	for _, resell := range []bool{false, true} {
		w := endedWorld(resell)
		seen := map[string]int{}
		sold := map[int64]int{}
		for _, o := range w.orders {
			seen[o.Status]++
			sold[o.InventoryTokenID]++
		}
		for _, status := range []string{"CREATED", "PAID", "CANCELLED", "EXPIRED"} {
			if seen[status] < 3 {
				t.Errorf("resell %t: %d orders are %s", resell, seen[status], status)
			}
		}
		resold := 0
		for _, n := range sold {
			if n > 1 {
				resold++
			}
		}
		if resold > 0 != resell {
			t.Errorf("resell %t: %d tokens were sold again", resell, resold)
		}
	}
}

func (w *world) orderThatIs(status string) *rundir.OrderRow {
	for i := range w.orders {
		if w.orders[i].Status == status {
			return &w.orders[i]
		}
	}
	panic("no order is " + status)
}

func (w *world) token(id int64) *rundir.TokenRow {
	return &w.tokens[slices.IndexFunc(w.tokens, func(t rundir.TokenRow) bool { return t.TokenID == id })]
}

func (w *world) entryOf(o *rundir.OrderRow, entry string) *rundir.LedgerRow {
	return &w.ledger[slices.IndexFunc(w.ledger, func(l rundir.LedgerRow) bool { return l.EntryType == entry && deref(l.OrderID) == o.OrderID })]
}

func (w *world) reservationOf(o *rundir.OrderRow) *rundir.ReservationRow {
	return &w.reservations[slices.IndexFunc(w.reservations, func(r rundir.ReservationRow) bool { return r.ReservationID == o.ReservationID })]
}

// endLies are told of a sale under each policy unless they say which.
func endLies() []lie {
	return []lie{
		{"a paid order's token is only claimed", "I3 I15", func(w *world) string {
			o := w.orderThatIs("PAID")
			w.token(o.InventoryTokenID).Status = "CLAIMED"
			return fmt.Sprintf("token %d must be in exactly one place and is in 2: CLAIMED by its row; held by %s: +1", o.InventoryTokenID, orderWords(o))
		}},
		{"a payment without its ledger entry", "I15", func(w *world) string {
			o := w.orderThatIs("PAID")
			w.ledger = slices.DeleteFunc(w.ledger, func(l rundir.LedgerRow) bool { return l.EntryType == "PAY" && deref(l.OrderID) == o.OrderID })
			return fmt.Sprintf("%s must have PAY in the ledger, and has 0: []", orderWords(o))
		}},
		{"a payment entered twice", "I15", func(w *world) string {
			o := w.orderThatIs("PAID")
			w.ledger = append(w.ledger, *w.entryOf(o, "PAY"))
			return fmt.Sprintf("%s must have PAY in the ledger, and has 2: [PAY PAY]", orderWords(o))
		}},
		{"an order paid and cancelled", "I15", func(w *world) string {
			o := w.orderThatIs("PAID")
			entry := *w.entryOf(o, "PAY")
			entry.EntryType = "CANCEL"
			w.ledger = append(w.ledger, entry)
			return fmt.Sprintf("%s must have PAY in the ledger, and has 2: [PAY CANCEL]", orderWords(o))
		}},
		{"a cancelled order that the ledger never ended", "I15", func(w *world) string {
			o := w.orderThatIs("CANCELLED")
			w.ledger = slices.DeleteFunc(w.ledger, func(l rundir.LedgerRow) bool { return l.EntryType == "CANCEL" && deref(l.OrderID) == o.OrderID })
			return fmt.Sprintf("%s must have CANCEL in the ledger, and has 0: []", orderWords(o))
		}},
		{"an expiry recorded as a cancellation", "I15", func(w *world) string {
			o := w.orderThatIs("EXPIRED")
			w.entryOf(o, "EXPIRE").EntryType = "CANCEL"
			return fmt.Sprintf("%s must have EXPIRE in the ledger, and has 1: [CANCEL]", orderWords(o))
		}},
		{"an end of an order that is still open", "I15", func(w *world) string {
			o := w.orderThatIs("CREATED")
			entry := *w.entryOf(o, "SALE")
			entry.EntryType, entry.Delta = "EXPIRE", 0
			w.ledger = append(w.ledger, entry)
			return fmt.Sprintf("%s must have no end in the ledger, and has 1: [EXPIRE]", orderWords(o))
		}},
		{"an expired order back to life", "I1 I3 I15", func(w *world) string {
			o := w.orderThatIs("EXPIRED")
			o.Status = "CREATED"
			return orderWords(o) + " was promised a unit, and its token"
		}},
		{"a cancelled order called expired", "I3 I15", func(w *world) string {
			o := w.orderThatIs("CANCELLED")
			o.Status = "EXPIRED"
			return orderWords(o) + " ended its reservation as EXPIRED, and PostgreSQL says CANCELLED"
		}},
		{"an expiry without its compensation", "I9 I3", func(w *world) string {
			o := w.orderThatIs("EXPIRED")
			w.outbox = slices.DeleteFunc(w.outbox, func(e rundir.OutboxRow) bool {
				return e.AggregateID == o.ReservationID && e.EventType == seckill.EventCompensate
			})
			return "ended as EXPIRED and must be compensated 1 times by PostgreSQL, and was 0 times: -1"
		}},
		{"an expired order that was never announced", "I9", func(w *world) string {
			o := w.orderThatIs("EXPIRED")
			w.outbox = slices.DeleteFunc(w.outbox, func(e rundir.OutboxRow) bool {
				return e.AggregateID == o.ReservationID && e.EventType == seckill.EventOrderCreated
			})
			return "ended as EXPIRED, and PostgreSQL made 0 ORDER_CREATED events for it"
		}},
		{"a payment compensated", "I3 I9", func(w *world) string {
			o := w.orderThatIs("PAID")
			payload, _ := json.Marshal(seckill.Event{SchemaVersion: 1, EventType: seckill.EventCompensate, OperationID: seckill.OperationIDOf(o.ReservationID),
				ReservationID: o.ReservationID, ActivityID: activityID, SKUID: skuID, UserID: o.UserID, OrderID: o.OrderID, Status: seckill.StatusExpired})
			w.outbox = append(w.outbox, rundir.OutboxRow{EventType: seckill.EventCompensate, AggregateID: o.ReservationID, Payload: payload, PublishedAt: w.outbox[0].PublishedAt})
			return "must end in exactly one of ordered, compensated, set aside, and is in ordered and in compensated: +1"
		}},
		{"the query still shows the order of an expired one", "I4", func(w *world) string {
			for i := range w.orders {
				if o := &w.orders[i]; o.Status == "EXPIRED" && w.codeFor(o.ReservationID).Accepted() {
					w.key("resv:" + o.ReservationID).Hash["status"] = "ORDER_CREATED"
					return fmt.Sprintf("user %d's reservation %s ended as EXPIRED %s, and the query shows ORDER_CREATED", o.UserID, o.ReservationID, o.OrderID)
				}
			}
			panic("none")
		}},
	}
}

// policyLies are those about what becomes of the unit.
func policyLies(resell bool) []lie {
	if resell {
		return []lie{
			{"a returned unit kept back from Redis", "I9 I10 I15", func(w *world) string {
				was := w.setStock(-1)
				return fmt.Sprintf("= %d, and is %d: -1", was, was-1)
			}},
			{"a unit to be sold again was retired", "I15", func(w *world) string {
				for i := range w.tokens {
					if w.tokens[i].Status == "AVAILABLE" {
						w.tokens[i].Status = "RELEASED"
						return fmt.Sprintf("token %d is RELEASED, and by the ledger it is AVAILABLE: ", w.tokens[i].TokenID)
					}
				}
				panic("no free token")
			}},
			{"an expiry that returned no unit", "I9 I15", func(w *world) string {
				o := w.orderThatIs("EXPIRED")
				w.reservationOf(o).ReturnStock = false
				return "ended as EXPIRED, whose unit returns: true; PostgreSQL recorded false"
			}},
			{"a token returned and its unit not", "I15", func(w *world) string {
				o := w.orderThatIs("CANCELLED")
				w.entryOf(o, "CANCEL").RedisReturn = 0
				return fmt.Sprintf("the ledger's CANCEL of %s must be of token %d and return the unit to both stores or neither, and is of token %d with +1 tokens and 0 units of Redis",
					orderWords(o), o.InventoryTokenID, o.InventoryTokenID)
			}},
		}
	}
	return []lie{
		{"a retired unit sold again", "I15 I10", func(w *world) string {
			o := w.orderThatIs("CANCELLED")
			w.token(o.InventoryTokenID).Status = "AVAILABLE"
			return fmt.Sprintf("token %d is AVAILABLE, and by the ledger it is RELEASED: retired by the CANCEL of order %s", o.InventoryTokenID, o.OrderID)
		}},
		{"an expiry that returned its unit", "I9 I15", func(w *world) string {
			o := w.orderThatIs("EXPIRED")
			w.reservationOf(o).ReturnStock = true
			return "ended as EXPIRED, whose unit returns: false; PostgreSQL recorded true"
		}},
	}
}

func TestEveryLieAboutAnOrdersEndIsFound(t *testing.T) {
	for _, resell := range []bool{false, true} {
		for _, l := range append(endLies(), policyLies(resell)...) {
			t.Run(fmt.Sprintf("resell %t: %s", resell, l.name), func(t *testing.T) {
				t.Parallel()
				l.mustBeFound(t, endedWorld(resell))
			})
		}
	}
}
