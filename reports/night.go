package reports

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/hotsku/hotsku/verify/rundir"
)

// Night is several runs that were started together. Runs stand in the order
// in which they were to run; the renderers keep it.
type Night struct {
	Record *rundir.Night
	Inputs []Input // of each of the record's runs; without Run where there is no verdict
	Dir    rundir.NightDir
}

// nightState is how one run of a night came out.
type nightState int

const (
	stateFail nightState = iota // most serious first
	stateInconclusive
	stateNoVerdict // begun, and ended without one
	stateNotRun
	statePass
	states // their number
)

var stateWords = [states]struct{ word, class string }{
	stateFail: {"fail", "bad"}, stateInconclusive: {"inconclusive", "warn"}, stateNoVerdict: {"no verdict", "warn"},
	stateNotRun: {"not run", "warn"}, statePass: {"pass", "good"},
}

func (n Night) input(i int) Input {
	if i < len(n.Inputs) {
		return n.Inputs[i]
	}
	return Input{}
}

func (n Night) state(i int) nightState {
	r, in := n.Record.Runs[i], n.input(i)
	switch {
	case in.Run != nil && in.Run.Verdict == rundir.VerdictPass:
		return statePass
	case in.Run != nil && in.Run.Verdict == rundir.VerdictFail:
		return stateFail
	case in.Run != nil:
		return stateInconclusive
	case r.Dir != "":
		return stateNoVerdict
	}
	return stateNotRun
}

func (n Night) counts() (by [states]int) {
	for i := range n.Record.Runs {
		by[n.state(i)]++
	}
	return by
}

// ExitCode is 1 if a run failed, else 2 if any did not pass, else 0. A night
// of no runs proves nothing: 2.
func (n Night) ExitCode() int {
	by := n.counts()
	switch {
	case by[stateFail] > 0:
		return 1
	case len(n.Record.Runs) == 0 || by[statePass] < len(n.Record.Runs):
		return 2
	}
	return 0
}

func (n Night) verdictWord() string {
	return [...]string{"PASS", "FAIL", "INCONCLUSIVE"}[n.ExitCode()]
}

// summary is the night in a sentence.
func (n Night) summary() string {
	by := n.counts()
	var parts []string
	for s, nouns := range [states]string{"failed", "inconclusive", "ended without a verdict", "not run", "passed"} {
		if by[s] > 0 {
			parts = append(parts, count(int64(by[s]))+" "+nouns)
		}
	}
	if len(parts) == 0 {
		return "There was nothing to run."
	}
	return "Of " + plural(len(n.Record.Runs), "run") + ": " + strings.Join(parts, ", ") + "."
}

// outcome says in a line why a run came out as it did: what a pass proved,
// the first reason of any other, and how many there are more.
func (n Night) outcome(i int) string {
	r, in := n.Record.Runs[i], n.input(i)
	switch n.state(i) {
	case stateNotRun:
		return "not begun"
	case stateNoVerdict:
		return cmp.Or(r.Error, "it was cut off: nothing was judged")
	}
	reasons := in.reasons()
	if n.state(i) == statePass {
		return in.passReason()
	}
	if more := len(reasons) - 1; more > 0 {
		return fmt.Sprintf("%s (and %s)", reasons[0], plural(more, "more reason"))
	}
	return reasons[0]
}

// hits says what the run's faults hit, "killed 1, others_worked 812".
func (n Night) hits(i int) []hit {
	total := map[string]int64{}
	for _, f := range n.input(i).run().Faults {
		for name, count := range f.Hits {
			total[name] += count
		}
	}
	out := make([]hit, 0, len(total))
	for name, count := range total {
		out = append(out, hit{name, count})
	}
	slices.SortFunc(out, func(a, b hit) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// took is the time all runs took together.
func (n Night) took() string {
	total := 0.0
	for _, r := range n.Record.Runs {
		total += r.TookS
	}
	return span(total)
}

// span writes a length of time in seconds: "38 s", "12 min 4 s", "2 h 3 min".
func span(s float64) string {
	if !finite(s) || s <= 0 {
		return none
	}
	whole := int64(s + 0.5)
	switch h, m := whole/3600, whole/60%60; {
	case whole < 60:
		return fmt.Sprintf("%d s", whole)
	case h == 0:
		return fmt.Sprintf("%d min %d s", m, whole%60)
	default:
		return fmt.Sprintf("%d h %d min", h, m)
	}
}

// began is the time of the night's start in words.
func (n Night) began() string {
	if n.Record.StartedAt.IsZero() {
		return stamp(time.Time{})
	}
	return stamp(n.Record.StartedAt)
}

// link is the way from the night's report to a run's; empty if it has none.
func (n Night) link(i int) string {
	if r := n.Record.Runs[i]; r.Dir != "" && n.input(i).Run != nil {
		return path.Join(r.Dir, "report.html")
	}
	return ""
}
