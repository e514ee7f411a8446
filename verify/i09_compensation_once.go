package verify

import (
	"github.com/hotsku/hotsku/system/seckill"
)

// compensationOnce is I9: each reservation that ended without holding its
// unit is compensated exactly once, in PostgreSQL's outbox and in Redis,
// however often the event was delivered, and no other; it returns stock
// exactly when its end says so (contracts.md section 2). Always:
// Redis stock = initial - reservations + returned.
var compensationOnce = check{id: "I9", name: "compensation once",
	needs: []source{fromPlan, fromSnapshot, fromKeys, fromLog, fromReservations, fromOutbox}, run: judgeCompensationOnce}

func judgeCompensationOnce(e *evidence, f *finding) {
	for _, s := range e.sales {
		reserved, returned := int64(0), int64(0)
		for _, r := range s.reservations {
			if r.row != nil {
				f.check(1)
			}
			f.moment(e.ofReservation(r))
			s.judgeEvents(r, f)
			if e.redisMayLose() {
				s.judgeReturnOnce(r, f)
				continue
			}
			s.judgeReturn(e, r, f)
			if r.hash != nil {
				reserved++
				if r.hash.returned {
					returned++
				}
			}
		}
		f.timeless()
		if e.redisMayLose() {
			continue
		}
		f.check(1)
		want := s.plan.Stock - reserved + returned
		if s.stock == nil {
			f.violate("%s: Redis stock must be %d - %d reservations + %d returned = %d, and the key is missing or no number",
				s.key(), s.plan.Stock, reserved, returned, want)
		} else if *s.stock != want {
			f.violate("%s: Redis stock must be %d - %d reservations + %d returned = %d, and is %d: %+d",
				s.key(), s.plan.Stock, reserved, returned, want, *s.stock, *s.stock-want)
		}
	}
}

// judgeEvents: PostgreSQL's decision made the events it calls for.
func (s *sale) judgeEvents(r *reservation, f *finding) {
	status := r.status()
	compensations := r.compensations()
	want := 0
	if status.Compensated() {
		want = 1
	}
	if n := len(compensations); n != want {
		f.violate("%s: reservation %s ended as %s and must be compensated %d times by PostgreSQL, and was %d times: %+d",
			s.key(), r, statusWords(status), want, n, n-want)
	}
	created := len(r.events) - len(compensations)
	ordered := status == seckill.StatusOrderCreated || status == seckill.StatusExpired || status == seckill.StatusCancelled
	if ordered && created != 1 || status.Rejected() && created != 0 {
		f.violate("%s: reservation %s ended as %s, and PostgreSQL made %d ORDER_CREATED events for it", s.key(), r, status, created)
	}
	if !status.Compensated() {
		return
	}
	due := status.ReturnsStock(s.plan.Resell)
	if r.row.ReturnStock != due {
		f.violate("%s: reservation %s ended as %s, whose unit returns: %t; PostgreSQL recorded %t", s.key(), r, status, due, r.row.ReturnStock)
	}
	for _, ev := range compensations {
		if ev.OperationID != seckill.OperationIDOf(r.id) || ev.Status != status || ev.ReturnStock != due {
			f.violate("%s: the compensation of reservation %s must be %s with status %s and return %t, and the event says %s, %s, %t",
				s.key(), r, seckill.OperationIDOf(r.id), status, due, ev.OperationID, ev.Status, ev.ReturnStock)
		}
	}
}

// judgeReturn: Redis applied the compensation, once, and returned the unit
// exactly if it was to.
func (s *sale) judgeReturn(e *evidence, r *reservation, f *finding) {
	status := r.status()
	due := status.Compensated() && status.ReturnsStock(s.plan.Resell)
	compensated := r.hash != nil && r.hash.compensatedAt != 0
	switch {
	case compensated && !status.Compensated():
		f.violate("%s: reservation %s ended as %s and must not be compensated, and Redis compensated it: +1", s.key(), r, statusWords(status))
	case status.Compensated() && !compensated && e.quiescent():
		f.violate("%s: reservation %s ended as %s and must be compensated once, and Redis never did: -1", s.key(), r, status)
	case compensated && r.hash.returned != due:
		f.violate("%s: reservation %s ended as %s, whose unit returns: %t; Redis returned it: %t", s.key(), r, status, due, r.hash.returned)
	case compensated && r.hash.compensationID != seckill.OperationIDOf(r.id):
		f.violate("%s: the compensation of reservation %s is %s, and Redis applied %q", s.key(), r, seckill.OperationIDOf(r.id), r.hash.compensationID)
	}
	want := 0
	if compensated && r.hash.returned {
		want = 1
	}
	if n := len(r.returns); n != want {
		f.violate("%s: the unit of reservation %s must have returned %d times by the change log, and did %d times: %+d", s.key(), r, want, n, n-want)
	}
}

// judgeReturnOnce is what holds of a return where Redis may have lost writes,
// the compensation's among them: it came once at most, and only where it was
// due.
func (s *sale) judgeReturnOnce(r *reservation, f *finding) {
	most := 0
	if status := r.status(); status.Compensated() && status.ReturnsStock(s.plan.Resell) {
		most = 1
	}
	if n := len(r.returns); n > most {
		f.violate("%s: the unit of reservation %s may have returned %d times by the change log, and did %d times: %+d", s.key(), r, most, n, n-most)
	}
}

func statusWords(s seckill.ReservationStatus) string {
	if s == "" {
		return "undecided"
	}
	return string(s)
}
