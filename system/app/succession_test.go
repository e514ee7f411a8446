package app_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hotsku/hotsku/system/seckill"
)

// question is what a client asked.
type question int

const (
	askBuy         question = iota // POST of a request id
	askRequest                     // GET of it
	askReservation                 // GET of the reservation it led to
	askOrder                       // GET of the order
	askPay
	askCancel
)

// observation is one answer to one user, or none. Times are of one clock.
type observation struct {
	sent, done int64
	ask        question
	about      string // request id, reservation id or order id
	stranger   bool   // who asks about another's request
	badToken   bool
	answer     seckill.Answer // zero: none came
	status     int            // of HTTP
}

func (o *observation) String() string {
	return fmt.Sprintf("%d..%d %s of %s: %d %+v", o.sent, o.done,
		[]string{"buy", "ask for request", "ask for reservation", "ask for order", "pay", "cancel"}[o.ask], o.about, o.status, o.answer)
}

// claim is what an answer says of a request, or of an order, for ever after.
type claim int

const (
	saysNothing   claim = iota // turned away unjudged, or not known (yet)
	saysRefused                // SOLD_OUT, ACTIVITY_INVALID: nothing stands behind the request now
	saysDuplicate              // another request of the user holds the reservation
	saysReserved               // a reservation stands
	saysOrdered                // an order was made of it
	saysRejected               // it ended without an order
	saysEnded                  // its order was cancelled, or expired
	saysReturned               // COMPENSATED: it ended, one way or the other
	saysSetAside               // a person decides
	saysNever                  // NOT_ACCEPTED: there never was and never will be one

	claims
)

func (c claim) String() string {
	return []string{"nothing", "refused", "duplicate", "reserved", "ordered", "rejected", "ended", "returned", "set aside", "never"}[c]
}

// mayFollow is the table of allowed successions about one request id: an
// answer to a question that was asked after the other's answer was there.
// Saying nothing may follow, and be followed by, anything. A replay of POST
// says that a reservation stands, however it has ended by then
// (contracts.md section 1).
var mayFollow = [claims][]claim{
	saysRefused:   {saysRefused, saysDuplicate, saysReserved, saysOrdered, saysRejected, saysEnded, saysReturned, saysSetAside, saysNever},
	saysDuplicate: {saysDuplicate, saysNever}, // its own request never gets one
	saysReserved:  {saysReserved, saysOrdered, saysRejected, saysEnded, saysReturned, saysSetAside},
	saysOrdered:   {saysReserved, saysOrdered, saysEnded, saysReturned},
	saysRejected:  {saysReserved, saysRejected, saysReturned},
	saysEnded:     {saysReserved, saysEnded, saysReturned},
	saysReturned:  {saysReserved, saysRejected, saysEnded, saysReturned},
	saysSetAside:  {saysReserved, saysSetAside},
	saysNever:     {saysRefused, saysDuplicate, saysNever},
}

// says reads an answer to a question about a request or its reservation.
func (o *observation) says() claim {
	switch o.answer.Code {
	case seckill.CodeSoldOut, seckill.CodeActivityInvalid:
		return saysRefused
	case seckill.CodeDuplicateUser:
		return saysDuplicate
	case seckill.CodeNotAccepted:
		return saysNever
	case seckill.CodeQueued, seckill.CodeQueuedPending, seckill.CodeFound:
	default:
		return saysNothing
	}
	switch status := seckill.ReservationStatus(o.answer.Status); {
	case o.answer.Status == seckill.StatusCompensated:
		return saysReturned
	case status == seckill.StatusOrderCreated:
		return saysOrdered
	case status == seckill.StatusCancelled, status == seckill.StatusExpired:
		return saysEnded
	case status.Rejected():
		return saysRejected
	case status == seckill.StatusSetAside:
		return saysSetAside
	}
	return saysReserved
}

// ofOrder says that the answer is about an order's own state.
func (o *observation) ofOrder() bool { return o.ask >= askOrder }

// contradictions judges everything one user was told, and returns a line for
// each rule that is broken.
func contradictions(seen []observation) (broken []string) {
	slices.SortStableFunc(seen, func(a, b observation) int { return int(a.done - b.done) })
	rule := func(name string, later *observation, earlier *observation) {
		line := name + ": " + later.String()
		if earlier != nil {
			line += "\n\tafter " + earlier.String()
		}
		broken = append(broken, line)
	}
	for i := range seen {
		later := &seen[i]
		if later.answer.Code == seckill.CodeNone {
			continue
		}
		if name := later.alone(); name != "" {
			rule(name, later, nil)
			continue
		}
		for j := range seen[:i] {
			if earlier := &seen[j]; earlier.answer.Code != seckill.CodeNone && !earlier.stranger && !later.stranger {
				if name := pair(earlier, later); name != "" {
					rule(name, later, earlier)
				}
			}
		}
	}
	return broken
}

