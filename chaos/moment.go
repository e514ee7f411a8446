package chaos

import (
	"context"
	"fmt"
	"time"
)

// Moment is a time after the load began.
type Moment struct {
	Load  <-chan struct{} // closed when the load begins
	After time.Duration   // from then
}

// Wait returns at the moment, or with ctx.
func (m Moment) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-m.Load:
	}
	return pause(ctx, m.After)
}

// Counter reads something that the product counts.
type Counter func(ctx context.Context) (int64, error)

// lookEvery is the time between two looks at what is waited for.
const lookEvery = 50 * time.Millisecond

// rise waits until a counter shows more than it did, and returns by how much.
func (c Counter) rise(ctx context.Context, was int64) (int64, error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		now, err := c(ctx)
		if err != nil {
			return 0, err
		}
		if now > was {
			return now - was, nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-tick.C:
		}
	}
}

// pause lets time pass, or returns with ctx.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// untilItWorks asks until something works.
func untilItWorks(ctx context.Context, works func(context.Context) error) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		err := works(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-tick.C:
		}
	}
}
