package wirings

import (
	"context"
	"slices"

	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// phantomStockReturned gives a unit back that never was: Redis had more than
// there are tokens, and sells it again, without end.
func phantomStockReturned(w *app.Wiring, fire Fire) {
	w.Store = func(s *reservation.Store) app.Store { return &generousStore{s, fire} }
}

type generousStore struct {
	app.Store
	fire Fire
}

func (s *generousStore) Apply(ctx context.Context, activityID, skuID int64, events []seckill.Event) (reservation.Applied, error) {
	changed := slices.Clone(events)
	for i := range changed {
		if e := &changed[i]; e.Status == seckill.StatusRejectedNoFinalStock && !e.ReturnStock {
			e.ReturnStock = true
			s.fire(activityID, "gave a unit back that there is not")
		}
	}
	return s.Store.Apply(ctx, activityID, skuID, changed)
}
