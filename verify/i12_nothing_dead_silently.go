package verify

import (
	"fmt"
	"strings"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// nothingDeadSilently is I12: of no message does nobody know any more. Every
// create message that was consumed, first-hand or sent back, led to a decision
// or is kept as a dead letter; every message in a dead-letter topic is kept as
// one; every letter says what it is and why; no group has consumed beyond what
// was stored; and no process of the product panicked. The processes' logs are
// searched for that when they have ended, and the timeline says what was found.
var nothingDeadSilently = check{id: "I12", name: "nothing dead silently",
	needs: []source{fromPlan, fromSnapshot, fromTimeline, fromMessages, fromOffsets, fromReservations, fromDeadLetters}, run: judgeNothingDeadSilently}

// EventLogRead is the timeline's event of a process whose log was searched for
// panics; HitPanics counts them.
const (
	EventLogRead = "log read"
	HitPanics    = "panics"
)

// deadLetterClasses are those of the product's table.
var deadLetterClasses = map[string]bool{"poison": true, "newer_schema": true, "refused_by_database": true, "handed_back": true}

// letters indexes the dead letters by where they lay, whose they are, and what
// they say: a message that was sent back lies elsewhere when it is kept.
type letters struct {
	at     map[string]bool
	of     map[string]bool // reservations
	saying map[string]bool // bodies, as PostgreSQL writes bytes
}

// place names a position at the broker, whatever prefix a run puts before the
// names of topics and groups.
func place(topic string, queue int, offset int64) string {
	kind := ""
	if rest, ok := strings.CutPrefix(topic, rundir.RetryPrefix); ok {
		kind, topic = rundir.RetryPrefix, rest
	} else if rest, ok := strings.CutPrefix(topic, rundir.DeadLetterPrefix); ok {
		kind, topic = rundir.DeadLetterPrefix, rest
	}
	for _, name := range []string{seckill.TopicOrderCreate, seckill.TopicEvent, seckill.TopicExpiry, seckill.GroupOrder, seckill.GroupProjector, seckill.GroupExpiry} {
		if strings.HasSuffix(topic, name) {
			topic = name
		}
	}
	return fmt.Sprintf("%s%s %d %d", kind, topic, queue, offset)
}

func judgeNothingDeadSilently(e *evidence, f *finding) {
	kept := letters{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for i := range e.letters {
		l := &e.letters[i]
		f.check(1)
		kept.at[place(l.Topic, l.Queue, l.Offset)], kept.saying[l.Body] = true, true
		if l.ReservationID != "" {
			kept.of[l.ReservationID] = true
		}
		if !deadLetterClasses[l.Class] || l.Reason == "" {
			f.violate("a dead letter must say what it is and why, and the one of %s queue %d offset %d says class %q, reason %q",
				l.Topic, l.Queue, l.Offset, l.Class, l.Reason)
		}
	}
	for i := range e.offsets {
		o := &e.offsets[i]
		f.check(1)
		if o.Consumed > o.Max && !e.lossDeclared(rundir.LossBrokerDisk) {
			f.violate("group %s can have consumed %d messages of %s queue %d, and says it consumed %d: %+d", o.Group, o.Max, o.Topic, o.Queue, o.Consumed, o.Consumed-o.Max)
		}
	}
	for i := range e.deliveries {
		e.judgeDelivery(&e.deliveries[i], &kept, f)
	}
	f.timeless()
	e.judgePanics(f)
}

// delivery is a message that a group has to do something about.
type delivery struct {
	topic       string
	at          position
	reservation *reservation // nil: of no reservation of this run that can be read
	foreign     bool         // of another sale
	body        string       // as a dead letter has it, where no reservation is known
}

// group is the one that consumes the delivery, "" for a dead-letter topic.
func (d *delivery) group() string {
	if d.topic == seckill.TopicOrderCreate {
		return seckill.GroupOrder
	}
	group, _ := strings.CutPrefix(d.topic, rundir.RetryPrefix)
	return group
}

func (e *evidence) judgeDelivery(d *delivery, kept *letters, f *finding) {
	if strings.HasPrefix(d.topic, rundir.DeadLetterPrefix) {
		f.check(1)
		if e.quiescent() && !kept.at[place(d.topic, d.at.queue, d.at.offset)] {
			f.violate("a message that the broker gave up must be kept as a dead letter, and the one of %s queue %d offset %d is not: -1", d.topic, d.at.queue, d.at.offset)
		}
		return
	}
	if d.group() != seckill.GroupOrder || d.foreign || !e.consumed(d) {
		return
	}
	f.check(1)
	r := d.reservation
	f.moment(e.ofReservation(r))
	if kept.at[place(d.topic, d.at.queue, d.at.offset)] || r == nil && kept.saying[d.body] || r != nil && (r.row != nil || kept.of[r.id]) {
		return
	}
	what := "nobody can read it"
	if r != nil {
		what = "reservation " + r.String() + " is undecided"
	}
	if e.quiescent() {
		f.violate("a create message that was consumed must be decided or kept as a dead letter, and the one of %s queue %d offset %d is neither (%s): -1",
			d.topic, d.at.queue, d.at.offset, what)
	}
}

// consumed says that the group's offset has passed the message.
func (e *evidence) consumed(d *delivery) bool {
	for i := range e.offsets {
		if o := &e.offsets[i]; o.Group == d.group() && o.Topic == d.topic && o.Queue == d.at.queue {
			return d.at.offset < o.Consumed
		}
	}
	return false
}

func (e *evidence) judgePanics(f *finding) {
	read := false
	for i := range e.timeline {
		ev := &e.timeline[i]
		if ev.Actor != benchActor || ev.Event != EventLogRead {
			continue
		}
		read = true
		f.check(1)
		if n := ev.Hits[HitPanics]; n > 0 {
			f.violate("no process may panic, and %s did %d times: %s: %+d", ev.Target, n, ev.Detail, n)
		}
	}
	if !read {
		f.block(string(fromTimeline) + ": nobody searched the processes' logs for panics")
	}
}
