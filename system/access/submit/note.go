package submit

import (
	"context"

	"github.com/hotsku/hotsku/system/reservation"
)

// failuresMax bounds the unconfirmed batches whose cause is still to be noted.
const failuresMax = 64

// failure is a batch whose send was not confirmed, by SKU.
type failure struct {
	code string
	ids  map[reservation.SKU][]string
}

// noteFailure queues the cause for whoever looks into a pending reservation.
// Best effort: nothing depends on it.
func (s *Service) noteFailure(batch []*ticket, code string) {
	f := failure{code: code, ids: map[reservation.SKU][]string{}}
	for _, t := range batch {
		sku := reservation.SKU{ActivityID: t.cmd.ActivityID, SKUID: t.cmd.SKUID}
		f.ids[sku] = append(f.ids[sku], t.reservationID)
	}
	select {
	case s.failures <- f:
	default:
	}
}

// noteLoop writes the causes to Redis, as last_error_code.
func (s *Service) noteLoop() {
	for f := range s.failures {
		for sku, ids := range f.ids {
			for len(ids) > 0 {
				part := ids[:min(len(ids), reservation.BatchMax)]
				ids = ids[len(part):]
				ctx, cancel := context.WithTimeout(context.Background(), s.cfg.CallTimeout)
				err := s.store.NoteFailure(ctx, sku.ActivityID, sku.SKUID, part, f.code)
				cancel()
				if err == nil {
					continue
				}
				s.log.Debug("cause of an unconfirmed send not noted", "error", err)
				if s.closed.Load() { // a drain does not wait for a Redis that is gone
					for range s.failures {
					}
				}
				ids = nil
			}
		}
	}
}
