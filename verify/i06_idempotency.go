package verify

import (
	"slices"
	"strings"

	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/system/seckill"
)

// idempotency is I6. All answers to one request id agree: never two
// reservations, never SOLD_OUT to a user who had QUEUED for it (provable
// where the request was sent after that answer had arrived),
// IDEMPOTENCY_CONFLICT exactly when another user's reservation is stored
// under it. All answers to one user name the user's one reservation. Answers
// that changed nothing may be judged anew; they must have changed nothing.
//
// Where the plan declares that Redis may lose writes, a request may be judged
// anew after its reservation was lost: then all reservations that its answers
// and its user's name, but one, end rejected.
//
// A sold-out gate refuses before the conflict check, so a conflict may be
// answered SOLD_OUT.
var idempotency = check{id: "I6", name: "idempotency", history: true,
	needs: []source{fromPlan, fromHistory, fromKeys, fromReservations}, run: judgeIdempotency}

// claims indexes the stored reservations by what a request can name.
type claims struct {
	sale      *sale
	e         *evidence
	byOrdinal map[uint32][]*reservation
	byUser    map[int64][]*reservation
}

func judgeIdempotency(e *evidence, f *finding) {
	s := e.sales[0]
	c := &claims{sale: s, e: e, byOrdinal: map[uint32][]*reservation{}, byUser: map[int64][]*reservation{}}
	for _, r := range s.reservations {
		if r.hash == nil && r.row == nil {
			continue
		}
		c.byUser[r.user()] = append(c.byUser[r.user()], r)
		if ordinal, ok := e.plan.Workload.Ordinal(r.requestID()); ok {
			c.byOrdinal[ordinal] = append(c.byOrdinal[ordinal], r)
		}
		if !e.redisMayLose() {
			s.judgeRequestRecord(r, f)
		}
	}
	for _, ordinal := range sortedKeys(e.answers.byOrdinal) {
		c.judgeRequest(ordinal, f)
	}
	f.timeless()
	for _, user := range sortedKeys(e.answers.byUser) {
		c.judgeUser(user, f)
	}
}

// judgeRequestRecord: Redis knows the reservation again by its request id.
func (s *sale) judgeRequestRecord(r *reservation, f *finding) {
	if r.hash == nil {
		return
	}
	f.check(1)
	want := requestRecord{reservationID: r.id}
	cmd := seckill.SubmitCommand{ActivityID: s.plan.ActivityID, SKUID: s.plan.SKUID, UserID: r.hash.user, Quantity: 1}
	want.payloadHash = cmd.PayloadHash()
	if got := s.requests[r.hash.requestID]; got != want {
		f.violate("%s: request id %s must lead to reservation %s of user %d again, and its record in Redis leads to %q with payload %.8q",
			s.key(), r.hash.requestID, r.id, r.hash.user, got.reservationID, got.payloadHash)
	}
}

