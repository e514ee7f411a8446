package scanner

import (
	"context"
	"fmt"
	"slices"

	"github.com/hotsku/hotsku/system/reservation"
)

// handOver takes out of due what is beyond its time and hands it to a person
// (R7.8.5), and returns the rest. PostgreSQL decides first, Redis follows: a
// scanner that dies in between leaves a reservation that is claimed, and found
// decided, again. While PostgreSQL does not answer, nobody is given up on:
// everything is sent once more.
func (s *Scanner) handOver(ctx context.Context, sku reservation.SKU, due []reservation.Reservation) ([]reservation.Reservation, error) {
	now := s.now()
	var late []reservation.Reservation
	rest := make([]reservation.Reservation, 0, len(due))
	for _, r := range due {
		if r.SendAttempts > s.cfg.HandOverAttempts && now.Sub(r.ReservedAt) >= s.cfg.HandOverAfter {
			late = append(late, r)
		} else {
			rest = append(rest, r)
		}
	}
	if len(late) == 0 {
		return due, nil
	}
	call, cancel := context.WithTimeout(ctx, s.cfg.Call)
	defer cancel()
	ended, err := s.desk.SetAside(call, late)
	if err != nil {
		s.log.Warn("reservations beyond their time cannot be handed over; they are sent once more", "activity_id", sku.ActivityID,
			"sku_id", sku.SKUID, "reservations", len(late), "error", err)
		return due, nil
	}
	s.Stats.HandedOver.Add(int64(len(ended)))
	var arrived []string // decided otherwise: their message was there all along
	for _, r := range late {
		if !slices.Contains(ended, r.ReservationID) {
			arrived = append(arrived, r.ReservationID)
			continue
		}
		s.log.Error("reservation handed to a person: its message was never confirmed", "activity_id", sku.ActivityID, "sku_id", sku.SKUID,
			"reservation_id", r.ReservationID, "message_id", r.MessageID, "request_id", r.RequestID, "retry_count", r.SendAttempts,
			"reserved_at", r.ReservedAt, "error_class", r.LastErrorCode)
	}
	if err := s.note(ctx, func(ctx context.Context) error {
		if err := s.store.SetAside(ctx, sku.ActivityID, sku.SKUID, ended); err != nil {
			return err
		}
		return s.store.MarkSent(ctx, sku.ActivityID, sku.SKUID, arrived)
	}); err != nil {
		return nil, fmt.Errorf("handed %d reservations over, but did not note it: %w", len(ended), err)
	}
	return rest, nil
}
