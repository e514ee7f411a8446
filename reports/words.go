package reports

import (
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// invariantWords names each invariant of the catalogue and says in a line
// what it promises.
var invariantWords = map[string]struct{ name, promise string }{
	"I1":  {"no oversell", "Every taken unit has exactly one valid order, there are never more than the stock, and Redis stock never fell below zero."},
	"I2":  {"one valid order a user", "A user has at most one order and one reservation for a SKU, for the activity's life."},
	"I3":  {"conservation", "Every unit, by its id, and every reservation is in exactly one place; sums alone do not count."},
	"I4":  {"no acceptance lost", "Every accepted answer ended as one order, or as one compensated rejection that the query shows."},
	"I5":  {"no phantom order", "Every order traces to a request in the history, with that user, SKU and request id."},
	"I6":  {"idempotency", "All answers to one request id agree, and all answers to one user name one reservation."},
	"I7":  {"one message id", "Over every message the broker ever stored, a reservation has one message id, and one inbox row."},
	"I8":  {"no premature success", "No answer says that an order exists before its commit."},
	"I9":  {"compensation once", "Each ended reservation was compensated exactly once; Redis stock = initial − reservations + returned."},
	"I10": {"honest sold-out", "SOLD_OUT was said only while no unit was reservable, and no unit was left stranded."},
	"I11": {"fail closed", "While a dependency was down no new reservation was made, and answers said UNAVAILABLE."},
	"I12": {"nothing dead silently", "Every message in a retry or dead-letter topic is classified, counted and reachable."},
	"I13": {"the query never forgets", "Once accepted, a request is never answered as unknown."},
	"I14": {"recovered in time", "After the fault ended, the backlog reached zero within the stated time."},
	"I15": {"ledger agrees", "The ledger, replayed, gives the token states, order counts and Redis stock exactly."},
}

func invariantName(id string) string {
	if w, ok := invariantWords[id]; ok {
		return w.name
	}
	return "unknown invariant"
}

// sourceWords says who counted a part of the funnel, and what.
var sourceWords = map[string]string{
	rundir.ByHistory:  "Requests and answers, by the generator's history",
	rundir.ByCounters: "Requests, by the access processes' own counters",
	rundir.ByStores:   "Reservations, by the stores",
}

// codeWords says what an answer code means (contracts.md section 1).
var codeWords = map[seckill.Code]string{
	seckill.CodeQueued:              "reserved, and the broker confirmed the message; an order follows",
	seckill.CodeQueuedPending:       "reserved; the send's outcome is unknown, the scanner brings it home",
	seckill.CodeOrderCreated:        "ordered at once (synchronous schemes)",
	seckill.CodeSoldOut:             "no unit was reservable when it was judged",
	seckill.CodeDuplicateUser:       "the user holds or held a reservation here",
	seckill.CodeIdempotencyConflict: "the request id is stored with another payload",
	seckill.CodeActivityInvalid:     "not started, ended, closed or unknown",
	seckill.CodeRateLimited:         "turned away unjudged; nothing was changed",
	seckill.CodeUnauthenticated:     "token missing, forged or expired",
	seckill.CodeForbidden:           "a good token for something else",
	seckill.CodeInvalidRequest:      "a field is wrong",
	seckill.CodeUnavailable:         "failed closed: a dependency is down or the outcome is not known",
}

func codeMeaning(name string) string {
	c, ok := seckill.ParseCode(name)
	if !ok {
		return ""
	}
	return codeWords[c]
}

// codeGroup is a band of the answers chart: codes that mean the same to the
// one who reads it.
type codeGroup int

const (
	groupAccepted codeGroup = iota
	groupSoldOut
	groupDuplicate
	groupLimited
	groupUnavailable
	groupOther
	groups // their number
)

var groupNames = [groups]string{"accepted", "sold out", "duplicate or conflict", "rate limited", "unavailable", "other"}

func groupOf(code string) codeGroup {
	c, ok := seckill.ParseCode(code)
	switch {
	case !ok:
		return groupOther
	case c.Accepted():
		return groupAccepted
	}
	switch c {
	case seckill.CodeSoldOut:
		return groupSoldOut
	case seckill.CodeDuplicateUser, seckill.CodeIdempotencyConflict:
		return groupDuplicate
	case seckill.CodeRateLimited:
		return groupLimited
	case seckill.CodeUnavailable:
		return groupUnavailable
	default:
		return groupOther
	}
}
