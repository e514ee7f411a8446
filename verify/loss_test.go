package verify

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// lostWorld is a sale in which Redis lost a reservation after it was answered
// and before anything of it was sent: no store knows it, and the unit is free.
// It returns what its owner is told at the end.
func lostWorld(contracts ...string) (*world, *rundir.Query) {
	w := healthyWorld()
	w.plan.LossContracts = contracts
	r := w.lonely()
	order := w.orderOf(r.id)
	token := w.token(w.orders[order].InventoryTokenID)
	token.Status, token.OrderID, token.ReservationID = "AVAILABLE", nil, nil
	w.forget(r.id)
	w.messages = slices.DeleteFunc(w.messages, func(m rundir.Message) bool { return m.Keys == r.id })
	for i := range w.messages {
		w.messages[i].Offset = int64(i)
	}
	w.offsets[0].Max, w.offsets[0].Consumed = int64(len(w.messages)), int64(len(w.messages))
	w.keys = slices.DeleteFunc(w.keys, func(k rundir.RedisKey) bool {
		return strings.HasSuffix(k.Key, r.id) || k.String == r.id || k.Hash["reservation_id"] == r.id
	})
	for i := range w.log {
		l := &w.log[i]
		if at := slices.Index(l.Reservations, r.id); at >= 0 {
			l.Reservations, l.Users = slices.Delete(l.Reservations, at, at+1), slices.Delete(l.Users, at, at+1)
		}
	}
	w.setStock(+1)
	w.queries = slices.DeleteFunc(w.queries, func(q rundir.Query) bool { return q.User == r.user && !q.Census })
	q := &w.queries[slices.IndexFunc(w.queries, func(q rundir.Query) bool { return q.User == r.user })]
	q.Code, q.Status, q.Reason, q.OrderID, q.ReservationID = seckill.CodeNotAccepted.String(), "", "", "", ""
	w.timeline = append(w.timeline, rundir.TimelineEvent{AtMS: w.recordOf(r).Done/1e6 + 1, Actor: "kill@redis", Target: "redis", Event: "bit", Hits: map[string]int64{"killed": 1}})
	return w, q
}

// What Redis may lose by contract is no violation where it ends in a rejection
// that the query shows; without the contract it is, and so it is where the
// query still says PROCESSING.
func TestALostReservationEndsInARejectionTheQueryShows(t *testing.T) {
	for name, c := range map[string]struct {
		contracts []string
		spoil     func(*world, *rundir.Query)
		violated  []string
		says      string // by I4
	}{
		"failover":                 {contracts: []string{rundir.LossRedisFailover}},
		"restored older":           {contracts: []string{rundir.LossRedisRestoredOlder}},
		"everysec, killed at once": {contracts: []string{rundir.LossRedisEverysec}},
		"no contract":              {violated: []string{"I4", "I13"}, says: "and no store knows it: -1"},
		"another contract":         {contracts: []string{rundir.LossBrokerDisk}, violated: []string{"I4", "I13"}, says: "and no store knows it: -1"},
		"never rejected": {[]string{rundir.LossRedisFailover}, func(_ *world, q *rundir.Query) { q.Code = seckill.CodeProcessing.String() },
			[]string{"I4"}, "was lost with Redis before it was sent and must end in a rejection the query shows, and the query says PROCESSING: -1"},
		"everysec, killed later": {[]string{rundir.LossRedisEverysec}, func(w *world, _ *rundir.Query) {
			w.timeline[len(w.timeline)-1].AtMS += rundir.LossEverysecMS
		}, []string{"I4"}, "and no store knows it, though Redis may lose only the 2000 ms before it was killed: -1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, q := lostWorld(c.contracts...)
			if c.spoil != nil {
				c.spoil(w, q)
			}
			run := w.judged(t)
			var violated []string
			for _, inv := range run.Invariants {
				if inv.Status == rundir.StatusViolated && inv.ID != "I10" && inv.ID != "I1" { // the log is not doctored to the end
					violated = append(violated, inv.ID)
				}
			}
			if !slices.Equal(violated, c.violated) || !strings.Contains(witnesses(run, "I4"), c.says) {
				t.Errorf("violated %v, want %v, I4 saying %q\n%s", violated, c.violated, c.says, strings.Join(run.Reasons, "\n"))
			}
		})
	}
}

