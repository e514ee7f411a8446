package app_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hotsku/hotsku/system/seckill"
)

// one is an answer at its place in a story: asked and answered between its
// neighbours.
func one(ask question, about string, a seckill.Answer) observation {
	return observation{ask: ask, about: about, answer: a, status: a.Code.HTTPStatus()}
}

// story puts answers one after the other.
func story(answers ...observation) []observation {
	for i := range answers {
		answers[i].sent, answers[i].done = int64(10*i), int64(10*i+5)
	}
	return answers
}

func queuedAs(id string) seckill.Answer {
	return seckill.Answer{Code: seckill.CodeQueued, ReservationID: id}
}

func replayedAs(id, status, order string) seckill.Answer {
	return seckill.Answer{Code: seckill.CodeQueued, ReservationID: id, Status: status, OrderID: order, Replayed: true}
}

func found(id, status, order string) seckill.Answer {
	return seckill.Answer{Code: seckill.CodeFound, RequestID: "a", ReservationID: id, Status: status, OrderID: order}
}

func coded(c seckill.Code) seckill.Answer { return seckill.Answer{Code: c} }

// A user's life as it may go, with an outage in between, is no contradiction.
func TestAStoryWithoutContradiction(t *testing.T) {
	for name, answers := range map[string][]observation{
		"bought, after all": story(
			one(askBuy, "a", coded(seckill.CodeActivityInvalid)), one(askRequest, "a", coded(seckill.CodeProcessing)),
			one(askBuy, "a", coded(seckill.CodeSoldOut)), one(askBuy, "a", coded(seckill.CodeUnavailable)),
			observation{ask: askBuy, about: "a"}, // no answer
			one(askBuy, "a", queuedAs("r")), one(askBuy, "b", seckill.Answer{Code: seckill.CodeDuplicateUser, ReservationID: "r"}),
			one(askRequest, "b", coded(seckill.CodeProcessing)), one(askRequest, "a", found("r", "ORDER_CREATED", "o")),
			one(askBuy, "a", replayedAs("r", "MESSAGE_SENT", "")), one(askRequest, "a", coded(seckill.CodeProcessing)),
			one(askOrder, "o", seckill.Answer{Code: seckill.CodeFound, Status: "CREATED", OrderID: "o"}),
			one(askCancel, "o", seckill.Answer{Code: seckill.CodeUnavailable, OrderID: "o"}),
			one(askCancel, "o", seckill.Answer{Code: seckill.CodeFound, Status: "CANCELLED", OrderID: "o"}),
			one(askPay, "o", seckill.Answer{Code: seckill.CodeOrderEnded, Status: "CANCELLED", OrderID: "o"}),
			one(askReservation, "r", found("r", "CANCELLED", "o")), one(askReservation, "r", found("r", "COMPENSATED", "o"))),
		"rejected": story(one(askBuy, "a", seckill.Answer{Code: seckill.CodeQueuedPending, ReservationID: "r"}),
			one(askRequest, "a", found("r", "REJECTED_NO_FINAL_STOCK", "")), one(askBuy, "a", replayedAs("r", "COMPENSATED", "")),
			one(askRequest, "a", found("r", "REJECTED_NO_FINAL_STOCK", "")), one(askBuy, "b", seckill.Answer{Code: seckill.CodeDuplicateUser, ReservationID: "r"})),
		"never accepted": story(one(askBuy, "a", coded(seckill.CodeSoldOut)), one(askRequest, "a", coded(seckill.CodeNotAccepted)),
			one(askBuy, "a", coded(seckill.CodeActivityInvalid))),
		"two at once": {
			{sent: 0, done: 9, ask: askBuy, about: "a", answer: coded(seckill.CodeSoldOut), status: 410},
			{sent: 1, done: 5, ask: askBuy, about: "a", answer: queuedAs("r"), status: 202},
			{sent: 2, done: 4, ask: askBuy, about: "a", answer: replayedAs("r", "", ""), status: 202},
		},
		"a thief": {{sent: 0, done: 1, ask: askBuy, about: "a", stranger: true, answer: coded(seckill.CodeIdempotencyConflict), status: 422},
			{sent: 2, done: 3, ask: askRequest, about: "a", badToken: true, answer: coded(seckill.CodeUnauthenticated), status: 401}},
	} {
		if broken := contradictions(answers); len(broken) > 0 {
			t.Errorf("%s:\n%s", name, told(broken))
		}
	}
}

