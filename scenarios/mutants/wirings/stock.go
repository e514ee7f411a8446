package wirings

import (
	"context"
	_ "embed"
	"sync"

	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

//go:embed lua/rebuild.lua
var rebuildLua string

// getThenDecr reads the stock in one call and takes from it in the next,
// which does not look again: whoever read it in between takes the same units.
func getThenDecr(w *app.Wiring, fire Fire) {
	w.Scripts = scripts(edit{"reserve.lua", "elseif left <= 0 or not sellable then", "elseif not sellable then"})
	w.Store = func(s *reservation.Store) app.Store { return &getThenDecrStore{s, fire} }
}

type getThenDecrStore struct {
	app.Store
	fire Fire
}

func (s *getThenDecrStore) Reserve(ctx context.Context, activityID, skuID int64, c []reservation.Candidate) (reservation.Batch, error) {
	left, err := s.Stock(ctx, activityID, skuID)
	if err != nil {
		return reservation.Batch{}, err
	}
	if left <= 0 {
		return s.soldOut(ctx, activityID, skuID, c)
	}
	batch, err := s.Store.Reserve(ctx, activityID, skuID, c)
	if err != nil {
		return batch, err
	}
	if after, err := s.Stock(ctx, activityID, skuID); err == nil && after < 0 {
		s.fire(activityID, "took what was not there")
	}
	return batch, nil
}

// soldOut refuses all but those whose request is known: theirs is a replay.
func (s *getThenDecrStore) soldOut(ctx context.Context, activityID, skuID int64, c []reservation.Candidate) (reservation.Batch, error) {
	var known []reservation.Candidate
	at := make([]int, len(c)) // in known, -1: not there
	for i := range c {
		at[i] = -1
		_, found, err := s.LookupRequest(ctx, activityID, skuID, c[i].RequestID)
		if err != nil {
			return reservation.Batch{}, err
		}
		if found {
			at[i] = len(known)
			known = append(known, c[i])
		}
	}
	var batch reservation.Batch
	if len(known) > 0 {
		var err error
		if batch, err = s.Store.Reserve(ctx, activityID, skuID, known); err != nil {
			return batch, err
		}
	}
	outcomes := make([]reservation.Outcome, len(c))
	for i := range c {
		outcomes[i] = reservation.Outcome{Verdict: reservation.VerdictSoldOut}
		if at[i] >= 0 {
			outcomes[i] = batch.Outcomes[at[i]]
		}
	}
	batch.Outcomes = outcomes
	return batch, nil
}

// stockRebuilt writes the stock into Redis anew from what was ordered, once a
// sale, as if what is under way were not.
func stockRebuilt(w *app.Wiring, fire Fire) {
	w.Scripts = scripts(edit{"warm.lua", "", rebuildLua})
	w.Store = func(s *reservation.Store) app.Store {
		return &rebuiltStore{Store: s, redis: s, fire: fire, ordered: map[reservation.SKU]int64{}}
	}
}

// rebuildAt is how many orders the rebuilder has seen when it rebuilds.
const rebuildAt = 500

type rebuiltStore struct {
	app.Store
	redis *reservation.Store
	fire  Fire

	mu      sync.Mutex
	ordered map[reservation.SKU]int64
}

// Apply is the projector's: its events are the orders there are.
func (s *rebuiltStore) Apply(ctx context.Context, activityID, skuID int64, events []seckill.Event) (reservation.Applied, error) {
	applied, err := s.Store.Apply(ctx, activityID, skuID, events)
	if err != nil {
		return applied, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sku := reservation.SKU{ActivityID: activityID, SKUID: skuID}
	before := s.ordered[sku]
	for i := range events {
		if events[i].EventType == seckill.EventOrderCreated {
			s.ordered[sku]++
		}
	}
	if before < rebuildAt && s.ordered[sku] >= rebuildAt {
		s.rebuild(ctx, sku)
	}
	return applied, nil
}

func (s *rebuiltStore) rebuild(ctx context.Context, sku reservation.SKU) {
	first, _, err := s.ReadLog(ctx, sku.ActivityID, sku.SKUID, reservation.LogStart)
	if err != nil || len(first) == 0 {
		return
	}
	free := first[0].Stock - s.ordered[sku]
	now, err := s.Stock(ctx, sku.ActivityID, sku.SKUID)
	if err != nil || free <= now {
		return
	}
	if err := s.redis.Warm(ctx, reservation.Activity{ActivityID: sku.ActivityID, SKUID: sku.SKUID, Stock: free}); err == nil {
		s.fire(sku.ActivityID, "gave out again what is under way")
	}
}
