package order

import (
	"sync/atomic"
	"time"

	"github.com/hotsku/hotsku/system/seckill"
)

// Stats counts what a Processor did, for telemetry. Safe for concurrent use;
// read it field by field. The counts are this process's view: after a COMMIT
// whose reply was lost its orders appear as duplicates.
type Stats struct {
	Orders     atomic.Int64
	Duplicates atomic.Int64 // messages the inbox knew, or repeated within a batch
	Settled    atomic.Int64 // first sight of a message whose reservation was decided
	Parked     atomic.Int64 // dead letters written

	Rejected Rejections

	Transactions   atomic.Int64 // committed
	TxNanos        atomic.Int64 // sum over committed transactions
	TxNanosMax     atomic.Int64
	Reruns         atomic.Int64 // attempts repeated behind the exclusive gate
	Bisections     atomic.Int64
	TransientFails atomic.Int64 // attempts repeated after a back-off
	CommitsUnknown atomic.Int64 // COMMITs without a reply
	ClaimsEmpty    atomic.Int64 // claims that found no unit at all for someone in want
	ShortInDoubt   atomic.Int64 // shortages that could not be proved and were run again
}

// Rejections counts reservations rejected, by reason.
type Rejections struct {
	NoFinalStock  atomic.Int64
	DuplicateUser atomic.Int64
	Late          atomic.Int64
	Closed        atomic.Int64
	Version       atomic.Int64
	Poison        atomic.Int64
}

// Of returns the counter of a rejected status, nil for any other.
func (r *Rejections) Of(s seckill.ReservationStatus) *atomic.Int64 {
	switch s {
	case seckill.StatusRejectedNoFinalStock:
		return &r.NoFinalStock
	case seckill.StatusRejectedDuplicateUser:
		return &r.DuplicateUser
	case seckill.StatusRejectedLate:
		return &r.Late
	case seckill.StatusRejectedClosed:
		return &r.Closed
	case seckill.StatusRejectedVersion:
		return &r.Version
	case seckill.StatusRejectedPoison:
		return &r.Poison
	}
	return nil
}

func (s *Stats) committed(v verdict, took time.Duration) {
	s.Transactions.Add(1)
	s.TxNanos.Add(int64(took))
	for {
		top := s.TxNanosMax.Load()
		if int64(took) <= top || s.TxNanosMax.CompareAndSwap(top, int64(took)) {
			break
		}
	}
	s.Duplicates.Add(int64(v.duplicates))
	s.Settled.Add(int64(v.settled))
	for _, d := range v.decisions {
		if counter := s.Rejected.Of(d.status); counter != nil {
			counter.Add(1)
		} else {
			s.Orders.Add(1)
		}
	}
}
