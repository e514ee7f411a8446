package scenarios

import (
	"time"

	"github.com/hotsku/hotsku/verify/rundir"
)

// The workload's shares (R13.5.4: 10 % repeated request ids).
const (
	repeatPermille   = 100
	conflictPermille = 1
	sameUserPermille = 10
)

// Ids of the sale. The warm-up sells another activity, so that nothing of it
// is judged.
const (
	activityID       = 10001
	skuID            = 20001
	warmUpActivityID = 10000
	firstUser        = 1_000_000_000
	priceCents       = 9900
	saleLength       = DurationMax + time.Hour
)

// sendLagP99Limit is above what a healthy generator needs on a busy machine
// and below what would distort a latency that is judged at 100 ms.
const sendLagP99Limit = 10 // ms

// sendLagP99LimitUnjudged is for runs that judge no latency. The load need
// only have been offered about as planned, and a machine that many processes
// share, with a server that starts again on it, is late by more than a bench
// may be.
const sendLagP99LimitUnjudged = 1000 // ms

// gateLag is how long a gate may refuse on old knowledge
// (contracts.md section 3).
const gateLag = 200 * time.Millisecond

func (s *Scenario) plan(seed uint64, command, sloMode string, scheduled int64, now time.Time) *rundir.Plan {
	p := &rundir.Plan{
		Schema: rundir.PlanSchema, Name: s.Name, Seed: seed, Scheme: "redis-mq-token", Command: command, CreatedAt: now.UTC(),
		Activities: []rundir.Activity{{ActivityID: activityID, SKUID: skuID, Stock: s.Load.Stock, Tokens: s.Sale.tokens(s.Load.Stock),
			Version: 1, Resell: s.Sale.Resell, StartsAt: now.UTC(), EndsAt: now.UTC().Add(s.Sale.length())}},
		Workload: s.Load.workload(seed),
		Load: rundir.LoadPlan{RatePerS: s.Load.RatePerS, DurationMS: s.Load.Duration.Milliseconds(), Scheduled: scheduled,
			Connections: s.Load.Connections, Depth: s.Load.Depth, TimeoutMS: s.Load.Timeout.Milliseconds()},
		SLOs: s.SLOs, SLOMode: sloMode,
		Limits:     rundir.Limits{SendLagP99MS: sendLagP99Limit, ConvergeMS: s.Converge.Milliseconds(), GateLagMS: gateLag.Milliseconds()},
		Invariants: s.Invariants, LossContracts: s.LossContracts,
	}
	if len(s.SLOs) == 0 {
		p.Limits.SendLagP99MS = sendLagP99LimitUnjudged
	}
	if p.SLOs == nil {
		p.SLOs = []rundir.SLO{}
	}
	if p.LossContracts == nil {
		p.LossContracts = []string{}
	}
	p.MustHits, p.Outages = s.MustHits(), s.outages()
	return p
}

// MustHits is what the scenario's faults must hit, by the faults' names.
func (s *Scenario) MustHits() []rundir.MustHit {
	hits := []rundir.MustHit{}
	for _, f := range s.Faults {
		for _, must := range f.Must {
			must.Fault = f.Kind.name()
			hits = append(hits, must)
		}
	}
	for _, must := range s.Must {
		must.Fault = loadName
		hits = append(hits, must)
	}
	return hits
}

// outages are those by which the sale must have closed, by the faults' names.
func (s *Scenario) outages() []rundir.Outage {
	var all []rundir.Outage
	for _, f := range s.Faults {
		if f.Closes != nil {
			closes := *f.Closes
			closes.Fault = f.Kind.name()
			all = append(all, closes)
		}
	}
	return all
}

// loadName stands for the load among the faults, where a scenario has
// something to hit and no fault.
const loadName = "load"

func (l Load) workload(seed uint64) rundir.Workload {
	return rundir.Workload{Seed: seed, FirstUser: firstUser, RepeatPermille: repeatPermille,
		ConflictPermille: conflictPermille, SameUserPermille: sameUserPermille, RequestsPerUser: l.RequestsPerUser}
}
