package orders

import (
	"context"
	"errors"

	"github.com/hotsku/hotsku/system/lifecycle"
	"github.com/hotsku/hotsku/system/seckill"
)

// Ender ends orders; package lifecycle does.
type Ender interface {
	Pay(ctx context.Context, c lifecycle.Claim) (lifecycle.Outcome, error)
	Cancel(ctx context.Context, c lifecycle.Claim) (lifecycle.Outcome, error)
}

// Pay marks the order paid: it stands where the payment provider's
// confirmation comes in. The answer is FOUND with status PAID, replayed if it
// was paid before; ORDER_ENDED with the status if it had ended otherwise; and
// UNAVAILABLE if that is not known: the same call again will tell.
func (s *Service) Pay(ctx context.Context, activityID, userID int64, orderID string) seckill.Answer {
	return s.end(ctx, s.cfg.Ender.Pay, seckill.OrderPaid, lifecycle.Claim{OrderID: orderID, UserID: userID, ActivityID: activityID})
}

// Cancel cancels the unpaid order; answers are as Pay's, with CANCELLED.
func (s *Service) Cancel(ctx context.Context, activityID, userID int64, orderID string) seckill.Answer {
	return s.end(ctx, s.cfg.Ender.Cancel, seckill.OrderCancelled, lifecycle.Claim{OrderID: orderID, UserID: userID, ActivityID: activityID})
}

func (s *Service) end(ctx context.Context, call func(context.Context, lifecycle.Claim) (lifecycle.Outcome, error),
	want seckill.OrderStatus, c lifecycle.Claim) seckill.Answer {
	if !enter(ctx, s.ending, s.cfg.EndWait) {
		return s.rateLimited()
	}
	defer func() { <-s.ending }()
	o, err := call(ctx, c)
	switch {
	case errors.Is(err, lifecycle.ErrUnknownOrder):
		return seckill.Answer{Code: seckill.CodeProcessing, OrderID: c.OrderID}
	case errors.Is(err, lifecycle.ErrNotOwner):
		return forbidden()
	case err != nil:
		s.stats.EndFails.Add(1)
		s.cfg.Log.Warn("orders: order not ended", "order_id", c.OrderID, "error", err)
		return seckill.Answer{Code: seckill.CodeUnavailable, OrderID: c.OrderID, RetryAfterMS: retryAfterMS,
			Reason: "outcome unknown: the same call again will tell"}
	}
	if o.Status == seckill.OrderCancelled || o.Status == seckill.OrderExpired {
		s.show(ctx, sku{c.ActivityID, o.SKUID}, o.ReservationID, c.OrderID, c.UserID, seckill.ReservationStatus(o.Status))
	}
	a := seckill.Answer{Code: seckill.CodeFound, OrderID: c.OrderID, ReservationID: o.ReservationID, RequestID: o.RequestID,
		Status: string(o.Status), Replayed: !o.Changed}
	if o.Status != want {
		a.Code, a.Replayed = seckill.CodeOrderEnded, false
	}
	return a
}