// The contract takes nothing else: a unit still returns once at most, stock is
// never negative, and two orders of a user are two too many.
func TestALossContractReplacesNothingElse(t *testing.T) {
	for name, c := range map[string]struct {
		tell     func(*world) string
		violated string
	}{
		"a return twice": {func(w *world) string {
			r := w.rejected()
			i := slices.IndexFunc(w.log, func(l rundir.LogEntry) bool { return l.Op == logReturn && l.Reservations[0] == r.ReservationID })
			w.log = append(w.log, w.log[i])
			return "may have returned 1 times by the change log, and did 2 times: +1"
		}, "I9"},
		"negative stock": {func(w *world) string {
			w.log[len(w.log)/2].Stock = -1
			return "left -1: -1"
		}, "I1"},
		"two orders of a user": {func(w *world) string {
			w.orders[1].UserID = w.orders[0].UserID
			return fmt.Sprintf("user %d is promised at most one order and has 2", w.orders[0].UserID)
		}, "I2"},
		"an order too many": {func(w *world) string {
			w.orders[1].InventoryTokenID = w.orders[0].InventoryTokenID
			return "2 hold it"
		}, "I1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := healthyWorld()
			w.plan.LossContracts = []string{rundir.LossRedisFailover}
			says := c.tell(w)
			if got := witnesses(w.judged(t), c.violated); !strings.Contains(got, says) {
				t.Errorf("%s says %q, want %q", c.violated, got, says)
			}
		})
	}
}

func TestAnUnknownLossContractIsNoPlan(t *testing.T) {
	w := healthyWorld()
	w.plan.LossContracts = []string{"bad-luck"}
	if run := w.judged(t); run.ExitCode != ExitInconclusive || !strings.Contains(run.Reasons[0], `loss contract "bad-luck" is not known`) {
		t.Errorf("exit %d, %q", run.ExitCode, run.Reasons)
	}
}

// unknownOutcome takes the answer from a request whose reservation became an
// order, and returns the request and the order's SALE.
func (w *world) unknownOutcome() (*history.Record, *rundir.LedgerRow) {
	r := w.lonely()
	a := w.recordOf(r)
	a.Outcome, a.Code, a.Status, a.Tag = history.TimedOut, 0, 0, [16]byte{}
	a.Done = a.Sent + int64(time.Second)
	w.queries = slices.DeleteFunc(w.queries, func(q rundir.Query) bool { return q.User == r.user })
	return a, &w.ledger[slices.IndexFunc(w.ledger, func(l rundir.LedgerRow) bool { return l.EntryType == entrySale && l.ReservationID == r.id })]
}

// Each unknown outcome is resolved from the stores within its budget, which
// counts from the last fault's end if that was later.
func TestAnUnknownOutcomeIsSettledWithinItsBudget(t *testing.T) {
	settled := func(after time.Duration, more ...func(*world)) *rundir.Run {
		w := healthyWorld()
		a, sale := w.unknownOutcome()
		sale.CommittedAt = w.wall(a.Done).Truncate(time.Microsecond).Add(after)
		w.plan.Limits.AmbiguityMS = 2000
		w.plan.SLOs = nil
		for _, m := range more {
			m(w)
		}
		return w.judged(t)
	}
	if run := settled(2 * time.Second); run.ExitCode != ExitPass {
		t.Errorf("%q", run.Reasons)
	}
	run := settled(2*time.Second + 11*time.Millisecond)
	if got := witnesses(run, "I14"); !strings.Contains(got, "must be settled within 2000 ms") || !strings.Contains(got, "ended (ORDER_CREATED) 11.000 ms later than that") {
		t.Errorf("I14 says %q", got)
	}
	healed := func(w *world) {
		w.timeline = append(w.timeline, rundir.TimelineEvent{AtMS: 5000, Actor: "kill@p", Target: "access-1", Event: "healed"})
	}
	if run := settled(3*time.Second, healed); run.ExitCode != ExitPass {
		t.Errorf("%q", run.Reasons)
	}
	again := func(w *world) { // the reservation was made by the same request sent again, a second later
		a := w.records[slices.IndexFunc(w.records, func(a history.Record) bool { return a.Outcome == history.TimedOut })]
		r := w.byUser[int64(a.Subject)]
		w.key("resv:" + r.id).Hash["reserved_at"] = fmt.Sprint(w.us(a.Done + int64(time.Second)))
	}
	if run := settled(3*time.Second, again); run.ExitCode != ExitPass {
		t.Errorf("%q", run.Reasons)
	}
	undecided := healthyWorld()
	a, sale := undecided.unknownOutcome()
	undecided.forget(sale.ReservationID)
	if got := witnesses(undecided.judged(t), "I14"); !strings.Contains(got, fmt.Sprintf("the outcome of request %d of user %d was unknown", a.N, a.Subject)) ||
		!strings.Contains(got, "is undecided in the snapshot") {
		t.Errorf("I14 says %q", got)
	}
}
