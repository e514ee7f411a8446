package verify

import (
	"fmt"
	"strings"

	"github.com/hotsku/hotsku/system/seckill"
)

// oneMessageID is I7: over every create message the broker ever stored, a
// reservation has one message id, however often it was sent; and the inbox
// has exactly one row for each reservation that was decided.
var oneMessageID = check{id: "I7", name: "one message id",
	needs: []source{fromPlan, fromMessages, fromOffsets, fromReservations, fromInbox}, run: judgeOneMessageID}

func judgeOneMessageID(e *evidence, f *finding) {
	if gap := e.missingMessages(); gap != "" {
		f.block(gap)
		return
	}
	for _, s := range e.sales {
		for _, r := range s.reservations {
			f.check(len(r.messages))
			f.moment(e.ofReservation(r))
			want := seckill.MessageIDOf(r.id)
			if ids := r.messageIDs(); len(ids) > 1 {
				f.violate("%s: reservation %s may have one message id, and its %d stored messages have %d: %s: %+d",
					s.key(), r.id, len(r.messages), len(ids), strings.Join(ids, ", "), len(ids)-1)
			} else if len(ids) == 1 && ids[0] != want {
				m := r.messages[0]
				f.violate("%s: the message id of reservation %s is %s, and the broker stored %s (queue %d offset %d)",
					s.key(), r.id, want, ids[0], m.at.queue, m.at.offset)
			}
			if r.row == nil {
				continue
			}
			f.check(1)
			if r.row.MessageID != want {
				f.violate("%s: the message id of reservation %s is %s, and PostgreSQL decided it by %s", s.key(), r.id, want, r.row.MessageID)
			}
			if n := len(r.inbox); n != 1 {
				found := "none"
				if n > 0 {
					found = strings.Join(r.inbox, ", ")
				}
				f.violate("%s: reservation %s was decided (%s) and must have one inbox row, and has %d: %s: %+d",
					s.key(), r.id, r.status(), n, found, n-1)
			}
		}
	}
}

// missingMessages says where a stored message is not in the evidence: every
// queue must be there from offset 0 to where the broker would write next.
func (e *evidence) missingMessages() string {
	next := map[int]int64{}
	for _, at := range e.stored {
		if at.offset != next[at.queue] {
			return fmt.Sprintf("%s: queue %d goes on with offset %d where %d is due", fromMessages, at.queue, at.offset, next[at.queue])
		}
		next[at.queue]++
	}
	known := map[int]bool{}
	for _, o := range e.offsets {
		if o.Topic != seckill.TopicOrderCreate {
			continue
		}
		known[o.Queue] = true
		if o.Min > 0 {
			return fmt.Sprintf("%s: the broker has deleted the messages of queue %d before offset %d", fromOffsets, o.Queue, o.Min)
		}
		if next[o.Queue] < o.Max {
			return fmt.Sprintf("%s: queue %d ends with offset %d, and the broker stored %d messages", fromMessages, o.Queue, next[o.Queue]-1, o.Max)
		}
	}
	for _, queue := range sortedKeys(next) {
		if !known[queue] {
			return fmt.Sprintf("%s: nothing says how far queue %d was consumed", fromOffsets, queue)
		}
	}
	return ""
}
