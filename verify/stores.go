package verify

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// sale is all the stores hold about one planned SKU.
type sale struct {
	plan rundir.Activity

	stock    *int64 // Redis; nil if the key is missing
	pending  int    // members of the pending ZSET
	marks    map[int64]string
	requests map[string]requestRecord
	log      []rundir.LogEntry

	skus   []rundir.SKURow
	tokens []*rundir.TokenRow
	orders []*rundir.OrderRow
	ledger []*rundir.LedgerRow

	reservations []*reservation // sorted by id
	byID         map[string]*reservation
	tokenByID    map[int64]*rundir.TokenRow
	ordersByUnit map[int64][]*rundir.OrderRow
	units        map[string]int64 // by order id, the quantity of its items
}

func newSale(a rundir.Activity) *sale {
	return &sale{plan: a, marks: map[int64]string{}, requests: map[string]requestRecord{},
		byID: map[string]*reservation{}, tokenByID: map[int64]*rundir.TokenRow{},
		ordersByUnit: map[int64][]*rundir.OrderRow{}, units: map[string]int64{}}
}

func (s *sale) key() skuKey { return skuKey{s.plan.ActivityID, s.plan.SKUID} }

// reservation joins what every store says about one reservation.
type reservation struct {
	id       string
	hash     *reservationHash // Redis
	reserves []*rundir.LogEntry
	returns  []*rundir.LogEntry
	row      *rundir.ReservationRow // PostgreSQL; nil while undecided
	rows     int                    // how often PostgreSQL has it
	orders   []*rundir.OrderRow
	sales    []*rundir.LedgerRow
	rejects  []*rundir.LedgerRow
	closings []*rundir.LedgerRow // how the order ended: paid, cancelled, expired
	inbox    []string            // message ids seen by the order consumers
	begun    time.Time           // when the first transaction that saw one began; zero: not known
	messages []storedMessage
	events   []seckill.Event
}

// position is where the broker stored a message.
type position struct {
	queue  int
	offset int64
}

// storedMessage is one create message of a reservation at the broker.
type storedMessage struct {
	id      string
	resend  bool      // by the scanner
	expires time.Time // until when the reservation holds, by the message
	at      position

	storedAtMS int64 // Unix
}

func (s *sale) reservation(id string) *reservation {
	r := s.byID[id]
	if r == nil {
		r = &reservation{id: id}
		s.byID[id] = r
		s.reservations = append(s.reservations, r)
	}
	return r
}

// sort fixes the order in which reservations are judged and reported.
func (s *sale) sort() {
	slices.SortFunc(s.reservations, func(a, b *reservation) int { return cmp.Compare(a.id, b.id) })
}

// user is the user the reservation was made for, by the stores.
func (r *reservation) user() int64 {
	switch {
	case r.hash != nil:
		return r.hash.user
	case r.row != nil:
		return r.row.UserID
	}
	for _, entry := range r.reserves {
		if i := slices.Index(entry.Reservations, r.id); i >= 0 && i < len(entry.Users) {
			return entry.Users[i]
		}
	}
	return 0
}

// requestID is the request that made the reservation, by the stores.
func (r *reservation) requestID() string {
	switch {
	case r.hash != nil:
		return r.hash.requestID
	case r.row != nil:
		return r.row.RequestID
	}
	return ""
}

// reservedAt is the moment of acceptance, on Redis' clock.
func (r *reservation) reservedAt() (time.Time, bool) {
	switch {
	case r.hash != nil && r.hash.reservedAtUS > 0:
		return time.UnixMicro(r.hash.reservedAtUS), true
	case r.row != nil && !r.row.ReservedAt.IsZero():
		return r.row.ReservedAt, true
	}
	return time.Time{}, false
}

// status is how PostgreSQL ended the reservation, "" while it has not.
func (r *reservation) status() seckill.ReservationStatus {
	if r.row == nil {
		return ""
	}
	return seckill.ReservationStatus(r.row.Status)
}

// compensations are the compensation events PostgreSQL made.
func (r *reservation) compensations() []seckill.Event {
	var out []seckill.Event
	for _, ev := range r.events {
		if ev.EventType == seckill.EventCompensate {
			out = append(out, ev)
		}
	}
	return out
}

// onItsWay says that an undecided reservation may still be decided: its
// message is pending or stored.
func (r *reservation) onItsWay() bool {
	return len(r.messages) > 0 || r.hash != nil && seckill.ReservationStatus(r.hash.status).Undecided()
}

func (r *reservation) String() string {
	return fmt.Sprintf("%s (user %d, request %s)", r.id, r.user(), r.requestID())
}

func orderWords(o *rundir.OrderRow) string {
	return fmt.Sprintf("order %s (user %d, request %s, %s)", o.OrderID, o.UserID, o.RequestID, o.Status)
}

func valid(o *rundir.OrderRow) bool { return seckill.OrderStatus(o.Status).Valid() }

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
