package valve

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/hotsku/hotsku/system/reservation"
)

// PendingStore is where reservations wait for a confirmed message.
type PendingStore interface {
	Activities(ctx context.Context) ([]reservation.SKU, error)
	PendingCounts(ctx context.Context, skus []reservation.SKU) ([]int64, error)
	OldestPending(ctx context.Context, activityID, skuID int64) (time.Duration, error)
}

// PendingSource measures SignalOldestPending over all SKUs. count is set to
// how many reservations are pending.
func PendingSource(store PendingStore, count *atomic.Int64) Source {
	return Source{Name: "pending reservations", Measure: func(ctx context.Context) (map[Signal]int64, error) {
		// What is spoilt is the scanner's to tell of. That valves close for
		// want of a figure would end every sale for one SKU's sake.
		skus, err := store.Activities(ctx)
		if err != nil && !errors.Is(err, reservation.ErrUnreadable) {
			return nil, err
		}
		counts, err := store.PendingCounts(ctx, skus)
		if err != nil && !errors.Is(err, reservation.ErrUnreadable) {
			return nil, err
		}
		total, oldest := int64(0), time.Duration(0)
		for i, n := range counts {
			if n == 0 {
				continue
			}
			total += n
			age, err := store.OldestPending(ctx, skus[i].ActivityID, skus[i].SKUID)
			if err != nil {
				return nil, err
			}
			oldest = max(oldest, age)
		}
		count.Store(total)
		return map[Signal]int64{SignalOldestPending: oldest.Milliseconds()}, nil
	}}
}

// BacklogSource measures SignalLag and SignalOldestMessage. measure returns
// how many messages wait and how old the oldest is.
func BacklogSource(measure func(ctx context.Context) (messages int64, oldest time.Duration, err error)) Source {
	return Source{Name: "broker", Measure: func(ctx context.Context) (map[Signal]int64, error) {
		messages, oldest, err := measure(ctx)
		if err != nil {
			return nil, err
		}
		return map[Signal]int64{SignalLag: messages, SignalOldestMessage: oldest.Milliseconds()}, nil
	}}
}

// DatabaseSource measures SignalDatabaseDown: how long ago check last
// succeeded, 0 while it does. Its time before the first check counts as up.
func DatabaseSource(check func(ctx context.Context) error) Source {
	up := time.Now()
	return Source{Name: "database", Measure: func(ctx context.Context) (map[Signal]int64, error) {
		// The figure is to be posted in the time that is left.
		deadline, ok := ctx.Deadline()
		bounded, cancel := ctx, context.CancelFunc(func() {})
		if ok {
			bounded, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		}
		defer cancel()
		if check(bounded) == nil {
			up = time.Now()
			return map[Signal]int64{SignalDatabaseDown: 0}, nil
		}
		return map[Signal]int64{SignalDatabaseDown: time.Since(up).Milliseconds()}, nil
	}}
}
