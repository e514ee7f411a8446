package verify

// oversell is I1: nobody is sold a unit that is not there, and no unit is
// sold twice. Per SKU, by token id: every taken token (CLAIMED or SOLD) has
// exactly one valid order, which names it; every valid order has its token;
// no more are taken than were issued. And by the change log: Redis stock was
// never negative, and live reservations never exceeded the stock.
var oversell = check{id: "I1", name: "no oversell",
	needs: []source{fromPlan, fromTokens, fromOrders, fromLog}, run: judgeOversell}

func judgeOversell(e *evidence, f *finding) {
	for _, s := range e.sales {
		e.oversold += s.oversold()
		taken, valids := int64(0), int64(0)
		// Units sold twice first: they are what the invariant is named for, and
		// the orders missing beside them must not hide them.
		for _, twice := range []bool{true, false} {
			for _, t := range s.tokens {
				if tokenTaken(t) && (len(s.validOrdersOf(t.TokenID)) > 1) == twice {
					taken++
					f.moment(e.ofReservation(s.byID[deref(t.ReservationID)]))
					s.judgeTaken(t, f)
				}
			}
		}
		for _, o := range s.orders {
			if !valid(o) {
				continue
			}
			valids++
			f.check(1)
			f.moment(e.ofOrder(o))
			if t := s.tokenByID[o.InventoryTokenID]; t == nil {
				f.violate("%s: %s was promised a unit, and token %d does not exist: +1 order without a unit",
					s.key(), orderWords(o), o.InventoryTokenID)
			} else if !tokenTaken(t) {
				f.violate("%s: %s was promised a unit, and its token %d is %s: +1 order without a unit",
					s.key(), orderWords(o), o.InventoryTokenID, t.Status)
			}
		}
		f.timeless()
		if taken > s.plan.Tokens {
			f.violate("%s: %d units were issued, and %d tokens are taken: %+d", s.key(), s.plan.Tokens, taken, taken-s.plan.Tokens)
		}
		if valids > s.plan.Tokens {
			f.violate("%s: %d units were issued, and %d orders are valid: %+d", s.key(), s.plan.Tokens, valids, valids-s.plan.Tokens)
		}
		s.judgeLiveReservations(e, f)
	}
}

// oversold counts the valid orders without a unit of their own: of a unit sold
// more than once all but one, those whose unit does not exist or was not
// taken, and those beyond the units issued. An order that is missing beside
// them hides none, as a difference of sums would.
func (s *sale) oversold() int64 {
	valids, units := int64(0), map[int64]struct{}{}
	for _, o := range s.orders {
		if !valid(o) {
			continue
		}
		valids++
		if t := s.tokenByID[o.InventoryTokenID]; t != nil && tokenTaken(t) {
			units[t.TokenID] = struct{}{}
		}
	}
	return valids - min(int64(len(units)), s.plan.Tokens)
}

// judgeTaken holds one taken token against the orders that name it.
func (s *sale) judgeTaken(t *tokenRow, f *finding) {
	f.check(1)
	holders := s.validOrdersOf(t.TokenID)
	if len(holders) != 1 {
		f.violate("%s: token %d is %s and promised to exactly one valid order, %d hold it: %s: %+d",
			s.key(), t.TokenID, t.Status, len(holders), orderList(holders), len(holders)-1)
		return
	}
	if o := holders[0]; deref(t.OrderID) != o.OrderID || deref(t.ReservationID) != o.ReservationID {
		f.violate("%s: token %d says it is held by order %s of reservation %s, and the order that holds it is %s of reservation %s",
			s.key(), t.TokenID, deref(t.OrderID), deref(t.ReservationID), orderWords(o), o.ReservationID)
	}
}

// judgeLiveReservations replays the change log. Where Redis may lose writes,
// what it lost is in no log, and how many were live is not known; orders and
// tokens are, above.
func (s *sale) judgeLiveReservations(e *evidence, f *finding) {
	live := int64(0)
	for i := range s.log {
		entry := &s.log[i]
		f.check(1)
		if e.answers != nil {
			f.moment(when{e.sinceStart(entry.AtUS), true})
		}
		switch entry.Op {
		case logReserve:
			live += int64(len(entry.Reservations))
		case logReturn:
			live -= int64(len(entry.Reservations))
		}
		if entry.Stock < 0 {
			f.violate("%s: Redis stock must never be negative, and change log entry %s (%s) left %d: %+d",
				s.key(), entry.ID, entry.Op, entry.Stock, entry.Stock)
		}
		if live > s.plan.Stock && !e.redisMayLose() {
			f.violate("%s: at most %d reservations may be live, and after change log entry %s there were %d: %+d",
				s.key(), s.plan.Stock, entry.ID, live, live-s.plan.Stock)
		}
	}
}
