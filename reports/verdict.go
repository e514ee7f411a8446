package reports

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hotsku/hotsku/verify/rundir"
)

// verdictWord is the verdict for a heading. Anything that is no verdict is
// INCONCLUSIVE: a run never passes because nothing judged it.
func (in Input) verdictWord() string {
	switch v := in.run().Verdict; v {
	case rundir.VerdictPass, rundir.VerdictFail:
		return strings.ToUpper(v)
	default:
		return "INCONCLUSIVE"
	}
}

// reasons says in plain words why the verdict is what it is, most serious
// first; never empty.
func (in Input) reasons() []string {
	r := in.run()
	if len(r.Reasons) > 0 {
		return r.Reasons
	}
	if r.Verdict == rundir.VerdictPass {
		return []string{in.passReason()}
	}
	if out := in.derivedReasons(); len(out) > 0 {
		return out
	}
	return []string{fmt.Sprintf("run.json gives the verdict %q and no reason", r.Verdict)}
}

func (in Input) passReason() string {
	var required, held, met int
	for _, p := range in.promises() {
		if p.Required {
			required++
			if p.Status == rundir.StatusHeld {
				held++
			}
		}
	}
	slo := in.run().SLO
	for _, s := range slo {
		if s.OK {
			met++
		}
	}
	text := fmt.Sprintf("%d of %d required invariants held", held, required)
	if len(slo) > 0 {
		text += fmt.Sprintf(", %d of %d SLOs met", met, len(slo))
	}
	if n := len(in.run().Faults); n > 0 {
		text += fmt.Sprintf(", %s bit", plural(n, "fault"))
	}
	return text + "."
}

func (in Input) derivedReasons() []string {
	var out []string
	for _, p := range in.promises() {
		if p.Status == rundir.StatusViolated {
			out = append(out, fmt.Sprintf("%s %s: %s", p.ID, p.Name, plural64(p.Violations, "violation")))
		}
	}
	for _, p := range in.promises() {
		if p.Status == rundir.StatusNotChecked && p.Required {
			out = append(out, fmt.Sprintf("%s %s was not checked", p.ID, p.Name))
		}
	}
	for _, f := range in.run().Faults {
		if !f.Bit {
			out = append(out, fmt.Sprintf("the fault %s did not bite", f.Name))
		}
	}
	if d := in.run().Load.Dropped; d > 0 {
		out = append(out, fmt.Sprintf("%s never sent", plural64(d, "request")))
	}
	for _, s := range in.run().SLO {
		if !s.OK && !s.NotMeasured {
			out = append(out, fmt.Sprintf("SLO missed: %s is %s, target %s", s.Name, sloMeasured(s), sloTarget(s)))
		}
	}
	return out
}

// summary is the verdict as a sentence.
func (in Input) summary() string {
	r := in.run()
	if r.Verdict == rundir.VerdictPass {
		return in.passReason()
	}
	var violated, unchecked, missed, unmeasured, toothless int
	for _, p := range in.promises() {
		switch {
		case p.Status == rundir.StatusViolated:
			violated++
		case p.Status == rundir.StatusNotChecked && p.Required:
			unchecked++
		}
	}
	for _, s := range r.SLO {
		switch {
		case s.NotMeasured:
			unmeasured++
		case !s.OK && !in.reportOnly():
			missed++
		}
	}
	for _, f := range r.Faults {
		if !f.Bit || len(in.missedHits(f)) > 0 {
			toothless++
		}
	}
	var parts []string
	add := func(n int, noun, what string) {
		if n > 0 {
			parts = append(parts, plural(n, noun)+" "+what)
		}
	}
	add(violated, "invariant", "violated")
	add(unchecked, "required invariant", "not checked")
	add(toothless+len(in.absentFaults()), "fault", "did not bite")
	if r.Load.Dropped > 0 {
		parts = append(parts, plural64(r.Load.Dropped, "request")+" never sent")
	}
	if limit := newAccounting(in).LagLimit; limit != "" && r.Load.SendLagMS.P99 > in.Plan.Limits.SendLagP99MS {
		parts = append(parts, "the generator fell behind (send lag P99 "+ms(r.Load.SendLagMS.P99)+", limit "+limit+")")
	}
	add(unmeasured, "SLO", notMeasured)
	add(missed, "SLO", "missed")
	switch {
	case len(parts) > 0:
		first, size := utf8.DecodeRuneInString(parts[0])
		return string(unicode.ToUpper(first)) + strings.Join(parts, ", ")[size:] + "."
	case r.Verdict == rundir.VerdictFail:
		return "The run failed."
	case len(r.Reasons) > 0:
		return "The evidence does not allow a verdict: " + strings.TrimSuffix(r.Reasons[0], ".") + "."
	default:
		return "The evidence does not allow a verdict."
	}
}

// verifyCommand judges the folder again, by the hotsku that ran it.
func (in Input) verifyCommand() string {
	return hotskuOf(in.run().Command) + " verify " + folderWord(string(in.Dir))
}

// hotskuOf is how hotsku was called in a command.
func hotskuOf(command string) string {
	if called, _, _ := strings.Cut(command, " "); path.Base(called) == "hotsku" {
		return called
	}
	return "bin/hotsku"
}

// folderWord is a folder's path as a word of a command, DIR where a shell
// would take it for something else.
func folderWord(dir string) string {
	if dir == "" || strings.ContainsAny(dir, " \t\n'\"\\$&;|<>()*?[]#~`!{}") {
		return "DIR"
	}
	return dir
}
