package verify

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// readQueries keeps what owners asked. A plan that asks nothing of it may
// leave no such file.
func (e *evidence) readQueries() {
	if _, err := os.Stat(e.dir.Queries()); errors.Is(err, os.ErrNotExist) && !e.asksFor(fromQueries) {
		e.faults[fromQueries] = &rundir.EvidenceError{File: string(fromQueries), Offset: -1, Reason: "is missing"}
		return
	}
	rows(e, fromQueries, func(q *rundir.Query) {
		if q.Schema != rundir.QueriesSchema && e.faults[fromQueries] == nil {
			e.fault(fromQueries, &rundir.EvidenceError{File: string(fromQueries), Offset: -1,
				Reason: fmt.Sprintf("has schema %d, this build reads %d", q.Schema, rundir.QueriesSchema)})
		}
		e.queries = append(e.queries, *q)
	})
}

// asksFor says that the plan requires an invariant that needs the source.
func (e *evidence) asksFor(s source) bool {
	return slices.ContainsFunc(checks(), func(c check) bool {
		return slices.Contains(e.plan.Invariants, c.id) && slices.Contains(c.needs, s)
	})
}

// told is the code of an answer, CodeNone where there was none or it is none
// of the contract's.
func told(q *rundir.Query) seckill.Code {
	code, _ := seckill.ParseCode(q.Code)
	return code
}

func queryWords(q *rundir.Query) string {
	words := q.Code
	if q.Status != "" {
		words += " " + q.Status
	}
	if q.Reason != "" {
		words += " (" + q.Reason + ")"
	}
	if q.OrderID != "" {
		words += " order " + q.OrderID
	}
	return words
}

// asked says who asked for what, and when he was answered.
func (e *evidence) asked(q *rundir.Query) string {
	what := "user %d, asking for request id %s"
	if q.Ask != rundir.AskRequest {
		what = "user %d, who wanted to " + q.Ask + " the order of request id %s"
	}
	return fmt.Sprintf(what, q.User, q.RequestID) + " at " + clock(e.sinceStart(q.SentUS))
}

// sinceStart turns microseconds of the wall clock into nanoseconds since the
// start of the load.
func (e *evidence) sinceStart(us int64) int64 { return us*1000 - e.answers.startUnixNano }

// wallUS is its inverse.
func (e *evidence) wallUS(ns int64) int64 { return (e.answers.startUnixNano + ns) / 1000 }