// alone names the rule that an answer breaks by itself.
func (o *observation) alone() string {
	a := &o.answer
	accepted := a.Code.Accepted() || a.Code == seckill.CodeFound || a.Code == seckill.CodeDuplicateUser
	switch {
	case o.status != a.Code.HTTPStatus():
		return "the status line belongs to the code"
	case o.badToken != (a.Code == seckill.CodeUnauthenticated) && a.Code != seckill.CodeRateLimited && a.Code != seckill.CodeInvalidRequest:
		return "without a good token nobody is told anything, and with one nobody is taken for a stranger"
	case o.stranger && (accepted || a.ReservationID != "" && a.ReservationID != o.about || a.OrderID != ""):
		return "a stranger is told nothing"
	case o.stranger:
		return ""
	case a.Code == seckill.CodeIdempotencyConflict:
		return "a conflict is about another payload"
	case a.Code == seckill.CodeForbidden:
		return "an owner is told"
	case accepted && o.ask <= askReservation && a.ReservationID == "":
		return "a reservation that stands is named"
	case o.says() == saysOrdered && o.ask <= askReservation && a.OrderID == "":
		return "an order is named"
	case o.says() == saysRejected && a.OrderID != "":
		return "a rejected reservation has no order"
	}
	return ""
}

// pair names the rule that two answers to one user break together. Rules of
// succession hold if the later question was asked when the earlier answer was
// there; sameness holds in any order.
func pair(earlier, later *observation) string {
	a, b := &earlier.answer, &later.answer
	after := earlier.done <= later.sent
	reserving := func(o *observation) bool {
		return !o.ofOrder() && o.says() != saysNothing && o.answer.ReservationID != ""
	}
	switch {
	case reserving(earlier) && reserving(later) && a.ReservationID != b.ReservationID:
		return "a user has one reservation"
	case a.OrderID != "" && b.OrderID != "" && a.OrderID != b.OrderID && earlier.names() && later.names():
		return "a user has one order"
	case !after:
		return ""
	case reserving(earlier) && later.ask == askBuy && later.says() == saysRefused:
		return "who holds a reservation is never sold out, nor too late"
	case earlier.ofOrder() && later.ofOrder():
		return orders(earlier, later)
	case earlier.ofOrder() || later.ofOrder():
		return ""
	case earlier.request() != later.request():
		if earlier.says() >= saysReserved && earlier.says() < saysNever && later.ask == askBuy && later.says() >= saysReserved {
			return "a second request of a user is a duplicate"
		}
		return ""
	}
	from, to := earlier.says(), later.says()
	switch {
	case from == saysNothing || to == saysNothing:
		return ""
	case !slices.Contains(mayFollow[from], to):
		return fmt.Sprintf("%s never follows %s", to, from)
	case later.ask == askBuy && to >= saysReserved && from >= saysReserved && from < saysNever && !b.Replayed:
		return "a request is accepted once; then it is replayed"
	case from == saysRejected && to == saysRejected && a.Status != b.Status, from == saysEnded && to == saysEnded && a.Status != b.Status:
		return "it ends one way"
	}
	return ""
}

// names says that the answer's order is the user's, and no echo of what was
// asked for.
func (o *observation) names() bool {
	return o.answer.Code.Accepted() || o.answer.Code == seckill.CodeFound
}

// request is the request id that the answer is about: a reservation's answer
// says which led to it.
func (o *observation) request() string {
	if o.ask == askReservation {
		return o.answer.RequestID
	}
	return o.about
}

// orders names the rule that two answers about an order break: it is paid,
// cancelled or expired once, and stays so.
func orders(earlier, later *observation) string {
	open := string(seckill.OrderCreated)
	a, b := earlier.answer.Status, later.answer.Status
	switch {
	case a == "" || b == "" || a == b || a == open:
		return ""
	case b == open:
		return "an order that ended never opens again"
	}
	return "an order ends one way"
}

// told is a list of contradictions fit to print.
func told(broken []string) string {
	const most = 20
	if len(broken) > most {
		broken = append(slices.Clone(broken[:most]), fmt.Sprintf("and %d more", len(broken)-most))
	}
	return strings.Join(broken, "\n")
}
