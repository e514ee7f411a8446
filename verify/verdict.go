package verify

import (
	"fmt"

	"github.com/hotsku/hotsku/verify/rundir"
)

// Exit codes of a judging command (contracts.md section 7).
const (
	ExitPass         = 0
	ExitFail         = 1
	ExitInconclusive = 2
)

// decide gives the verdict: a violation comes first, then what the run did
// not prove, then a missed SLO. Nothing passes that proved nothing.
func (j *Judgement) decide(run *rundir.Run) {
	violated := violatedReasons(run.Invariants)
	missed, unmeasured := []string{}, []string{}
	if j.plan != nil {
		missed, unmeasured = j.judgeSLOs(run)
	}
	unproved := append(j.unproved(run), unmeasured...)
	enforced := j.plan != nil && j.plan.SLOMode == rundir.SLOEnforce

	run.Reasons = append(append(violated, unproved...), missed...)
	switch {
	case len(violated) > 0:
		run.Verdict, run.ExitCode = rundir.VerdictFail, ExitFail
	case len(unproved) > 0:
		run.Verdict, run.ExitCode = rundir.VerdictInconclusive, ExitInconclusive
	case enforced && len(missed) > 0:
		run.Verdict, run.ExitCode = rundir.VerdictFail, ExitFail
	default:
		run.Verdict, run.ExitCode = rundir.VerdictPass, ExitPass
	}
}

func violatedReasons(invariants []rundir.Invariant) []string {
	reasons := []string{}
	for _, inv := range invariants {
		if inv.Status != rundir.StatusViolated {
			continue
		}
		more := ""
		if inv.Violations > 1 {
			more = fmt.Sprintf(" (and %d more)", inv.Violations-1)
		}
		reasons = append(reasons, fmt.Sprintf("%s %s violated: %s%s", inv.ID, inv.Name, inv.Witness[0], more))
	}
	return reasons
}

// unproved lists why the run proves less than its plan asks for.
func (j *Judgement) unproved(run *rundir.Run) []string {
	var reasons []string
	for _, fault := range j.faults {
		reasons = append(reasons, fault.Error())
	}
	for _, altered := range j.altered {
		reasons = append(reasons, altered.Error())
	}
	if j.plan == nil {
		return reasons
	}
	reasons = append(reasons, j.contradictions...)
	for _, id := range j.plan.Invariants {
		reasons = append(reasons, unchecked(id, run.Invariants)...)
	}
	reasons = append(reasons, missedHits(j.plan, run.Faults)...)
	if lag, limit := run.Load.SendLagMS.P99, j.plan.Limits.SendLagP99MS; run.Load.Scheduled > 0 && lag > limit {
		reasons = append(reasons, fmt.Sprintf("the generator fell behind: send lag P99 is %.3f ms, its limit %g ms", lag, limit))
	}
	if n := run.Load.Dropped; n > 0 {
		reasons = append(reasons, fmt.Sprintf("the generator dropped %d requests: the load was not the planned one", n))
	}
	return reasons
}

// unchecked says why a required invariant does not count as held.
func unchecked(id string, invariants []rundir.Invariant) []string {
	for _, inv := range invariants {
		if inv.ID != id {
			continue
		}
		if inv.Status != rundir.StatusNotChecked {
			return nil
		}
		return []string{fmt.Sprintf("%s %s is required and was not checked: %s", id, inv.Name, inv.Witness[0])}
	}
	return []string{fmt.Sprintf("%s is required, and this build cannot check it", id)}
}
