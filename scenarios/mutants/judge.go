package mutants

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hotsku/hotsku/verify/rundir"
)

// Outcome of a mutant's run, or of its runs with several seeds.
type Outcome string

// The outcomes. Reference runs have OutcomePassed and OutcomeTripped.
const (
	OutcomeKilled       Outcome = "killed"   // by an invariant named for it
	OutcomeSurvived     Outcome = "survived" // it did wrong, and no invariant named for it noticed
	OutcomeInconclusive Outcome = "inconclusive"
	OutcomePassed       Outcome = "passed"
	OutcomeTripped      Outcome = "tripped" // the reference violated an invariant
)

// Finding is what a run said of a mutant.
type Finding struct {
	Outcome  Outcome  `json:"outcome"`
	By       []string `json:"by"`       // invariants named for it that were violated
	Also     []string `json:"also"`     // others that were
	Firings  int64    `json:"firings"`  // how often it did wrong
	Witness  string   `json:"witness"`  // of the first of By
	Why      string   `json:"why"`      // where it was not killed
	Violated int64    `json:"violated"` // violations of By in all
}

// Judge says what a judged run of m, which did wrong so many times, means.
func (m *Mutant) Judge(run *rundir.Run, firings int64) Finding {
	f := Finding{Firings: firings, By: []string{}, Also: []string{}}
	for _, inv := range run.Invariants {
		switch {
		case inv.Status != rundir.StatusViolated:
		case slices.Contains(m.KilledBy, inv.ID):
			if f.Witness == "" && len(inv.Witness) > 0 {
				f.Witness = inv.Witness[0]
			}
			f.By = append(f.By, inv.ID)
			f.Violated += inv.Violations
		default:
			f.Also = append(f.Also, inv.ID)
		}
	}
	named := strings.Join(m.KilledBy, " or ")
	switch {
	case firings == 0:
		f.Outcome, f.Why = OutcomeInconclusive, "it never came to do wrong"
	case len(f.By) > 0:
		f.Outcome = OutcomeKilled
	case len(f.Also) > 0:
		f.Outcome, f.Why = OutcomeSurvived, fmt.Sprintf("%s did not notice; %s did", named, strings.Join(f.Also, ", "))
	case run.Verdict == rundir.VerdictInconclusive:
		f.Outcome, f.Why = OutcomeInconclusive, strings.Join(run.Reasons, "; ")
	default:
		f.Outcome, f.Why = OutcomeSurvived, named+" did not notice"
	}
	return f
}

// JudgeReference says what a judged run of the right design means: it must
// pass.
func JudgeReference(run *rundir.Run) Finding {
	f := Finding{Outcome: OutcomePassed, By: []string{}, Also: []string{}}
	for _, inv := range run.Invariants {
		if inv.Status == rundir.StatusViolated {
			f.Outcome = OutcomeTripped
			f.By = append(f.By, inv.ID)
			f.Violated += inv.Violations
		}
	}
	if f.Outcome == OutcomePassed && run.Verdict != rundir.VerdictPass {
		f.Outcome = OutcomeInconclusive
	}
	if f.Outcome != OutcomePassed {
		f.Why = strings.Join(run.Reasons, "; ")
	}
	return f
}

// Broken is the finding of a run that came to no verdict.
func Broken(err error) Finding {
	return Finding{Outcome: OutcomeInconclusive, By: []string{}, Also: []string{}, Why: strings.Join(strings.Fields(err.Error()), " ")}
}
