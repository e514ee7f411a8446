package wirings

import (
	"context"
	"sync"

	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/reservation"
)

// gateNeverReopens stays closed once the stock came to nothing, whatever is
// given back.
func gateNeverReopens(w *app.Wiring, fire Fire) {
	w.Store = func(s *reservation.Store) app.Store {
		return &finalStore{Store: s, fire: fire, closed: map[reservation.SKU]bool{}}
	}
}

type finalStore struct {
	app.Store
	fire Fire

	mu     sync.Mutex
	closed map[reservation.SKU]bool
}

// ReadLog is the gate's.
func (s *finalStore) ReadLog(ctx context.Context, activityID, skuID int64, after string) ([]reservation.Change, bool, error) {
	changes, atTail, err := s.Store.ReadLog(ctx, activityID, skuID, after)
	s.mu.Lock()
	defer s.mu.Unlock()
	sku := reservation.SKU{ActivityID: activityID, SKUID: skuID}
	for i := range changes {
		if changes[i].Stock == 0 {
			s.closed[sku] = true
		} else if s.closed[sku] {
			changes[i].Stock = 0
			s.fire(activityID, "stayed closed over returned units")
		}
	}
	return changes, atTail, err
}
