package wirings

import (
	"context"

	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/reservation"
)

// gateForgetsWinners lets the gate know nobody as a member, so that a winner
// who asks again is told that it is sold out.
func gateForgetsWinners(w *app.Wiring, fire Fire) {
	w.Store = func(s *reservation.Store) app.Store { return &forgetfulStore{s, fire} }
}

type forgetfulStore struct {
	app.Store
	fire Fire
}

// ReadLog is the gate's.
func (s *forgetfulStore) ReadLog(ctx context.Context, activityID, skuID int64, after string) ([]reservation.Change, bool, error) {
	changes, atTail, err := s.Store.ReadLog(ctx, activityID, skuID, after)
	for i := range changes {
		if len(changes[i].Users) > 0 && changes[i].Stock == 0 {
			s.fire(activityID, "closed on winners it does not know")
		}
		changes[i].Users = nil
	}
	return changes, atTail, err
}
