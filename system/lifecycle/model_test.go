package lifecycle_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotsku/hotsku/system/lifecycle"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// life is what the stores are meant to hold of one reservation.
type life struct {
	made    reservation.Reservation
	order   seckill.OrderStatus // "" while there is none
	overdue bool
	end     seckill.ReservationStatus // by PostgreSQL, "" while undecided
	shown   seckill.ReservationStatus // by Redis
	done    bool                      // compensated in Redis
}

// model is the sale in the plainest terms.
type model struct {
	*sale
	stock, free int64
	lives       []*life // in the order of their reservation
	byUser      map[int64]*life
	events      map[string]*life // by reservation
	claims      map[*life]lifecycle.Claim
}

const users = 9

// R6.7b R7.6.6 R13.1.6: a random history of reservations, deliveries,
// projections, payments, cancellations and expiries, with repeats and in any
// order, on the real stores agrees with the model at each step.
func TestTheStoresAgreeWithTheModel(t *testing.T) {
	f := setup(t)
	rapid.Check(t, func(rt *rapid.T) {
		stock := rapid.IntRange(1, 5).Draw(rt, "stock")
		m := &model{sale: f.sale(stock, rapid.Bool().Draw(rt, "resell")), stock: int64(stock), free: int64(stock),
			byUser: map[int64]*life{}, events: map[string]*life{}, claims: map[*life]lifecycle.Claim{}}
		rt.Repeat(map[string]func(*rapid.T){
			"reserve": m.reserveStep, "deliver": m.deliverStep, "project": m.projectStep,
			"pay":    func(rt *rapid.T) { m.endStep(rt, m.decider.Pay, seckill.OrderPaid) },
			"cancel": func(rt *rapid.T) { m.endStep(rt, m.decider.Cancel, seckill.OrderCancelled) },
			"clock":  m.clockStep, "expire": m.expireStep,
			"": m.agree,
		})
		m.quiesce(rt)
	})
}

func (m *model) any(rt *rapid.T) *life {
	if len(m.lives) == 0 {
		rt.Skip("nothing reserved")
	}
	return rapid.SampledFrom(m.lives).Draw(rt, "reservation")
}

func (m *model) reserveStep(rt *rapid.T) {
	user := rapid.Int64Range(1, users).Draw(rt, "user")
	got, r := m.reserve(user)
	switch l := m.byUser[user]; {
	case l != nil:
		want := string(l.shown)
		if l.done {
			want = seckill.StatusCompensated
		}
		if got.Verdict != reservation.VerdictReplayed || got.ReservationID != l.made.ReservationID || got.Status != want {
			rt.Fatalf("user %d again: %+v, want %s of %s", user, got, want, l.made.ReservationID)
		}
	case m.stock == 0:
		if got.Verdict != reservation.VerdictSoldOut {
			rt.Fatalf("user %d without stock: %+v", user, got)
		}
	default:
		if got.Verdict != reservation.VerdictCreated {
			rt.Fatalf("user %d with a stock of %d: %+v", user, m.stock, got)
		}
		m.stock--
		l := &life{made: r, shown: seckill.StatusPendingMessage}
		m.lives, m.byUser[user] = append(m.lives, l), l
	}
}

// deliverStep hands some messages to the consumer, decided ones among them.
func (m *model) deliverStep(rt *rapid.T) {
	m.any(rt)
	some := rapid.SliceOfN(rapid.SampledFrom(m.lives), 1, 6).Draw(rt, "messages")
	var rs []reservation.Reservation
	for _, l := range some {
		rs = append(rs, l.made)
		if l.end == "" {
			l.order, l.end = seckill.OrderCreated, seckill.StatusOrderCreated
			m.free--
			m.events[l.made.ReservationID] = l
		}
	}
	m.deliver(rs...)
}

// projectStep applies some events, in any order, some again.
func (m *model) projectStep(rt *rapid.T) {
	events := m.sale.events()
	if len(events) == 0 {
		rt.Skip("no events")
	}
	m.apply(rapid.SliceOfN(rapid.SampledFrom(events), 1, 6).Draw(rt, "events"))
}

func (m *model) apply(events []seckill.Event) {
	m.project(events...)
	for _, e := range events {
		l := m.events[e.ReservationID]
		switch {
		case e.EventType == seckill.EventCompensate && !l.done:
			l.done, l.shown = true, e.Status
			if m.resell {
				m.stock++
			}
		case e.EventType == seckill.EventOrderCreated && l.shown == seckill.StatusPendingMessage:
			l.shown = seckill.StatusOrderCreated
		}
	}
}

