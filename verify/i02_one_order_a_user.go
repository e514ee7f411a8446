package verify

import (
	"cmp"
	"slices"
	"strings"

	"github.com/hotsku/hotsku/verify/rundir"
)

// oneOrderAUser is I2: per (activity, SKU, user) one order row and one
// reservation, for the activity's life, and the user's mark in Redis names
// it. Where the plan declares that Redis may lose writes, a user may hold
// further reservations if each of them ends rejected.
var oneOrderAUser = check{id: "I2", name: "one valid order a user",
	needs: []source{fromPlan, fromKeys, fromOrders, fromReservations}, run: judgeOneOrderAUser}

func judgeOneOrderAUser(e *evidence, f *finding) {
	for _, s := range e.sales {
		orders := map[int64][]*rundir.OrderRow{}
		for _, o := range s.orders {
			orders[o.UserID] = append(orders[o.UserID], o)
		}
		reservations := map[int64][]*reservation{}
		for _, r := range s.reservations {
			if r.hash != nil || r.row != nil {
				reservations[r.user()] = append(reservations[r.user()], r)
			}
		}
		users := map[int64]struct{}{}
		for u := range orders {
			users[u] = struct{}{}
		}
		for u := range reservations {
			users[u] = struct{}{}
		}
		for _, u := range sortedKeys(users) {
			f.check(1)
			if len(reservations[u]) > 0 {
				f.moment(e.ofReservation(reservations[u][0]))
			}
			if n := len(orders[u]); n > 1 {
				f.violate("%s: user %d is promised at most one order and has %d: %s: %+d", s.key(), u, n, orderList(orders[u]), n-1)
			}
			s.judgeReservationsOf(e, u, reservations[u], f)
		}
	}
}

func (s *sale) judgeReservationsOf(e *evidence, user int64, held []*reservation, f *finding) {
	counted := held
	if e.redisMayLose() {
		counted = nil
		for _, r := range held {
			if !r.status().Rejected() {
				counted = append(counted, r)
			}
		}
	}
	if n := len(counted); n > 1 {
		f.violate("%s: user %d may hold one reservation for the activity's life and has %d: %s: %+d",
			s.key(), user, n, reservationList(counted), n-1)
		return
	}
	if e.redisMayLose() {
		return
	}
	for _, r := range held {
		if mark := s.marks[user]; r.hash != nil && mark != r.id {
			f.violate("%s: user %d holds reservation %s, and the user's mark in Redis says %q", s.key(), user, r.id, mark)
		}
	}
}

func reservationList(rs []*reservation) string {
	words := make([]string, len(rs))
	for i, r := range rs {
		words[i] = r.id
		if st := r.status(); st != "" {
			words[i] += " (" + string(st) + ")"
		}
	}
	return strings.Join(words, ", ")
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
