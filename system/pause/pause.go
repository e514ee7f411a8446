// Package pause waits between two tries, and ends with its context.
package pause

import (
	"context"
	"time"
)

// For waits for d or until ctx ends; then it returns ctx's cause.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
