package access

import (
	"testing"

	"github.com/hotsku/hotsku/system/admission"
	"github.com/hotsku/hotsku/system/seckill"
)

func (h *held) Refuses() string { return "" }

// shut takes nothing, for a reason.
type shut struct {
	*held
	reason string
}

func (s shut) Refuses() string { return s.reason }

// R7.11.3 R7.11.5 R16.11: while nothing may be reserved a request is refused
// with the reason, in this process; what is known to be sold out stays so.
func TestWhileNothingMayBeReserved(t *testing.T) {
	for _, reason := range []string{seckill.ReasonBrokerBreaker, seckill.ReasonOrderLag, seckill.ReasonRedis} {
		s, addr := start(t, Config{}, sold{2: true}, shut{newHeld(), reason})
		c := dial(t, addr)
		c.send(t, orderOf(1, "r1")+orderOf(2, "r2"))
		status, a, _ := c.answer(t)
		if status != 503 || a.Code != seckill.CodeUnavailable || a.Reason != reason || a.RequestID != "r1" || a.RetryAfterMS == 0 {
			t.Errorf("%d %+v", status, a)
		}
		if _, a, _ := c.answer(t); a.Code != seckill.CodeSoldOut {
			t.Errorf("of what is sold out: %+v", a)
		}
		c.Close()
		if got := s.Stats.Rejected[admission.StageValves].Load(); got > 1 { // counted when the connection has its turn
			t.Errorf("%d refused", got)
		}
	}
	// Switched off, for measuring.
	sub := shut{newHeld(), seckill.ReasonOrderLag}
	_, addr := start(t, Config{Without: admission.StageSet(0).With(admission.StageValves)}, sold{}, sub)
	c := dial(t, addr)
	c.send(t, orderOf(1, "r1"))
	sub.next(t).queued()
	if _, a, _ := c.answer(t); a.Code != seckill.CodeQueued {
		t.Errorf("without the stage: %+v", a)
	}
}

// BenchmarkShut is the path of all requests during an outage.
func BenchmarkShut(b *testing.B) {
	benchmark(b, sold{}, shut{newHeld(), seckill.ReasonOrderLag})
}
