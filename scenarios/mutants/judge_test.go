package mutants

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hotsku/hotsku/verify/rundir"
)

func judged(verdict string, violated ...string) *rundir.Run {
	run := &rundir.Run{Verdict: verdict, Reasons: []string{"some reason"}}
	for _, id := range []string{"I1", "I3", "I7"} {
		inv := rundir.Invariant{ID: id, Status: rundir.StatusHeld, Checked: 1}
		if slices.Contains(violated, id) {
			inv.Status, inv.Violations, inv.Witness = rundir.StatusViolated, 2, []string{"token 1 of " + id}
		}
		run.Invariants = append(run.Invariants, inv)
	}
	return run
}

// Only the violation of an invariant named for the design, in a run in which
// it did wrong, is a kill.
func TestWhatCountsAsAKill(t *testing.T) {
	m := Mutant{Name: "m", Scenario: "s", KilledBy: []string{"I1"}}
	for name, c := range map[string]struct {
		run     *rundir.Run
		firings int64
		want    Outcome
	}{
		"by the named one":               {judged(rundir.VerdictFail, "I1"), 3, OutcomeKilled},
		"by it and another":              {judged(rundir.VerdictFail, "I1", "I3"), 3, OutcomeKilled},
		"by another only":                {judged(rundir.VerdictFail, "I3"), 3, OutcomeSurvived},
		"by nobody":                      {judged(rundir.VerdictPass), 3, OutcomeSurvived},
		"by a missed objective":          {judged(rundir.VerdictFail), 3, OutcomeSurvived},
		"in a run that proves nothing":   {judged(rundir.VerdictInconclusive), 3, OutcomeInconclusive},
		"without having done wrong":      {judged(rundir.VerdictFail, "I1"), 0, OutcomeInconclusive},
		"neither wrong nor noticed":      {judged(rundir.VerdictPass), 0, OutcomeInconclusive},
		"noticed in a spoilt run (kill)": {judged(rundir.VerdictInconclusive, "I1"), 1, OutcomeKilled},
	} {
		f := m.Judge(c.run, c.firings)
		if f.Outcome != c.want {
			t.Errorf("%s: %s, want %s", name, f.Outcome, c.want)
		}
		if (f.Why == "") != (c.want == OutcomeKilled) {
			t.Errorf("%s: why is %q", name, f.Why)
		}
		if c.want == OutcomeKilled && (f.Witness != "token 1 of I1" || f.Violated != 2) {
			t.Errorf("%s: witness %q, violated %d", name, f.Witness, f.Violated)
		}
	}
}

func TestTheReferenceMustPass(t *testing.T) {
	for want, run := range map[Outcome]*rundir.Run{OutcomePassed: judged(rundir.VerdictPass), OutcomeTripped: judged(rundir.VerdictFail, "I3"),
		OutcomeInconclusive: judged(rundir.VerdictInconclusive)} {
		if f := JudgeReference(run); f.Outcome != want || (f.Why == "") != (want == OutcomePassed) {
			t.Errorf("got %+v, want %s", f, want)
		}
	}
	if f := Broken(errors.New("it\nbroke")); f.Outcome != OutcomeInconclusive || f.Why != "it broke" {
		t.Errorf("got %+v", f)
	}
}

func runs(outcomes ...Outcome) (r []Run) {
	for i, o := range outcomes {
		r = append(r, Run{Seed: uint64(7 + i), Dir: "dir", Finding: Finding{Outcome: o, Firings: 1}})
	}
	return r
}

// A survivor weighs more than runs that said nothing, a kill ends the search,
// and the matrix is as bad as its worst row.
func TestTheMatrixIsAsBadAsItsWorstRow(t *testing.T) {
	reference := Row{Design: ReferenceName, Runs: runs(OutcomePassed)}
	for name, c := range map[string]struct {
		rows []Row
		code int
	}{
		"nothing was run":           {nil, 2},
		"killed":                    {[]Row{reference, {Design: "m", Runs: runs(OutcomeKilled)}}, 0},
		"killed by a later seed":    {[]Row{reference, {Design: "m", Runs: runs(OutcomeSurvived, OutcomeInconclusive, OutcomeKilled)}}, 0},
		"survived":                  {[]Row{reference, {Design: "m", Runs: runs(OutcomeSurvived, OutcomeInconclusive)}}, 1},
		"inconclusive":              {[]Row{reference, {Design: "m", Runs: runs(OutcomeInconclusive)}}, 2},
		"survivor beside a killed":  {[]Row{{Design: "n", Runs: runs(OutcomeInconclusive)}, {Design: "m", Runs: runs(OutcomeSurvived)}}, 1},
		"the reference tripped":     {[]Row{{Design: ReferenceName, Runs: runs(OutcomeTripped)}, {Design: "m", Runs: runs(OutcomeKilled)}}, 1},
		"the reference was unclear": {[]Row{{Design: ReferenceName, Runs: runs(OutcomeInconclusive)}, {Design: "m", Runs: runs(OutcomeKilled)}}, 2},
		"interrupted before a run":  {[]Row{{Design: "m"}}, 2},
	} {
		m := Matrix{Rows: c.rows}
		if code := m.Conclude(); code != c.code || m.ExitCode != c.code {
			t.Errorf("%s: exit %d, want %d", name, code, c.code)
		}
	}
	for _, done := range []Row{{Design: "m", Runs: runs(OutcomeKilled)}, reference} {
		if !done.Done() {
			t.Errorf("%+v wants another seed", done)
		}
	}
	for _, undone := range []Row{{Design: "m"}, {Design: ReferenceName}, {Design: "m", Runs: runs(OutcomeSurvived)}} {
		if undone.Done() {
			t.Errorf("%+v wants no other seed", undone)
		}
	}
}

func TestTheMatrixReads(t *testing.T) {
	survivor := Row{Design: "blind-spot", Scenario: "s", KilledBy: []string{"I8"}, Runs: runs(OutcomeSurvived)}
	survivor.Runs[0].Why = "I8 did not notice"
	m := Matrix{Rows: []Row{{Design: ReferenceName, Scenario: "s", Runs: runs(OutcomePassed)},
		{Design: "get-then-decr", Scenario: "s", KilledBy: []string{"I1"}, Runs: []Run{{Seed: 7, Dir: "dir",
			Finding: Finding{Outcome: OutcomeKilled, By: []string{"I1"}, Also: []string{"I9"}, Firings: 4}}}}, survivor}}
	var out strings.Builder
	if err := m.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	want := `DESIGN         SCENARIO  OUTCOME   NAMED  BY  ALSO  SEEDS  DID WRONG
reference      s         passed    -      -   -     1      -
get-then-decr  s         killed    I1     I1  I9    1 (7)  4
blind-spot     s         survived  I8     -   -     1      1

blind-spot in s survived: I8 did not notice
  look at dir

1 of 2 wrong designs killed
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
