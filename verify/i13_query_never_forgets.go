package verify

import (
	"fmt"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// queryNeverForgets is I13: once a request was accepted, no query that is
// asked later says that it is unknown, or invites to buy again (R15.11). While
// it is undecided, or no store can be asked, PROCESSING says so. Every accepted
// request is asked for once more when nothing is pending (the census): then
// the answer names the reservation that was promised, and how it ended.
var queryNeverForgets = check{id: "I13", name: "the query never forgets", history: true,
	needs: []source{fromPlan, fromSnapshot, fromHistory, fromQueries, fromKeys, fromReservations}, run: judgeQueryNeverForgets}

// asker is whose request an answer is about.
type asker struct {
	user      int64
	requestID string
}

// acceptance is the first accepted answer to an asker's request.
type acceptance struct {
	doneUS      int64
	reservation string
	code        seckill.Code
	asked       bool // in the census, with an answer
}

func judgeQueryNeverForgets(e *evidence, f *finding) {
	s, accepted, order := e.sales[0], map[asker]*acceptance{}, []asker{}
	for i := range e.answers.kept {
		a := &e.answers.kept[i]
		if !codeOf(a).Accepted() {
			continue
		}
		k := asker{int64(a.Subject), e.plan.Workload.RequestID(a.Ordinal)}
		if first := accepted[k]; first == nil {
			accepted[k] = &acceptance{doneUS: e.wallUS(a.Done), reservation: named(a), code: codeOf(a)}
			order = append(order, k)
		} else if at := e.wallUS(a.Done); at < first.doneUS {
			first.doneUS = at
		}
	}
	for i := range e.queries {
		q := &e.queries[i]
		if q.Failed != "" {
			continue
		}
		a := accepted[asker{q.User, q.RequestID}]
		if a == nil || q.SentUS <= a.doneUS+clockToleranceUS {
			continue
		}
		a.asked = a.asked || q.Census && q.Ask == rundir.AskRequest && saysSomething(q)
		f.check(1)
		f.moment(e.ofQuery(q))
		s.judgeRemembered(e, q, a, f)
	}
	asked := 0
	first := asker{}
	for _, k := range order {
		if accepted[k].asked {
			asked++
		} else if first == (asker{}) {
			first = k
		}
	}
	if due := min(len(order), rundir.CensusMax); asked < due {
		f.block(fmt.Sprintf("%s: of %d accepted requests %d were asked for at the end, and must be %d: user %d's %s was not",
			fromQueries, len(order), asked, due, first.user, first.requestID))
	}
}

// saysSomething says that the query said something about the request, rather than
// to come again.
func saysSomething(q *rundir.Query) bool {
	code := told(q)
	return code != seckill.CodeRateLimited && code != seckill.CodeUnavailable
}

func (s *sale) judgeRemembered(e *evidence, q *rundir.Query, a *acceptance, f *finding) {
	forgot := func(found string) {
		f.violate("%s: %s, %s after it was answered %s with reservation %s, was told %s: %s",
			s.key(), e.asked(q), clock((q.SentUS-a.doneUS)*1000), a.code, a.reservation, queryWords(q), found)
	}
	switch told(q) {
	case seckill.CodeRateLimited, seckill.CodeUnavailable, seckill.CodeOrderEnded:
	case seckill.CodeProcessing:
		if q.Census && e.quiescent() && !e.lostUnsent(s.byID[a.reservation]) {
			forgot("it must be told how it ended, for nothing is pending any more")
		}
	case seckill.CodeNotAccepted:
		if !e.lostUnsent(s.byID[a.reservation]) {
			forgot("what was accepted is called not accepted, which invites to buy again")
		}
	case seckill.CodeFound:
		s.judgeFound(e, q, a, forgot)
	default:
		forgot("an accepted request is still to be known, and this is no answer to who asks for it")
	}
}

// judgeFound holds what the query found against what was promised and, at the
// end, against PostgreSQL.
func (s *sale) judgeFound(e *evidence, q *rundir.Query, a *acceptance, forgot func(string)) {
	if q.ReservationID != a.reservation && a.reservation != "" && !e.redisMayLose() {
		forgot("it names reservation " + q.ReservationID)
		return
	}
	r := s.byID[q.ReservationID]
	if !q.Census || !e.quiescent() || r == nil || r.row == nil {
		return
	}
	if want := r.status(); !shows(q, want) {
		forgot("it ended as " + string(want))
	} else if q.OrderID != deref(r.row.OrderID) {
		forgot(fmt.Sprintf("its order is %q", deref(r.row.OrderID)))
	}
}

// shows says that an answer tells of this end. An order may have expired since
// the stores were copied.
func shows(q *rundir.Query, end seckill.ReservationStatus) bool {
	status := seckill.ReservationStatus(q.Status)
	if q.Status == seckill.StatusCompensated {
		status = seckill.ReservationStatus(q.Reason)
	}
	return status == end || end == seckill.StatusOrderCreated && status == seckill.StatusExpired
}

// lostUnsent says that Redis, which may lose writes by the plan's contract,
// lost the reservation before anything of it was sent: no store knows it.
func (e *evidence) lostUnsent(r *reservation) bool {
	return e.redisMayLose() && (r == nil || r.hash == nil && r.row == nil && len(r.messages) == 0)
}
