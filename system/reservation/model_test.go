package reservation_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

func isUnavailable(err error) bool { return errors.Is(err, reservation.ErrUnavailable) }

// model is what the scripts are meant to do, in the plainest terms.
type model struct {
	stock  int64
	byUser map[int64]string
	byReq  map[string]reservation.Candidate
	status map[string]string
	done   map[string]bool // compensated
}

func (m *model) judge(c reservation.Candidate) reservation.Outcome {
	if first, ok := m.byReq[c.RequestID]; ok {
		if first.PayloadHash != c.PayloadHash {
			return reservation.Outcome{Verdict: reservation.VerdictConflict}
		}
		o := reservation.Outcome{Verdict: reservation.VerdictReplayed, ReservationID: first.ReservationID, Status: m.status[first.ReservationID]}
		if m.done[first.ReservationID] {
			o.Status = "COMPENSATED"
		}
		return o
	}
	if id, ok := m.byUser[c.UserID]; ok {
		return reservation.Outcome{Verdict: reservation.VerdictDuplicateUser, ReservationID: id}
	}
	if m.stock == 0 {
		return reservation.Outcome{Verdict: reservation.VerdictSoldOut}
	}
	m.stock--
	m.byUser[c.UserID], m.byReq[c.RequestID], m.status[c.ReservationID] = c.ReservationID, c, "PENDING_MESSAGE"
	return reservation.Outcome{Verdict: reservation.VerdictCreated, ReservationID: c.ReservationID, Status: "PENDING_MESSAGE"}
}

// A random history of reserve batches, marks and compensations on the real
// Redis agrees with the model in every answer and in the stock; order ids of
// replays are not modelled.
func TestScriptsAgreeWithTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		stock := rapid.Int64Range(1, 12).Draw(rt, "stock")
		b := setup(t, stock, func(c *reservation.Config, _ *reservation.Activity) { c.Reopen = time.Microsecond })
		m := &model{stock: stock, byUser: map[int64]string{}, byReq: map[string]reservation.Candidate{}, status: map[string]string{}, done: map[string]bool{}}
		live := func() []string {
			var ids []string
			for _, c := range m.byReq {
				ids = append(ids, c.ReservationID)
			}
			return ids
		}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch rapid.IntRange(0, 3).Draw(rt, "step") {
			case 0, 1:
				var batch []reservation.Candidate
				var want []reservation.Outcome
				for range rapid.IntRange(1, 8).Draw(rt, "batch") {
					c := b.candidate(rapid.Int64Range(1, 15).Draw(rt, "user"), fmt.Sprintf("r-%d", rapid.IntRange(1, 15).Draw(rt, "request")))
					batch, want = append(batch, c), append(want, m.judge(c))
				}
				for i, got := range b.reserve(t, batch...) {
					if got != want[i] {
						rt.Fatalf("candidate %d %+v: got %+v, the model says %+v", i, batch[i], got, want[i])
					}
				}
			case 2:
				ids := live()
				if len(ids) == 0 {
					continue
				}
				id := rapid.SampledFrom(ids).Draw(rt, "mark")
				if err := b.MarkSent(t.Context(), b.activity, sku, []string{id}); err != nil {
					rt.Fatal(err)
				}
				if m.status[id] == "PENDING_MESSAGE" {
					m.status[id] = "MESSAGE_SENT"
				}
			case 3:
				ids := live()
				if len(ids) == 0 {
					continue
				}
				id := rapid.SampledFrom(ids).Draw(rt, "compensate")
				returns := rapid.Bool().Draw(rt, "returns")
				e := event(reservation.Candidate{ReservationID: id, UserID: 1}, b, seckill.EventCompensate, seckill.StatusRejectedLate, returns)
				if _, err := b.Apply(t.Context(), b.activity, sku, []seckill.Event{e, e}); err != nil {
					rt.Fatal(err)
				}
				if !m.done[id] {
					m.done[id], m.status[id] = true, string(seckill.StatusRejectedLate)
					if returns {
						m.stock++
					}
				}
			}
			if got := b.stock(t); got != m.stock {
				rt.Fatalf("stock is %d, the model says %d", got, m.stock)
			}
		}
	})
}
