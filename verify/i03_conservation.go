package verify

import (
	"fmt"
	"strings"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// conservation is I3: every unit, by token id, is in exactly one place: free,
// claimed by exactly one live order, sold, or released; and as many units
// exist as were issued. At quiescence every reservation is in exactly one:
// ordered, compensated, or set aside, once; each order is for one unit, and
// ended as its reservation did.
// Sums alone do not count: one unit too many and another missing are two
// violations, not none.
var conservation = check{id: "I3", name: "conservation",
	needs: []source{fromPlan, fromSnapshot, fromTokens, fromOrders, fromItems, fromReservations, fromOutbox}, run: judgeConservation}

func judgeConservation(e *evidence, f *finding) {
	for _, s := range e.sales {
		misplaced := s.judgeUnits(f)
		e.conservationDelta += misplaced
		if e.quiescent() {
			s.judgeEnds(e, f)
		}
	}
}

// judgeUnits returns how many units are not in exactly one place.
func (s *sale) judgeUnits(f *finding) (misplaced int64) {
	seen := map[int64]int{}
	for _, t := range s.tokens {
		f.check(1)
		seen[t.TokenID]++
		if seen[t.TokenID] > 1 {
			misplaced++
			f.violate("%s: a token id names one unit, and token %d has %d rows: +1", s.key(), t.TokenID, seen[t.TokenID])
			continue
		}
		if places := s.placesOf(t); len(places) != 1 {
			misplaced++
			f.violate("%s: token %d must be in exactly one place and is in %d: %s: %+d",
				s.key(), t.TokenID, len(places), placeWords(places), len(places)-1)
		}
	}
	for _, o := range s.orders {
		if n := s.units[o.OrderID]; n != 1 {
			f.violate("%s: %s must be for one unit, and its items are %d: %+d", s.key(), orderWords(o), n, n-1)
		}
		if valid(o) && s.tokenByID[o.InventoryTokenID] == nil {
			f.violate("%s: %s holds token %d, which does not exist: the unit is nowhere", s.key(), orderWords(o), o.InventoryTokenID)
		}
	}
	if delta := int64(len(seen)) - s.plan.Tokens; delta != 0 {
		misplaced += max(delta, -delta)
		f.violate("%s: %d units were issued, and %d exist: %+d", s.key(), s.plan.Tokens, len(seen), delta)
	}
	return misplaced
}

// placesOf lists where the unit is.
func (s *sale) placesOf(t *tokenRow) []string {
	var places []string
	status := seckill.TokenStatus(t.Status)
	switch status {
	case seckill.TokenAvailable:
		places = append(places, "free")
	case seckill.TokenReleased:
		places = append(places, "released")
	}
	for _, o := range s.validOrdersOf(t.TokenID) {
		held := seckill.TokenClaimed
		if seckill.OrderStatus(o.Status) == seckill.OrderPaid {
			held = seckill.TokenSold
		}
		if status.Taken() && status != held {
			places = append(places, fmt.Sprintf("%s by its row", status))
		}
		places = append(places, "held by "+orderWords(o))
	}
	return places
}

func placeWords(places []string) string {
	if len(places) == 0 {
		return "none (no valid order holds it, and it is not free)"
	}
	return strings.Join(places, "; ")
}

// judgeEnds looks at how each reservation ended.
func (s *sale) judgeEnds(e *evidence, f *finding) {
	defer f.timeless()
	for _, r := range s.reservations {
		f.check(1)
		f.moment(e.ofReservation(r))
		for _, o := range r.orders {
			if want := reservationOf(o); r.row != nil && !r.status().Rejected() && r.status() != want {
				f.violate("%s: %s ended its reservation as %s, and PostgreSQL says %s", s.key(), orderWords(o), want, r.status())
			}
		}
		if r.rows > 1 {
			f.violate("%s: reservation %s may be decided once, and PostgreSQL decided it %d times: %+d", s.key(), r, r.rows, r.rows-1)
		}
		if ends := r.ends(); len(ends) != 1 {
			found := "in none of them"
			if len(ends) > 1 {
				found = "in " + strings.Join(ends, " and in ")
			}
			f.violate("%s: reservation %s must end in exactly one of ordered, compensated, set aside, and is %s: %+d",
				s.key(), r, found, len(ends)-1)
		}
	}
}

// reservationOf is how the reservation of an order stands by the order's
// status.
func reservationOf(o *rundir.OrderRow) seckill.ReservationStatus {
	switch seckill.OrderStatus(o.Status) {
	case seckill.OrderCancelled:
		return seckill.StatusCancelled
	case seckill.OrderExpired:
		return seckill.StatusExpired
	}
	return seckill.StatusOrderCreated
}

// ends lists the ends the reservation has come to. An order that expired or
// was cancelled has ended by its compensation.
func (r *reservation) ends() []string {
	var ends []string
	status := r.status()
	if len(r.orders) > 0 && !(status == seckill.StatusExpired || status == seckill.StatusCancelled) {
		ends = append(ends, "ordered")
	}
	if len(r.compensations()) > 0 {
		ends = append(ends, "compensated")
	}
	if status == seckill.StatusSetAside {
		ends = append(ends, "set aside")
	}
	return ends
}
