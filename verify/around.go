package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/verify/rundir"
)

// What of the timeline is told beside a witness: the events nearest to it.
const (
	aroundSpan = 3 * time.Second
	aroundMax  = 5
)

// when is the time of what is being judged, nanoseconds since the start of the
// load.
type when struct {
	at    int64
	known bool
}

// moment says when what is judged from here on happened, so that a violation
// is told with what went on around it.
func (f *finding) moment(w when) { f.when = w }

// timeless says that what follows is of no one time: sums.
func (f *finding) timeless() { f.when = when{} }

// ofReservation is when it was made.
func (e *evidence) ofReservation(r *reservation) when {
	if r == nil {
		return when{}
	}
	at, ok := r.reservedAt()
	if !ok || e.answers == nil {
		return when{}
	}
	return when{e.sinceStart(at.UnixMicro()), true}
}

// ofOrder is when its row was last changed.
func (e *evidence) ofOrder(o *rundir.OrderRow) when {
	if e.answers == nil || o.CommittedAt.IsZero() {
		return when{}
	}
	return when{e.sinceStart(o.CommittedAt.UnixMicro()), true}
}

// ofAnswer is when it was given, or given up.
func ofAnswer(r *history.Record) when { return when{r.Done, r.Done != history.Never} }

// ofQuery is when it was answered.
func (e *evidence) ofQuery(q *rundir.Query) when { return when{e.sinceStart(q.DoneUS), true} }

// around tells what the timeline holds near that time, "" if nothing does.
func (e *evidence) around(w when) string {
	if !w.known {
		return ""
	}
	var near []*rundir.TimelineEvent
	distance := func(ev *rundir.TimelineEvent) time.Duration {
		return (time.Duration(ev.AtMS)*time.Millisecond - time.Duration(w.at)).Abs()
	}
	for i := range e.timeline {
		if ev := &e.timeline[i]; ev.Event != EventLogRead && distance(ev) <= aroundSpan {
			near = append(near, ev)
		}
	}
	slices.SortStableFunc(near, func(a, b *rundir.TimelineEvent) int { return cmp.Compare(distance(a), distance(b)) })
	near = near[:min(len(near), aroundMax)]
	slices.SortStableFunc(near, func(a, b *rundir.TimelineEvent) int { return cmp.Compare(a.AtMS, b.AtMS) })
	words := make([]string, len(near))
	for i, ev := range near {
		words[i] = eventWords(ev)
	}
	if len(words) == 0 {
		return ""
	}
	return fmt.Sprintf(" [it was at %s; around it: %s]", clock(w.at), strings.Join(words, "; "))
}

// eventWords is an event in one phrase: when, who, of whom, what, what it hit.
func eventWords(ev *rundir.TimelineEvent) string {
	words := fmt.Sprintf("at %d ms %s of %s: %s", ev.AtMS, ev.Actor, ev.Target, ev.Event)
	if len(ev.Hits) == 0 {
		return words
	}
	hits := make([]string, 0, len(ev.Hits))
	for _, name := range sortedKeys(ev.Hits) {
		hits = append(hits, fmt.Sprintf("%s %d", name, ev.Hits[name]))
	}
	return words + " (" + strings.Join(hits, ", ") + ")"
}