func (m *model) claim(l *life) lifecycle.Claim {
	c, ok := m.claims[l]
	if !ok {
		c = lifecycle.Claim{UserID: l.made.UserID, ActivityID: m.activityID}
		m.scan(&c.OrderID, `SELECT order_id FROM orders WHERE reservation_id = $1`, l.made.ReservationID)
		m.claims[l] = c
	}
	return c
}

func (m *model) ordered(rt *rapid.T) *life {
	l := m.any(rt)
	if l.order == "" {
		rt.Skip("no order yet")
	}
	return l
}

func (m *model) ended(l *life, as seckill.OrderStatus) {
	l.order = as
	switch as {
	case seckill.OrderCancelled:
		l.end = seckill.StatusCancelled
	case seckill.OrderExpired:
		l.end = seckill.StatusExpired
	default:
		return
	}
	if m.resell {
		m.free++
	}
}

func (m *model) endStep(rt *rapid.T, call func(context.Context, lifecycle.Claim) (lifecycle.Outcome, error), as seckill.OrderStatus) {
	l := m.ordered(rt)
	changed := l.order == seckill.OrderCreated
	if changed && l.overdue {
		as = seckill.OrderExpired
	}
	if changed {
		m.ended(l, as)
	}
	o, err := call(rt.Context(), m.claim(l))
	if err != nil || o.Status != l.order || o.Changed != changed {
		rt.Fatalf("order of user %d: %+v, %v; the model says %s, changed %t", l.made.UserID, o, err, l.order, changed)
	}
}

func (m *model) clockStep(rt *rapid.T) {
	l := m.ordered(rt)
	l.overdue = true
	m.overdue(m.claim(l))
}

// expireStep is a check or a sweep: of any orders, an unknown one among them.
func (m *model) expireStep(rt *rapid.T) {
	m.ordered(rt)
	ids, want := []string{"ord_00000000000000000000000000"}, 0
	for _, l := range rapid.SliceOfN(rapid.SampledFrom(m.lives), 1, 6).Draw(rt, "orders") {
		if l.order == "" {
			continue
		}
		ids = append(ids, m.claim(l).OrderID)
		if l.order == seckill.OrderCreated && l.overdue {
			m.ended(l, seckill.OrderExpired)
			want++
		}
	}
	if n, err := m.decider.Expire(rt.Context(), ids); err != nil || n != want {
		rt.Fatalf("expired %d, %v, want %d", n, err, want)
	}
}

func (m *model) agree(rt *rapid.T) {
	if got := m.sale.stock(); got != m.stock {
		rt.Fatalf("Redis has %d units, the model %d", got, m.stock)
	}
	var free int64
	m.scan(&free, `SELECT count(*) FROM inventory_token WHERE activity_id = $1 AND status = 'AVAILABLE'`, m.activityID)
	if free != m.free {
		rt.Fatalf("%d tokens are free, the model says %d", free, m.free)
	}
}

// quiesce brings everything home: then both stores agree with each other.
func (m *model) quiesce(rt *rapid.T) {
	var rest []reservation.Reservation
	for _, l := range m.lives {
		rest = append(rest, l.made)
		if l.end == "" {
			l.order, l.end = seckill.OrderCreated, seckill.StatusOrderCreated
			m.free--
			m.events[l.made.ReservationID] = l
		}
	}
	if len(rest) > 0 {
		m.deliver(rest...)
	}
	events := m.sale.events()
	rand.New(rand.NewPCG(uint64(m.activityID), 1)).Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	for range 2 {
		m.apply(events)
	}
	m.agree(rt)
	if m.resell && m.stock != m.free {
		rt.Fatalf("Redis offers %d units, PostgreSQL has %d", m.stock, m.free)
	}
	for _, l := range m.lives {
		r, found, err := m.redis.LookupReservation(rt.Context(), m.activityID, m.skuID, l.made.ReservationID)
		if err != nil || !found || r.Status != l.end || r.OrderID != m.claim(l).OrderID || r.CompensatedAt.IsZero() == l.end.Compensated() {
			rt.Fatalf("Redis shows %+v, found %t, %v; want %s of order %s", r, found, err, l.end, m.claim(l).OrderID)
		}
	}
	for what, query := range conserved {
		var n int
		if m.scan(&n, query, m.activityID); n != 0 {
			rt.Fatalf("conservation: %s: %d", what, n)
		}
	}
}
