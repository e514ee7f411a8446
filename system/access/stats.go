package access

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/hotsku/hotsku/system/admission"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// Stats counts what became of requests. Safe to read at any time; what a
// connection has decided is added at the latest before it waits for more.
type Stats struct {
	Connections atomic.Int64 // open now
	// Passed and Rejected count requests by the stage of the funnel.
	Passed, Rejected [admission.StageCount]atomic.Int64
	// Durations run from the read of a request's last byte to the write of
	// its answer, by the answer's code.
	Durations [codes]Durations

	others SKUStats
	mu     sync.Mutex // of writers of skus
	skus   atomic.Pointer[map[reservation.SKU]*SKUStats]
}

// SKUStats counts what became of requests for one SKU.
type SKUStats struct {
	Requests atomic.Int64        // parsed, and cut off while being parsed
	Accepted atomic.Int64        // answered as accepted for the first time
	Repeated atomic.Int64        // answered as accepted before
	Answers  [codes]atomic.Int64 // by code, those two included
}

// codes is the size of arrays indexed by code.
const codes = 32

// skusMax bounds the SKUs counted apart: they become labels.
const skusMax = 64

// SKUs returns the counts of the SKUs counted apart, and of all other
// requests under the zero SKU.
func (s *Stats) SKUs() map[reservation.SKU]*SKUStats {
	out := map[reservation.SKU]*SKUStats{}
	if known := s.skus.Load(); known != nil {
		maps.Copy(out, *known)
	}
	out[reservation.SKU{}] = &s.others
	return out
}

// sku returns where requests for a SKU are counted. Only what is on sale is
// counted apart, whatever clients ask for.
func (s *Stats) sku(sku reservation.SKU, gate Gate) *SKUStats {
	if known := s.skus.Load(); known != nil {
		if found := (*known)[sku]; found != nil {
			return found
		}
	}
	if !gate.Knows(sku.ActivityID, sku.SKUID) {
		return &s.others
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	grown := map[reservation.SKU]*SKUStats{}
	if known := s.skus.Load(); known != nil {
		if found := (*known)[sku]; found != nil {
			return found
		}
		if len(*known) >= skusMax {
			return &s.others
		}
		maps.Copy(grown, *known)
	}
	made := &SKUStats{}
	grown[sku] = made
	s.skus.Store(&grown)
	return made
}

// answered counts an answer that was waited for.
func (s *SKUStats) answered(a *seckill.Answer) {
	s.Answers[a.Code].Add(1)
	switch {
	case a.Replayed:
		s.Repeated.Add(1)
	case a.Code.Accepted():
		s.Accepted.Add(1)
	}
}

// tally is a connection's reader's own count: shared counters are touched
// once for many requests, not several times for each. One goroutine.
type tally struct {
	stats *Stats
	gate  Gate

	key      reservation.SKU
	sku      *SKUStats
	requests int64
	answers  [codes]int64
	ended    [admission.StageCount + 1]int64 // requests by the stage that turned them away; the last: none did
}

// at says to which SKU the next request belongs.
func (t *tally) at(sku reservation.SKU) {
	if t.key == sku && t.sku != &t.stats.others {
		return
	}
	found := t.stats.sku(sku, t.gate)
	if found != t.sku {
		t.flushSKU()
	}
	t.key, t.sku = sku, found
}

// admitted counts a request that passed all stages; its answer comes later.
func (t *tally) admitted() {
	t.requests++
	t.ended[admission.StageCount]++
}

// refused counts a request that a stage turned away.
func (t *tally) refused(stage admission.Stage, code seckill.Code) {
	t.requests++
	t.ended[stage]++
	t.answers[code]++
}

func (t *tally) flushSKU() {
	if t.requests == 0 {
		return
	}
	t.sku.Requests.Add(t.requests)
	t.requests = 0
	for code := range t.answers {
		if n := t.answers[code]; n != 0 {
			t.sku.Answers[code].Add(n)
			t.answers[code] = 0
		}
	}
}

// flush adds everything to the shared counters.
func (t *tally) flush() {
	t.flushSKU()
	passed := t.ended[admission.StageCount]
	t.ended[admission.StageCount] = 0
	for stage := admission.StageCount - 1; stage >= 0; stage-- { // who met a stage has passed those before it
		if passed != 0 {
			t.stats.Passed[stage].Add(passed)
		}
		if n := t.ended[stage]; n != 0 {
			t.stats.Rejected[stage].Add(n)
			t.ended[stage] = 0
			passed += n
		}
	}
}