// R15.11: each rule is broken by a story that differs in one answer.
func TestContradictionsAreNamed(t *testing.T) {
	accepted := one(askBuy, "a", queuedAs("r"))
	ordered := one(askRequest, "a", found("r", "ORDER_CREATED", "o"))
	paid := one(askPay, "o", seckill.Answer{Code: seckill.CodeFound, Status: "PAID", OrderID: "o"})
	for _, c := range []struct {
		rule string
		told []observation
	}{
		{"a user has one reservation", story(accepted, one(askBuy, "a", replayedAs("s", "", "")))},
		{"a user has one reservation", story(one(askBuy, "b", seckill.Answer{Code: seckill.CodeDuplicateUser, ReservationID: "s"}), accepted)},
		{"a user has one order", story(accepted, ordered, one(askRequest, "a", found("r", "ORDER_CREATED", "p")))},
		{"never sold out, nor too late", story(accepted, one(askBuy, "a", coded(seckill.CodeSoldOut)))},
		{"never sold out, nor too late", story(accepted, one(askBuy, "b", coded(seckill.CodeSoldOut)))},
		{"never sold out, nor too late", story(ordered, one(askBuy, "a", coded(seckill.CodeActivityInvalid)))},
		{"never follows reserved", story(accepted, one(askRequest, "a", coded(seckill.CodeNotAccepted)))},
		{"never follows ordered", story(accepted, ordered, one(askReservation, "r", seckill.Answer{Code: seckill.CodeNotAccepted, RequestID: "a"}))},
		{"reserved never follows never", story(one(askRequest, "a", coded(seckill.CodeNotAccepted)), accepted)},
		{"duplicate never follows reserved", story(accepted, one(askBuy, "a", seckill.Answer{Code: seckill.CodeDuplicateUser, ReservationID: "r"}))},
		{"reserved never follows duplicate", story(one(askBuy, "a", seckill.Answer{Code: seckill.CodeDuplicateUser, ReservationID: "r"}), accepted)},
		{"rejected never follows ordered", story(accepted, ordered, one(askRequest, "a", found("r", "REJECTED_LATE", "")))},
		{"ordered never follows rejected", story(one(askRequest, "a", found("r", "REJECTED_LATE", "")), ordered)},
		{"ordered never follows returned", story(one(askReservation, "r", found("r", "COMPENSATED", "")), ordered)},
		{"ordered never follows ended", story(one(askReservation, "r", found("r", "EXPIRED", "o")), ordered)},
		{"ordered never follows set aside", story(one(askReservation, "r", found("r", "SET_ASIDE", "")), ordered)},
		{"it ends one way", story(one(askRequest, "a", found("r", "REJECTED_LATE", "")), one(askRequest, "a", found("r", "REJECTED_CLOSED", "")))},
		{"it ends one way", story(one(askRequest, "a", found("r", "CANCELLED", "o")), one(askRequest, "a", found("r", "EXPIRED", "o")))},
		{"accepted once", story(accepted, accepted)},
		{"a second request of a user is a duplicate", story(accepted, one(askBuy, "b", queuedAs("r")))},
		{"an order ends one way", story(paid, one(askCancel, "o", seckill.Answer{Code: seckill.CodeFound, Status: "CANCELLED", OrderID: "o"}))},
		{"never opens again", story(paid, one(askOrder, "o", seckill.Answer{Code: seckill.CodeFound, Status: "CREATED", OrderID: "o"}))},
		{"a conflict is about another payload", story(one(askBuy, "a", coded(seckill.CodeIdempotencyConflict)))},
		{"an owner is told", story(one(askOrder, "o", coded(seckill.CodeForbidden)))},
		{"a reservation that stands is named", story(one(askBuy, "a", queuedAs("")))},
		{"an order is named", story(one(askRequest, "a", found("r", "ORDER_CREATED", "")))},
		{"a rejected reservation has no order", story(one(askRequest, "a", found("r", "REJECTED_LATE", "o")))},
		{"belongs to the code", []observation{{ask: askBuy, about: "a", answer: coded(seckill.CodeSoldOut), status: 200}}},
		{"a stranger is told nothing", []observation{{ask: askBuy, about: "a", stranger: true, answer: replayedAs("r", "", ""), status: 202}}},
		{"without a good token", []observation{{ask: askBuy, about: "a", badToken: true, answer: queuedAs("r"), status: 202}}},
		{"taken for a stranger", []observation{{ask: askRequest, about: "a", answer: coded(seckill.CodeUnauthenticated), status: 401}}},
	} {
		broken := contradictions(c.told)
		if !slices.ContainsFunc(broken, func(line string) bool { return strings.Contains(line, c.rule) }) {
			t.Errorf("want %q, got\n%s", c.rule, told(broken))
		}
	}
}
