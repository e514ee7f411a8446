package snapshot

import (
	"context"
	"fmt"
	"time"
)

// quietPolls is how many looks in a row must find nothing pending.
const quietPolls = 3

// Backlog is what was pending at one look.
type Backlog struct {
	Pending int64 // reservations without a confirmed message
	Lag     int64 // messages not consumed, all groups, retry topics included
	Outbox  int64 // events not published
	Overdue int64 // orders past their time to be paid: each is yet to expire
}

// Total is 0 when nothing is pending.
func (b Backlog) Total() int64 { return b.Pending + b.Lag + b.Outbox + b.Overdue }

// Quiescence is what waiting for it found.
type Quiescence struct {
	Quiescent bool
	// Waited runs from the last answer to the first of the quiet looks, or to
	// the limit.
	Waited time.Duration
	Last   Backlog
	// Err is why the last look failed, nil if it did not: a store may be gone
	// when a run ends.
	Err error
}

// Quiesce waits until nothing is pending anywhere, three looks running, or
// until limit after lastAnswer. It returns an error only when ctx ends.
// progress, if not nil, is told of every look that succeeded.
func (s *Stores) Quiesce(ctx context.Context, lastAnswer time.Time, limit time.Duration, progress func(Backlog)) (Quiescence, error) {
	return quiesce(ctx, s.Backlog, lastAnswer, limit, s.cfg.PollInterval, progress)
}

func quiesce(ctx context.Context, look func(context.Context) (Backlog, error), lastAnswer time.Time, limit, interval time.Duration,
	progress func(Backlog)) (Quiescence, error) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var q Quiescence
	quiet, since := 0, time.Time{}
	for {
		began := time.Now()
		var found Backlog
		if found, q.Err = look(ctx); q.Err == nil {
			q.Last = found
			if progress != nil {
				progress(found)
			}
		}
		if ctx.Err() != nil {
			return q, fmt.Errorf("wait for quiescence: %w", ctx.Err())
		}
		switch {
		case q.Err != nil || found.Total() > 0:
			quiet = 0
		case quiet == 0:
			quiet, since = 1, began
		default:
			quiet++
		}
		if quiet == quietPolls {
			q.Quiescent, q.Waited = true, max(0, since.Sub(lastAnswer))
			return q, nil
		}
		// A look that may still become the third of three quiet ones is
		// awaited beyond the limit: quiescence began before it.
		if quiet == 0 && time.Since(lastAnswer) >= limit {
			q.Waited = time.Since(lastAnswer)
			return q, nil
		}
		select {
		case <-ctx.Done():
			return q, fmt.Errorf("wait for quiescence: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// Backlog takes one look at all three stores.
func (s *Stores) Backlog(ctx context.Context) (Backlog, error) {
	var b Backlog
	var err error
	if b.Pending, err = s.pending(ctx); err != nil {
		return b, err
	}
	if b.Lag, err = s.lag(ctx); err != nil {
		return b, err
	}
	b.Outbox, b.Overdue, err = s.undone(ctx)
	return b, err
}
