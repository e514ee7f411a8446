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
	case status == seckill.StatusOrderCreated:
		// The same event the projector is late with; each has its effect once.
		var applied reservation.Applied
		applied, err = s.cfg.Cache.Apply(ctx, k.activityID, k.skuID, []seckill.Event{{SchemaVersion: seckill.EventSchemaVersion,
			EventType: seckill.EventOrderCreated, ReservationID: r.reservationID, ActivityID: k.activityID, SKUID: k.skuID,
			UserID: r.userID, OrderID: r.orderID, Status: status}})
		n = applied.Changed
	}
	s.stats.Rebuilt.Add(int64(n))
	if err != nil {
		s.stats.RebuildFails.Add(1)
		s.cfg.Log.Warn("orders: cannot rebuild redis", "reservation_id", r.reservationID, "error", err)
	}
}
