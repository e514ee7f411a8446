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
	for _, o := range e.offsets {
		if o.Topic == seckill.TopicOrderCreate && o.Min > 0 {
			f.block(fmt.Sprintf("%s: the broker has deleted the messages of queue %d before offset %d", fromOffsets, o.Queue, o.Min))
			return
		}
	}
	for _, s := range e.sales {
		for _, r := range s.reservations {
			f.check(len(r.messages))
			want := seckill.MessageIDOf(r.id)
			if ids := r.messageIDs(); len(ids) > 1 {
				f.violate("%s: reservation %s may have one message id, and its %d stored messages have %d: %s: %+d",
					s.key(), r.id, len(r.messages), len(ids), strings.Join(ids, ", "), len(ids)-1)
			} else if len(ids) == 1 && ids[0] != want {
				m := r.messages[0]
				f.violate("%s: the message id of reservation %s is %s, and the broker stored %s (queue %d offset %d)",
					s.key(), r.id, want, ids[0], m.queue, m.offset)
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
