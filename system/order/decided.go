package order

import (
	"time"

	"github.com/hotsku/hotsku/system/seckill"
)

// Decided is how one reservation ended, committed.
type Decided struct {
	Message      *seckill.OrderCreateMessage
	Status       seckill.ReservationStatus
	OrderID      string // with TokenID, only of StatusOrderCreated
	TokenID      int64
	Began, Ended time.Time // of the transaction
}

// committed counts and tells what a transaction that began at start decided.
func (p *Processor) committed(v verdict, start time.Time) {
	now := p.cfg.Now()
	p.stats.committed(v, now.Sub(start))
	if p.cfg.Decided == nil || len(v.decisions) == 0 {
		return
	}
	told := make([]Decided, len(v.decisions))
	for i, d := range v.decisions {
		told[i] = Decided{Message: &d.OrderCreateMessage, Status: d.status, OrderID: d.orderID, TokenID: d.unit, Began: start, Ended: now}
	}
	p.cfg.Decided(told)
}
