package orders

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hotsku/hotsku/system/seckill"
)

var (
	//go:embed sql/by_request.sql
	byRequest string
	//go:embed sql/by_reservation.sql
	byReservation string
	//go:embed sql/by_order.sql
	byOrder string
	//go:embed sql/undecided.sql
	undecided string
)

// record is a decided reservation, or an order, in PostgreSQL.
type record struct {
	reservationID, requestID, status, orderID string
	userID                                    int64
	activityID                                int64 // of an order only

	// of a reservation only
	messageID             string
	returnStock           bool
	reservedAt, decidedAt time.Time
}

func (r *record) answer() seckill.Answer {
	return seckill.Answer{
		Code: seckill.CodeFound, RequestID: r.requestID, ReservationID: r.reservationID,
		Status: r.status, OrderID: r.orderID,
	}
}

// enter takes a place, waiting for one within bounds.
func enter(ctx context.Context, places chan struct{}, limit time.Duration) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case places <- struct{}{}:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// read finds a decided reservation.
func (s *Service) read(ctx context.Context, sql string, args ...any) (r record, found bool, err error) {
	found, err = s.queryRow(ctx, sql, args, &r.reservationID, &r.userID, &r.requestID, &r.status, &r.orderID,
		&r.messageID, &r.returnStock, &r.reservedAt, &r.decidedAt)
	return r, found, err
}

// readOrder finds an order.
func (s *Service) readOrder(ctx context.Context, orderID string) (r record, found bool, err error) {
	found, err = s.queryRow(ctx, byOrder, []any{orderID},
		&r.reservationID, &r.userID, &r.requestID, &r.status, &r.orderID, &r.activityID)
	return r, found, err
}

// allDecided says that the activity is closed and no reservation of the SKU
// can be undecided. Every reservation took one unit of the Redis stock, and
// only compensations gave units back, so
//
//	reservations ever made = initial stock - stock now + units returned.
//
// Once closed none is added, and when PostgreSQL has decided as many, none
// is left in Redis, in the broker or on its way. A return that PostgreSQL
// has decided and Redis has yet to apply only delays the proof.
func (s *Service) allDecided(ctx context.Context, k sku) bool {
	if _, proved := s.settled.Load(k); proved {
		return true
	}
	cacheCtx, cancel := context.WithTimeout(ctx, s.cfg.CacheTimeout)
	defer cancel()
	stock, err := s.cfg.Cache.Stock(cacheCtx, k.activityID, k.skuID)
	if err != nil { // down, or it has forgotten the activity: no proof
		return false
	}
	var left int64
	found, err := s.queryRow(ctx, undecided, []any{k.activityID, k.skuID, stock, s.cfg.SettleAfter}, &left)
	if err != nil || !found || left != 0 {
		return false
	}
	s.settled.Store(k, struct{}{})
	return true
}

// queryRow reads one row into dst. An error is noted here.
func (s *Service) queryRow(ctx context.Context, sql string, args []any, dst ...any) (found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.StoreTimeout)
	defer cancel()
	s.stats.Fallbacks.Add(1)
	err = s.cfg.Pool.QueryRow(ctx, sql, args...).Scan(dst...)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		s.stats.StoreFails.Add(1)
		s.cfg.Log.Warn("orders: database lookup failed", "error", err)
		return false, err
	}
	return true, nil
}
