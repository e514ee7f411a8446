package order

import (
	"time"

	"github.com/hotsku/hotsku/system/seckill"
)

// facts is what the first round trip learned, seen by one transaction that
// holds the SKU's gate and locks on units.
type facts struct {
	offer   offer
	fresh   map[string]struct{} // message ids the inbox had not seen before
	decided map[string]struct{} // reservation ids decided before
	buyers  map[int64]struct{}  // users with an order, of any status
	units   []int64             // free units locked
}

// offer is the activity and its SKU as PostgreSQL knows them now.
type offer struct {
	status     seckill.ActivityStatus
	version    int64
	resell     bool
	priceCents int64
	now        time.Time // the database's clock
	paymentDue time.Time // of orders made now
}

// decision is how one reservation ends in this transaction. orderID and unit
// are set exactly for StatusOrderCreated.
type decision struct {
	*message
	status  seckill.ReservationStatus
	orderID string
	unit    int64
}

// verdict is the decisions about a batch and what needed none.
type verdict struct {
	decisions  []decision
	duplicates int // message known to the inbox: nothing to do (R15.6)
	settled    int // reservation decided by another message: inbox entry only
	short      int // decisions that rest on the stock being exhausted
}

// decide judges each message in order. What a message is judged by, in this
// order: activity open, version, deadline, one order a user, stock
// (question R16.10). It changes nothing but buyers and decided, by which
// later messages of the batch see earlier ones.
func decide(messages []message, f facts, newOrderID func() string) verdict {
	v := verdict{decisions: make([]decision, 0, len(messages))}
	units := f.units
	for i := range messages {
		m := &messages[i]
		if _, fresh := f.fresh[m.MessageID]; !fresh {
			v.duplicates++
			continue
		}
		if _, decided := f.decided[m.ReservationID]; decided {
			v.settled++
			continue
		}
		f.decided[m.ReservationID] = struct{}{}
		d := decision{message: m, status: f.reject(m)}
		switch {
		case d.status != "":
		case len(units) == 0:
			d.status = seckill.StatusRejectedNoFinalStock
			v.short++
		default:
			d.status, d.orderID, d.unit = seckill.StatusOrderCreated, newOrderID(), units[0]
			units = units[1:]
			f.buyers[m.UserID] = struct{}{}
		}
		v.decisions = append(v.decisions, d)
	}
	return v
}

// reject returns why m cannot become an order whatever the stock, or "".
func (f *facts) reject(m *message) seckill.ReservationStatus {
	_, bought := f.buyers[m.UserID]
	switch {
	case f.offer.status == seckill.ActivityClosed:
		return seckill.StatusRejectedClosed
	case f.offer.version != m.ActivityVersion:
		return seckill.StatusRejectedVersion
	case f.offer.now.After(m.ReservationExpiresAt):
		return seckill.StatusRejectedLate
	case bought:
		return seckill.StatusRejectedDuplicateUser
	}
	return ""
}

// event is what the outbox will publish about d.
func (d *decision) event(o offer) seckill.Event {
	e := seckill.Event{
		SchemaVersion: seckill.EventSchemaVersion,
		EventType:     seckill.EventOrderCreated,
		ReservationID: d.ReservationID,
		ActivityID:    d.ActivityID,
		SKUID:         d.SKUID,
		UserID:        d.UserID,
		OrderID:       d.orderID,
		Status:        d.status,
		Traceparent:   d.Traceparent,
	}
	if d.status.Compensated() {
		e.EventType = seckill.EventCompensate
		e.OperationID = seckill.OperationIDOf(d.ReservationID)
		e.ReturnStock = d.status.ReturnsStock(o.resell)
		return e
	}
	e.PaymentDueAt = o.paymentDue.UTC()
	return e
}
