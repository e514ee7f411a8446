package orders

import (
	"context"

	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// rebuild brings Redis up to what PostgreSQL has decided, so that the next
// query need not fall back, and the user of a reservation Redis forgot cannot
// buy again (R7.10.8). It puts back only what is missing and never moves
// stock: compensations reach Redis by their events alone. What it cannot do
// is left to the next query, and the answer does not depend on it.
func (s *Service) rebuild(ctx context.Context, k sku, r *record, inCache bool) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CacheTimeout)
	defer cancel()
	status := seckill.ReservationStatus(r.status)
	var n int
	var err error
	switch {
	case !inCache:
		n, err = s.cfg.Cache.Restore(ctx, reservation.Decided{ReservationID: r.reservationID, MessageID: r.messageID, RequestID: r.requestID,
			ActivityID: k.activityID, SKUID: k.skuID, UserID: r.userID, Status: status, OrderID: r.orderID,
			ReturnStock: r.returnStock, ReservedAt: r.reservedAt, DecidedAt: r.decidedAt})
	default:
		s.show(ctx, k, r.reservationID, r.orderID, r.userID, status)
		return
	}
	s.rebuilt(r.reservationID, n, err)
}

// show writes a decision where the projector has not yet, so that whoever was
// told of it is not told of the state before it. It writes the status alone:
// the event that is on its way has every other effect, once.
func (s *Service) show(ctx context.Context, k sku, reservationID, orderID string, userID int64, status seckill.ReservationStatus) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CacheTimeout)
	defer cancel()
	applied, err := s.cfg.Cache.Apply(ctx, k.activityID, k.skuID, []seckill.Event{{SchemaVersion: seckill.EventSchemaVersion,
		EventType: seckill.EventOrderCreated, ReservationID: reservationID, ActivityID: k.activityID, SKUID: k.skuID,
		UserID: userID, OrderID: orderID, Status: status}})
	s.rebuilt(reservationID, applied.Changed, err)
}

func (s *Service) rebuilt(reservationID string, keys int, err error) {
	s.stats.Rebuilt.Add(int64(keys))
	if err != nil {
		s.stats.RebuildFails.Add(1)
		s.cfg.Log.Warn("orders: cannot rebuild redis", "reservation_id", reservationID, "error", err)
	}
}
