package reservation

import (
	"context"
	"fmt"

	"github.com/hotsku/hotsku/system/seckill"
)

// Applied counts what Apply did with its events.
type Applied struct {
	Changed int // had an effect
	Known   int // were applied before
	Missing int // name a reservation this Redis does not hold
}

// Apply writes up to BatchMax decisions about reservations of one SKU into
// Redis, each once by the reservation's own record of it. Repeating a call
// changes nothing.
func (s *Store) Apply(ctx context.Context, activityID, skuID int64, events []seckill.Event) (Applied, error) {
	var a Applied
	n := len(events)
	if n == 0 || n > BatchMax {
		return a, fmt.Errorf("apply: %d events, must be 1 to %d", n, BatchMax)
	}
	k := seckill.KeysOf(activityID, skuID)
	keys := make([]string, 5, 5+n)
	keys[0], keys[1], keys[2], keys[3], keys[4] = k.Meta(), k.Stock(), k.SoldOut(), k.Pending(), k.Log()
	args := make([]any, 0, 2+5*n)
	args = append(args, n, s.cfg.Reopen.Microseconds())
	for i := range events {
		e := &events[i]
		if e.ActivityID != activityID || e.SKUID != skuID {
			return a, fmt.Errorf("apply: event of %s belongs to another SKU", e.ReservationID)
		}
		kind, returns := "order", "0"
		if e.EventType == seckill.EventCompensate {
			kind = "compensate"
			if e.ReturnStock {
				returns = "1"
			}
		}
		keys = append(keys, k.Reservation(e.ReservationID))
		args = append(args, kind, string(e.Status), e.OrderID, e.OperationID, returns)
	}
	results, err := s.apply.run(ctx, s.rdb, keys, args).Int64Slice()
	if err != nil {
		return a, wrap("apply", err)
	}
	if len(results) != n {
		return a, fmt.Errorf("apply: reply has %d parts, want %d", len(results), n)
	}
	for _, r := range results {
		switch r {
		case 1:
			a.Changed++
		case 0:
			a.Known++
		default:
			a.Missing++
		}
	}
	return a, nil
}
