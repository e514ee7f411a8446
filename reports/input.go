package reports

import (
	"fmt"
	"slices"

	"github.com/hotsku/hotsku/verify/rundir"
)

// Input is a saved run. Every field may be missing: what cannot be shown is
// said to be missing, and a run without Run is inconclusive.
type Input struct {
	Run          *rundir.Run
	Plan         *rundir.Plan           // nil: required ids, stock and limits are unknown
	Measurements *rundir.Measurements   // nil: the charts over time say so
	Timeline     []rundir.TimelineEvent // shown when there are faults
	Dir          rundir.Dir             // the run directory, for the path in Terminal
}

// run returns in.Run, or a run that nothing judged.
func (in Input) run() *rundir.Run {
	if in.Run != nil {
		return in.Run
	}
	return &rundir.Run{
		Verdict:  rundir.VerdictInconclusive,
		ExitCode: 2,
		Reasons:  []string{"run.json is missing: nothing was judged"},
	}
}

// stock is the number of units on sale, ok if a plan says it.
func (in Input) stock() (units int64, ok bool) {
	if in.Plan == nil || len(in.Plan.Activities) == 0 {
		return 0, false
	}
	for _, a := range in.Plan.Activities {
		units += a.Tokens
	}
	return units, true
}

// invariant returns the judged invariant with that id.
func (in Input) invariant(id string) (rundir.Invariant, bool) {
	for _, inv := range in.run().Invariants {
		if inv.ID == id {
			return inv, true
		}
	}
	return rundir.Invariant{}, false
}

// judged says that the invariant with that id was checked, so that a figure
// resting on it may be shown.
func (in Input) judged(id string) bool {
	inv, ok := in.invariant(id)
	return ok && (inv.Status == rundir.StatusHeld || inv.Status == rundir.StatusViolated)
}

// promise is an invariant as reports list it.
type promise struct {
	rundir.Invariant
	Required bool
}

// promises lists the judged invariants in their order, then those the plan
// requires and nobody judged. Without a plan all are required.
func (in Input) promises() []promise {
	var out []promise
	seen := map[string]bool{}
	for _, inv := range in.run().Invariants {
		seen[inv.ID] = true
		required := in.Plan == nil || slices.Contains(in.Plan.Invariants, inv.ID)
		if !statusKnown(inv.Status) {
			inv.Witness = append([]string{fmt.Sprintf("run.json gives the status %q, which is none", inv.Status)}, inv.Witness...)
			inv.Status = rundir.StatusNotChecked
		}
		out = append(out, promise{inv, required})
	}
	if in.Plan != nil {
		for _, id := range in.Plan.Invariants {
			if seen[id] {
				continue
			}
			seen[id] = true
			out = append(out, promise{rundir.Invariant{
				ID: id, Name: invariantName(id), Status: rundir.StatusNotChecked,
				Witness: []string{"required by plan.json, absent from run.json"},
			}, true})
		}
	}
	return out
}

func statusKnown(s string) bool {
	return s == rundir.StatusHeld || s == rundir.StatusViolated || s == rundir.StatusNotChecked
}

// accountingGap is scheduled minus its parts, 0 when every request is
// accounted for, and sentGap is sent minus (scheduled - dropped).
func accountingGap(l rundir.LoadResult) (gap, sentGap int64) {
	parts := l.Completed + l.Failed + l.TimedOut + l.Dropped + l.Unfinished
	return l.Scheduled - parts, l.Sent - (l.Scheduled - l.Dropped)
}

// missedHits says which of the plan's must-hits for a fault were not reached,
// in words.
func (in Input) missedHits(f rundir.FaultResult) []string {
	var out []string
	if in.Plan == nil {
		return nil
	}
	for _, m := range in.Plan.MustHits {
		if m.Fault == f.Name && f.Hits[m.Hit] < m.AtLeast {
			out = append(out, fmt.Sprintf("%s: %s hit, at least %s required", m.Hit, count(f.Hits[m.Hit]), count(m.AtLeast)))
		}
	}
	return out
}

// absentFaults lists the must-hits of faults that run.json does not have.
func (in Input) absentFaults() []rundir.MustHit {
	if in.Plan == nil {
		return nil
	}
	var out []rundir.MustHit
	for _, m := range in.Plan.MustHits {
		if !slices.ContainsFunc(in.run().Faults, func(f rundir.FaultResult) bool { return f.Name == m.Fault }) {
			out = append(out, m)
		}
	}
	return out
}

// reportOnly says that a missed SLO does not fail this run.
func (in Input) reportOnly() bool { return in.Plan != nil && in.Plan.SLOMode == "report" }
