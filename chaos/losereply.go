package chaos

import (
	"context"

	"github.com/hotsku/hotsku/chaos/proxy"
)

// LoseReply loses replies of one kind, from a moment of the load on: the
// server did what they answer, and the client never hears of it.
type LoseReply struct {
	Way    *proxy.Proxy
	What   string // in the name
	Loss   proxy.Loss
	Moment Moment
	// Felt counts what the product does only because it does not know. nil
	// asks for nothing.
	Felt Counter

	losing *proxy.Losing
	before int64 // Felt's
}

// LoseReplyName is that of a fault which loses such replies.
func LoseReplyName(what string) string { return "lose-reply@" + what }

// Name is "lose-reply@WHAT", "lose-reply@COMMIT".
func (l *LoseReply) Name() string { return LoseReplyName(l.What) }

// Target is the way.
func (l *LoseReply) Target() string { return l.Way.Name() }

// Setup has nothing to prepare: the way stands before there is any traffic.
func (l *LoseReply) Setup(context.Context) error { return nil }

// Works is nil if the store answers through the way.
func (l *LoseReply) Works(ctx context.Context) error { return l.Way.Works(ctx) }

// Inject waits for the moment; replies are counted from then on.
func (l *LoseReply) Inject(ctx context.Context) (err error) {
	if err := l.Moment.Wait(ctx); err != nil {
		return err
	}
	if l.Felt != nil {
		if l.before, err = l.Felt(ctx); err != nil {
			return err
		}
	}
	l.losing, err = l.Way.Lose(l.Loss)
	return err
}

// WaitUntilItBites waits until the last that is to be lost is lost, and says
// which they were.
func (l *LoseReply) WaitUntilItBites(ctx context.Context) (map[string]int64, string, error) {
	select {
	case <-ctx.Done():
		return nil, "", ctx.Err()
	case <-l.losing.Ended():
	}
	hits := map[string]int64{"replies_lost": l.losing.Lost()}
	if l.Felt != nil {
		felt, err := l.Felt.rise(ctx, l.before)
		if err != nil {
			return nil, "", err
		}
		hits["felt"] = felt
	}
	return hits, l.losing.String(), nil
}

// Heal loses no more.
func (l *LoseReply) Heal(context.Context) error {
	if l.losing != nil {
		l.Way.Keep()
	}
	return nil
}

// WaitUntilHealed waits until the store answers through the way.
func (l *LoseReply) WaitUntilHealed(ctx context.Context) error { return untilItWorks(ctx, l.Works) }
