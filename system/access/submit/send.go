package submit

import (
	"context"
	"time"

	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// sendBatchMax is how many messages one send carries.
const sendBatchMax = 100

// sendLoop sends what was reserved, up to sendBatchMax or SendLinger at a
// time. A send without confirmation is unknown: the reservation stays, the
// client hears QUEUED_PENDING_MESSAGE, the scanner resends (R7.8.1-4).
func (s *Service) sendLoop() {
	batch := make([]*ticket, 0, sendBatchMax)
	messages := make([]seckill.OrderCreateMessage, 0, sendBatchMax)
	linger := time.NewTimer(0)
	defer linger.Stop()
	for t := range s.outbound {
		batch = append(batch[:0], t)
		linger.Reset(s.cfg.SendLinger)
	fill:
		for len(batch) < sendBatchMax {
			select {
			case t, ok := <-s.outbound:
				if !ok {
					break fill
				}
				batch = append(batch, t)
			case <-linger.C:
				break fill
			}
		}
		if s.breaker.Refusing() { // the scanner sends it when the broker is back
			s.Stats.Unsent.Add(int64(len(batch)))
			for _, t := range batch {
				s.replyPending(t)
			}
			continue
		}
		messages = messages[:0]
		for _, t := range batch {
			messages = append(messages, t.message)
		}
		s.Stats.Sends.Add(1)
		began := time.Now()
		err := s.sender.SendOrderCreates(messages)
		s.observe.Send(time.Since(began))
		s.breaker.Sent(began, err)
		if err != nil {
			s.Stats.SendsUnknown.Add(1)
			s.noteFailure(batch, s.codeOf(err))
			s.log.Warn("send not confirmed; the scanner owns it", "messages", len(batch), "error", err)
			for _, t := range batch {
				s.replyPending(t)
			}
			if s.closed.Load() { // a drain does not wait for a broker that is gone
				for t := range s.outbound {
					s.replyPending(t)
				}
			}
			continue
		}
		s.hit(seckill.FaultAccessAfterSend)
		for _, t := range batch {
			s.accept(t, seckill.CodeQueued, seckill.StatusMessageSent)
			select {
			case s.marks <- t:
			default: // best effort: the scanner sends it once more, the inbox absorbs it
				s.Stats.MarksDropped.Add(1)
			}
		}
	}
}

// deadlineLoop answers those whose confirmation did not come in time. They
// come in the order of their reservations, which is nearly that of their
// deadlines.
func (s *Service) deadlineLoop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for t := range s.due {
		if t.answered.Load() {
			continue
		}
		if wait := time.Until(t.sendBy); wait > 0 {
			timer.Reset(wait)
			<-timer.C
		}
		s.replyPending(t)
	}
}

// markLoop notes confirmed sends in Redis, so that the scanner leaves them
// alone. Best effort (R9.1.4): it has a context of its own, no answer waits
// for it and no client's departure ends it. The specification's 20 ms bound a
// mark made before the answer; here they would only close the connection of
// every mark that meets a busy Redis.
func (s *Service) markLoop() {
	batch := make([]*ticket, 0, reservation.BatchMax)
	for t := range s.marks {
		batch = fill(append(batch[:0], t), s.marks)
		for pending := batch; len(pending) > 0; {
			sku := pending[0].cmd
			same, rest := splitFirstSKU(pending)
			ids := make([]string, len(same))
			for i, t := range same {
				ids[i] = t.reservationID
			}
			ctx, cancel := context.WithTimeout(context.Background(), s.cfg.CallTimeout)
			if err := s.store.MarkSent(ctx, sku.ActivityID, sku.SKUID, ids); err != nil {
				s.Stats.MarksDropped.Add(int64(len(ids)))
				if s.closed.Load() { // nor for a Redis that is gone
					s.Stats.MarksDropped.Add(int64(len(rest)))
					rest = nil
					for range s.marks {
						s.Stats.MarksDropped.Add(1)
					}
				}
			} else {
				s.Stats.Marked.Add(int64(len(ids)))
			}
			cancel()
			pending = rest
		}
	}
}
