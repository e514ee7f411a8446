package submit

import (
	"context"
	"time"

	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// reserveLoop judges what waits, up to a script's batch at a time.
func (s *Service) reserveLoop() {
	batch := make([]*ticket, 0, reservation.BatchMax)
	for t := range s.queue {
		batch = fill(append(batch[:0], t), s.queue)
		s.judge(batch)
	}
}

func (s *Service) judge(batch []*ticket) {
	defer s.inFlight.Add(int64(-len(batch)))
	for rest := batch; len(rest) > 0; { // usually one SKU, one call
		sku := rest[0].cmd
		same, others := splitFirstSKU(rest)
		// Looked at before each call: an earlier SKU's may have taken long.
		if live := s.dispatch(same); len(live) > 0 {
			s.judgeSKU(sku.ActivityID, sku.SKUID, live)
		}
		rest = others
	}
}

// dispatch takes those who did not wait too long.
func (s *Service) dispatch(tickets []*ticket) []*ticket {
	now := time.Now()
	live := tickets[:0]
	for _, t := range tickets {
		if now.Sub(t.arrived) > s.cfg.QueueWait {
			s.expire(t)
		} else if t.phase.CompareAndSwap(phaseWaiting, phaseDispatched) {
			live = append(live, t)
		}
	}
	return live
}

// expire turns a request away that waited too long and was never judged.
func (s *Service) expire(t *ticket) {
	if t.phase.CompareAndSwap(phaseWaiting, phaseExpired) {
		s.Stats.Expired.Add(1)
		t.reply(RateLimited(t.cmd.RequestID))
	}
}

// expireLoop turns away those whose batch does not come in time, however
// long the reservers are held up. All wait equally long, so the first to come
// is the first due.
func (s *Service) expireLoop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for t := range s.waiting {
		if t.phase.Load() != phaseWaiting {
			continue
		}
		if wait := time.Until(t.arrived.Add(s.cfg.QueueWait)); wait >= 0 {
			timer.Reset(wait + time.Nanosecond)
			<-timer.C
		}
		s.expire(t)
	}
}

func (s *Service) judgeSKU(activityID, skuID int64, tickets []*ticket) {
	candidates := make([]reservation.Candidate, len(tickets))
	for i, t := range tickets {
		id := s.ids.NewReservationID()
		candidates[i] = reservation.Candidate{RequestID: t.cmd.RequestID, UserID: t.cmd.UserID,
			PayloadHash: t.cmd.PayloadHash(), ReservationID: id, MessageID: seckill.MessageIDOf(id), Traceparent: s.observe.Trace(t.cmd.Traceparent, id)}
	}
	s.hit(seckill.FaultAccessBeforeReserve)
	// Two bounds: the answers wait ReserveTimeout, the call CallTimeout. Giving
	// the call up with the answers would close its connection, and the next
	// call would pay for a new one; and a reply that is merely late tells what
	// was reserved, so that it is sent now and not by the scanner.
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.CallTimeout)
	defer cancel()
	gaveUp := make(chan struct{})
	giveUp := time.AfterFunc(s.cfg.ReserveTimeout, func() {
		defer close(gaveUp)
		s.Stats.ReserveLate.Add(1)
		unknown(tickets)
	})
	defer func() {
		if !giveUp.Stop() { // its answers are given before Stop may return
			<-gaveUp
		}
	}()
	began := time.Now()
	result, err := s.store.Reserve(ctx, activityID, skuID, candidates)
	s.observe.Reserve(time.Since(began))
	s.Stats.ReserveCalls.Add(1)
	if err != nil {
		s.Stats.ReserveFails.Add(1)
		s.log.Warn("reserve failed", "activity_id", activityID, "sku_id", skuID, "requests", len(tickets), "error", err)
		unknown(tickets)
		return
	}
	sendBy := time.Now().Add(s.cfg.SendTimeout)
	created := 0
	for i, t := range tickets {
		if result.Outcomes[i].Verdict == reservation.VerdictCreated {
			if created == 0 { // the script has answered, nothing was sent yet
				s.hit(seckill.FaultAccessAfterReserve)
			}
			created++
			s.queueSend(t, &candidates[i], &result, sendBy)
			continue
		}
		t.reply(answerOf(t.cmd.RequestID, &result.Outcomes[i]))
	}
	s.Stats.Created.Add(int64(created))
}

// unknown answers requests of which nobody can say whether they were judged.
func unknown(tickets []*ticket) {
	for _, t := range tickets {
		t.reply(&seckill.Answer{Code: seckill.CodeUnavailable, RequestID: t.cmd.RequestID,
			Reason: seckill.ReasonRedisUnknown, RetryAfterMS: 1000})
	}
}

// answerOf is the answer of a request that made no reservation.
func answerOf(requestID string, o *reservation.Outcome) *seckill.Answer {
	a := &seckill.Answer{RequestID: requestID, ReservationID: o.ReservationID}
	switch o.Verdict {
	case reservation.VerdictReplayed:
		// The first answer, as it stands by now (R7.9.1).
		a.Code, a.Replayed, a.Status, a.OrderID = seckill.CodeQueued, true, o.Status, o.OrderID
		if o.Status == string(seckill.StatusPendingMessage) {
			a.Code = seckill.CodeQueuedPending
		}
	case reservation.VerdictConflict:
		a.Code = seckill.CodeIdempotencyConflict
	case reservation.VerdictDuplicateUser:
		a.Code = seckill.CodeDuplicateUser
	case reservation.VerdictNotOpen:
		a.Code = seckill.CodeActivityInvalid
	case reservation.VerdictSoldOut:
		a.Code = seckill.CodeSoldOut
	default: // R9.1.2: never taken for one of the above
		a.Code, a.Reason = seckill.CodeUnavailable, "unknown verdict"
	}
	return a
}

// queueSend hands a created reservation to the senders.
func (s *Service) queueSend(t *ticket, c *reservation.Candidate, b *reservation.Batch, sendBy time.Time) {
	r := reservation.Reservation{ReservationID: c.ReservationID, MessageID: c.MessageID, RequestID: c.RequestID,
		ActivityID: t.cmd.ActivityID, SKUID: t.cmd.SKUID, UserID: c.UserID, PayloadHash: c.PayloadHash,
		ReservedAt: b.ReservedAt, ExpiresAt: b.ExpiresAt, ActivityVersion: b.ActivityVersion,
		Traceparent: c.Traceparent}
	t.reservationID, t.trace = c.ReservationID, c.Traceparent
	t.message = r.Message(time.Now())
	t.sendBy = sendBy
	if budget := t.arrived.Add(s.cfg.AnswerBudget); budget.Before(sendBy) {
		t.sendBy = budget
	}
	select {
	case s.due <- t:
	default: // nobody will watch its deadline: answer now
		s.replyPending(t)
	}
	select {
	case s.outbound <- t:
	default: // the scanner will send it
		s.replyPending(t)
	}
}

func (s *Service) replyPending(t *ticket) {
	if s.accept(t, seckill.CodeQueuedPending, seckill.StatusPendingMessage) {
		s.Stats.Late.Add(1)
	}
}
