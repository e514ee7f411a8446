package verify

import (
	"fmt"
	"slices"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// ledgerAgrees is I15: the insert-only ledger, replayed, gives the token
// states, the orders and how each ended, the SKU's total and, at quiescence,
// Redis' stock, exactly:
// stock = issued - (sales + rejections) + returned.
var ledgerAgrees = check{id: "I15", name: "ledger agrees",
	needs: []source{fromPlan, fromSnapshot, fromKeys, fromSKUs, fromTokens, fromOrders, fromReservations, fromLedger}, run: judgeLedgerAgrees}

// replay is what the ledger adds up to.
type replay struct {
	issued, sales, rejects, returned int64
	saleOf                           map[int64][]*rundir.LedgerRow // by token
	closingOf                        map[string]*rundir.LedgerRow  // by order
}

func judgeLedgerAgrees(e *evidence, f *finding) {
	for _, s := range e.sales {
		p := s.replay(f)
		s.judgeIssue(p, f)
		s.judgeTokens(p, f)
		s.judgeSales(e, f)
		if e.quiescent() && !e.redisMayLose() {
			s.judgeStock(p, f)
		}
	}
}

func (s *sale) replay(f *finding) *replay {
	p := &replay{saleOf: map[int64][]*rundir.LedgerRow{}, closingOf: map[string]*rundir.LedgerRow{}}
	for _, l := range s.ledger {
		f.check(1)
		p.returned += l.RedisReturn
		switch l.EntryType {
		case entryIssue:
			p.issued += l.Delta
		case entrySale:
			p.sales++
			p.saleOf[deref(l.TokenID)] = append(p.saleOf[deref(l.TokenID)], l)
		case entryReject:
			p.rejects++
		case entryPay, entryCancel, entryExpire:
			p.closingOf[deref(l.OrderID)] = l
		default:
			f.violate("%s: ledger entry %d has type %q, which this build cannot replay", s.key(), l.LedgerID, l.EntryType)
		}
	}
	return p
}

// judgeIssue: what was issued is what was planned, and each sale is an order.
func (s *sale) judgeIssue(p *replay, f *finding) {
	if p.issued != s.plan.Tokens {
		f.violate("%s: %d units were planned, and the ledger issues %d: %+d", s.key(), s.plan.Tokens, p.issued, p.issued-s.plan.Tokens)
	}
	if len(s.skus) != 1 {
		f.violate("%s: the SKU must have one row of totals, and has %d: %+d", s.key(), len(s.skus), len(s.skus)-1)
	} else if total := s.skus[0].TotalStock; total != s.plan.Stock { // of which fewer may have been issued
		f.violate("%s: a stock of %d was planned, and the SKU's total is %d: %+d", s.key(), s.plan.Stock, total, total-s.plan.Stock)
	}
	if orders := int64(len(s.orders)); orders != p.sales {
		f.violate("%s: the ledger records %d sales, and there are %d orders: %+d", s.key(), p.sales, orders, orders-p.sales)
	}
}

// judgeTokens: a token's row follows from the sales of it.
func (s *sale) judgeTokens(p *replay, f *finding) {
	for _, t := range s.tokens {
		sales := p.saleOf[t.TokenID]
		switch {
		case tokenTaken(t) && !slices.ContainsFunc(sales, func(l *rundir.LedgerRow) bool { return deref(l.OrderID) == deref(t.OrderID) }):
			f.violate("%s: token %d is %s by order %s, and the ledger has no such sale", s.key(), t.TokenID, t.Status, deref(t.OrderID))
		case len(sales) > 1 && !s.plan.Resell:
			f.violate("%s: token %d can be sold once, and the ledger sells it %d times: %+d", s.key(), t.TokenID, len(sales), len(sales)-1)
		default:
			if status, why := p.token(sales); t.Status != string(status) {
				f.violate("%s: token %d is %s, and by the ledger it is %s: %s", s.key(), t.TokenID, t.Status, status, why)
			}
		}
	}
	for _, token := range sortedKeys(p.saleOf) {
		if s.tokenByID[token] == nil {
			f.violate("%s: the ledger sold token %d to order %s, and there is no such token", s.key(), token, deref(p.saleOf[token][0].OrderID))
		}
	}
}

// token is where the ledger leaves a token with these sales.
func (p *replay) token(sales []*rundir.LedgerRow) (status seckill.TokenStatus, why string) {
	status, why = seckill.TokenAvailable, "never sold"
	for _, sale := range sales {
		order := deref(sale.OrderID)
		switch closing := p.closingOf[order]; {
		case closing == nil:
			return seckill.TokenClaimed, "sold to order " + order
		case closing.EntryType == entryPay:
			return seckill.TokenSold, "paid by order " + order
		case closing.Delta == 0:
			status, why = seckill.TokenReleased, fmt.Sprintf("retired by the %s of order %s", closing.EntryType, order)
		default:
			why = fmt.Sprintf("returned by the %s of order %s", closing.EntryType, order)
		}
	}
	return status, why
}

// closingEntry is the ledger's name for how an order ended, "" while it has
// not.
func closingEntry(o *rundir.OrderRow) string {
	switch seckill.OrderStatus(o.Status) {
	case seckill.OrderPaid:
		return entryPay
	case seckill.OrderCancelled:
		return entryCancel
	case seckill.OrderExpired:
		return entryExpire
	}
	return ""
}

// judgeClosing: an order has the one ledger entry of its end, or none.
func (s *sale) judgeClosing(r *reservation, o *rundir.OrderRow, f *finding) {
	want := closingEntry(o)
	var found []*rundir.LedgerRow
	for _, l := range r.closings {
		if deref(l.OrderID) == o.OrderID {
			found = append(found, l)
		}
	}
	switch {
	case want == "" && len(found) == 0:
	case want == "" || len(found) != 1 || found[0].EntryType != want:
		var types []string
		for _, l := range found {
			types = append(types, l.EntryType)
		}
		if want == "" {
			want = "no end"
		}
		f.violate("%s: %s must have %s in the ledger, and has %d: %v", s.key(), orderWords(o), want, len(found), types)
	case deref(found[0].TokenID) != o.InventoryTokenID || found[0].Delta != found[0].RedisReturn:
		f.violate("%s: the ledger's %s of %s must be of token %d and return the unit to both stores or neither, and is of token %d with %+d tokens and %d units of Redis",
			s.key(), want, orderWords(o), o.InventoryTokenID, deref(found[0].TokenID), found[0].Delta, found[0].RedisReturn)
	case want != entryPay && r.row != nil && (found[0].RedisReturn == 1) != r.row.ReturnStock:
		f.violate("%s: reservation %s ended as %s with return %t, and the ledger returns %d", s.key(), r, r.status(), r.row.ReturnStock, found[0].RedisReturn)
	}
}

// judgeSales: each order has one sale of its token and the entry of its end,
// each rejection one entry.
func (s *sale) judgeSales(e *evidence, f *finding) {
	defer f.timeless()
	for _, r := range s.reservations {
		f.moment(e.ofReservation(r))
		if len(r.orders) == 0 && len(r.sales) > 0 {
			f.violate("%s: the ledger sold token %d to order %s of reservation %s, and there is no such order: %+d",
				s.key(), deref(r.sales[0].TokenID), deref(r.sales[0].OrderID), r, -len(r.sales))
		}
		if len(r.orders) == 0 && len(r.closings) > 0 {
			f.violate("%s: the ledger has %s of order %s of reservation %s, and there is no such order",
				s.key(), r.closings[0].EntryType, deref(r.closings[0].OrderID), r)
		}
		for _, o := range r.orders {
			s.judgeClosing(r, o, f)
			switch {
			case len(r.sales) != 1:
				f.violate("%s: %s must have one sale in the ledger, and has %d: %+d", s.key(), orderWords(o), len(r.sales), len(r.sales)-1)
			case deref(r.sales[0].OrderID) != o.OrderID || deref(r.sales[0].TokenID) != o.InventoryTokenID:
				f.violate("%s: %s holds token %d, and the ledger sold token %d to order %s for its reservation",
					s.key(), orderWords(o), o.InventoryTokenID, deref(r.sales[0].TokenID), deref(r.sales[0].OrderID))
			}
		}
		want := 0
		if status := r.status(); status.Rejected() || status == seckill.StatusSetAside {
			want = 1
		}
		if n := len(r.rejects); n != want {
			f.violate("%s: reservation %s ended as %s and must have %d rejections in the ledger, and has %d: %+d",
				s.key(), r, statusWords(r.status()), want, n, n-want)
		} else if want == 1 && (r.rejects[0].RedisReturn == 1) != r.row.ReturnStock {
			f.violate("%s: reservation %s ended as %s with return %t, and the ledger returns %d", s.key(), r, r.status(), r.row.ReturnStock, r.rejects[0].RedisReturn)
		}
	}
}

func (s *sale) judgeStock(p *replay, f *finding) {
	initial := p.issued + s.plan.Stock - s.plan.Tokens
	want := initial - p.sales - p.rejects + p.returned
	if s.stock == nil {
		f.violate("%s: the ledger gives a Redis stock of %d, and the key is missing or no number", s.key(), want)
	} else if *s.stock != want {
		f.violate("%s: the ledger gives a Redis stock of %d (%d - %d sales - %d rejections + %d returned), and it is %d: %+d",
			s.key(), want, initial, p.sales, p.rejects, p.returned, *s.stock, *s.stock-want)
	}
}