func (c *claims) judgeRequest(ordinal uint32, f *finding) {
	records := c.e.answers.requests(ordinal)
	id := c.e.plan.Workload.RequestID(ordinal)
	stored := c.byOrdinal[ordinal]
	var first *history.Record // the accepted answer that arrived first
	var tags []string
	for i := range records {
		a := &records[i]
		if !codeOf(a).Accepted() {
			continue
		}
		if first == nil || a.Done < first.Done {
			first = a
		}
		if tag := named(a); tag != "" && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	f.moment(ofAnswer(&records[0]))
	if len(tags) > 1 && !c.allRejectedButOne(tags) {
		f.violate("%s: request id %s may lead to one reservation, and its answers name %d: %s: %+d",
			c.sale.key(), id, len(tags), strings.Join(tags, ", "), len(tags)-1)
	}
	for i := range records {
		f.moment(ofAnswer(&records[i]))
		c.judgeAnswer(&records[i], id, stored, first, f)
	}
	c.judgeUnchanged(id, stored, records, f)
}

// judgeAnswer holds one answer against what is stored and against the first
// acceptance of its request id.
func (c *claims) judgeAnswer(a *history.Record, id string, stored []*reservation, first *history.Record, f *finding) {
	user, key := int64(a.Subject), c.sale.key()
	after := first != nil && a.Sent > first.Done // provably judged later
	switch code := codeOf(a); {
	case code.Accepted():
		f.check(1)
		tag := named(a)
		for _, r := range stored {
			if r.user() != user && r.id == tag {
				f.violate("%s: request id %s belongs to reservation %s, and user %d, another user, was answered %s for it instead of IDEMPOTENCY_CONFLICT",
					key, id, r, user, code)
				return
			}
		}
		if len(stored) > 0 && tag != "" && !c.e.redisMayLose() && !slices.ContainsFunc(stored, func(r *reservation) bool { return r.id == tag }) {
			f.violate("%s: request id %s belongs to reservation %s, and user %d was answered %s with %s for it",
				key, id, stored[0], user, code, tag)
		}
	case code == seckill.CodeIdempotencyConflict:
		f.check(1)
		if !c.e.redisMayLose() && !slices.ContainsFunc(stored, func(r *reservation) bool { return r.user() != user }) {
			found := "no reservation is stored under it"
			if len(stored) > 0 {
				found = "its reservation is that user's: " + stored[0].String()
			}
			f.violate("%s: user %d was answered IDEMPOTENCY_CONFLICT for request id %s, which needs another user's reservation under it: %s",
				key, user, id, found)
		}
	case code == seckill.CodeDuplicateUser:
		f.check(1)
		c.judgeDuplicateUser(a, id, stored, after, f)
	case code == seckill.CodeSoldOut && first != nil:
		f.check(1)
		if after && first.Subject == a.Subject && !c.e.redisMayLose() {
			f.violate("%s: user %d was answered %s for request id %s at %s, and SOLD_OUT for the same request sent %s later, at %s",
				key, user, codeOf(first), id, clock(first.Done), clock(a.Sent-first.Done), clock(a.Sent))
		}
	}
}

// judgeDuplicateUser: it names the user's one reservation, made by another
// request.
func (c *claims) judgeDuplicateUser(a *history.Record, id string, stored []*reservation, after bool, f *finding) {
	user, key, tag := int64(a.Subject), c.sale.key(), named(a)
	held := c.byUser[user]
	switch {
	case c.e.redisMayLose(): // it may have named what was lost
	case len(held) == 0:
		f.violate("%s: user %d was answered DUPLICATE_USER with %q, and holds no reservation", key, user, tag)
	case !slices.ContainsFunc(held, func(r *reservation) bool { return r.id == tag }):
		f.violate("%s: user %d was answered DUPLICATE_USER with %q, and the user's reservation is %s", key, user, tag, held[0].id)
	case slices.ContainsFunc(stored, func(r *reservation) bool { return r.user() == user }):
		f.violate("%s: user %d was answered DUPLICATE_USER for request id %s, which made the user's reservation %s: the first answer must be repeated",
			key, user, id, tag)
	case after && len(stored) > 0:
		f.violate("%s: user %d was answered DUPLICATE_USER for request id %s, which is stored as %s: IDEMPOTENCY_CONFLICT was due",
			key, user, id, stored[0])
	}
}

// judgeUnchanged: a user all of whose answers to a request id promised that
// nothing was changed holds no reservation by it.
func (c *claims) judgeUnchanged(id string, stored []*reservation, records []history.Record, f *finding) {
	for _, r := range stored {
		told, refused := false, (*history.Record)(nil)
		for i := range records {
			a := &records[i]
			if int64(a.Subject) != r.user() || a.Outcome == history.Dropped {
				continue
			}
			if unchanged(codeOf(a)) {
				refused = a
			} else {
				told = true
			}
		}
		if refused != nil && !told {
			f.violate("%s: user %d was only ever answered %s for request id %s, which promises that nothing was changed, and it made reservation %s",
				c.sale.key(), r.user(), codeOf(refused), id, r.id)
		}
	}
}

// judgeUser: every answer that names a reservation names the same.
func (c *claims) judgeUser(user int64, f *finding) {
	var tags []string
	for _, i := range c.e.answers.byUser[user] {
		a := &c.e.answers.kept[i]
		if code := codeOf(a); !code.Accepted() && code != seckill.CodeDuplicateUser {
			continue
		}
		if tag := named(a); tag != "" && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	if len(tags) > 0 {
		f.check(1)
	}
	if len(tags) > 1 && !c.allRejectedButOne(tags) {
		slices.Sort(tags)
		f.violate("%s: all answers to user %d must name one reservation, and they name %d: %s: %+d",
			c.sale.key(), user, len(tags), strings.Join(tags, ", "), len(tags)-1)
	}
}

// allRejectedButOne is what the loss contract of Redis still promises.
func (c *claims) allRejectedButOne(ids []string) bool {
	if !c.e.redisMayLose() {
		return false
	}
	live := 0
	for _, id := range ids {
		if r := c.sale.byID[id]; r != nil && !r.status().Rejected() {
			live++
		}
	}
	return live <= 1
}
