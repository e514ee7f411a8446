package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// answers is the history: the figures of all requests, and the records of
// those that concern a reservation.
type answers struct {
	startUnixNano int64
	figures       *loadFigures

	kept      []history.Record // by ordinal, then by the time they were sent
	byOrdinal map[uint32][2]int
	byUser    map[int64][]int32 // indexes into kept

	contradictions []string // where the history is not the plan's
	soldOut        *soldOutJudge
	outages        []*outage
	ambiguous      int64 // requests of unknown outcome
	phases         *phases
}

// codeOf is the code of the answer, CodeNone where none was parsed.
func codeOf(r *history.Record) seckill.Code {
	if r.Outcome != history.Completed {
		return seckill.CodeNone
	}
	return seckill.Code(r.Code)
}

// named is the reservation the answer names, "" if none.
func named(r *history.Record) string {
	if r.Tag == ([16]byte{}) {
		return ""
	}
	return seckill.ReservationIDOfTag(r.Tag)
}

// unchanged says that the answer promises that it changed nothing.
func unchanged(c seckill.Code) bool {
	return c == seckill.CodeSoldOut || c == seckill.CodeRateLimited
}

// requests are the kept records of one request id.
func (a *answers) requests(ordinal uint32) []history.Record {
	span := a.byOrdinal[ordinal]
	return a.kept[span[0]:span[1]]
}

// readHistory streams the history twice: first for the figures and for whom
// an answer was promised something, then to keep the records of the request
// ids and users that concern a reservation.
func (e *evidence) readHistory(ctx context.Context) error {
	a := &answers{figures: newLoadFigures(), byOrdinal: map[uint32][2]int{}, byUser: map[int64][]int32{}}
	about := e.reservedBy()
	first := newFirstPass(e.plan, a, about)
	if err := e.stream(ctx, a, first.record); err != nil {
		return e.historyFault(err)
	}
	first.close()
	a.soldOut, a.phases = newSoldOutJudge(e, a.startUnixNano), newPhases(e, a.startUnixNano)
	a.outages = e.outages()
	if err := e.stream(ctx, a, func(r *history.Record) {
		a.phases.record(r)
		code := codeOf(r)
		if code == seckill.CodeSoldOut {
			a.soldOut.judge(r)
		}
		for _, o := range a.outages {
			o.answer(r)
		}
		if ambiguous(r) {
			a.ambiguous++
		}
		if code.Accepted() || code == seckill.CodeDuplicateUser || code == seckill.CodeIdempotencyConflict || about.concern(r) {
			a.kept = append(a.kept, *r)
		}
	}); err != nil {
		return e.historyFault(err)
	}
	a.index()
	e.answers = a
	return nil
}

// historyFault notes a fault of the history; the context's error goes on.
func (e *evidence) historyFault(err error) error {
	var fe *history.FileError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &fe):
		e.fault(fromHistory, &rundir.EvidenceError{File: fe.File, Offset: fe.Offset, Reason: fmt.Sprintf("%v (%s)", fe.Err, fe.Reason)})
	case errors.Is(err, history.ErrNoFiles):
		e.fault(fromHistory, &rundir.EvidenceError{File: e.dir.History(), Offset: -1, Reason: "is empty: no history file"})
	case errors.Is(err, os.ErrNotExist):
		e.fault(fromHistory, &rundir.EvidenceError{File: e.dir.History(), Offset: -1, Reason: "is missing"})
	default:
		e.fault(fromHistory, &rundir.EvidenceError{File: e.dir.History(), Offset: -1, Reason: err.Error()})
	}
	return nil
}

func (e *evidence) stream(ctx context.Context, a *answers, use func(*history.Record)) error {
	r, err := history.OpenDir(e.dir.History())
	if err != nil {
		return err
	}
	defer r.Close()
	var rec history.Record
	for n := 0; ; n++ {
		if n%65536 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		switch err := r.Next(&rec); {
		case err == nil:
			use(&rec)
		case errors.Is(err, io.EOF):
			a.startUnixNano = r.Header().StartUnixNano
			a.figures.unrecorded = int64(r.Totals().Unrecorded)
			return nil
		default:
			return err
		}
	}
}

// index orders what was kept by request id, and lists it by user.
func (a *answers) index() {
	slices.SortFunc(a.kept, func(x, y history.Record) int {
		return cmp.Or(cmp.Compare(x.Ordinal, y.Ordinal), cmp.Compare(x.Sent, y.Sent), cmp.Compare(x.N, y.N))
	})
	for i := 0; i < len(a.kept); {
		j := i + 1
		for j < len(a.kept) && a.kept[j].Ordinal == a.kept[i].Ordinal {
			j++
		}
		a.byOrdinal[a.kept[i].Ordinal] = [2]int{i, j}
		i = j
	}
	for i := range a.kept {
		user := int64(a.kept[i].Subject)
		a.byUser[user] = append(a.byUser[user], int32(i))
	}
}

// concerned holds the request ids and users behind which a reservation
// stands, by the stores or by an answer.
type concerned struct {
	ordinals map[uint32]struct{}
	users    map[int64]struct{}
}

func (c *concerned) concern(r *history.Record) bool {
	if _, ok := c.ordinals[r.Ordinal]; ok {
		return true
	}
	_, ok := c.users[int64(r.Subject)]
	return ok
}

func (e *evidence) reservedBy() *concerned {
	c := &concerned{map[uint32]struct{}{}, map[int64]struct{}{}}
	add := func(requestID string, user int64) {
		if ordinal, ok := e.plan.Workload.Ordinal(requestID); ok {
			c.ordinals[ordinal] = struct{}{}
		}
		c.users[user] = struct{}{}
	}
	for _, s := range e.sales {
		for _, r := range s.reservations {
			add(r.requestID(), r.user())
		}
		for _, o := range s.orders {
			add(o.RequestID, o.UserID)
		}
	}
	return c
}
