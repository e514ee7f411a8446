package reports

import (
	"fmt"
	"io"
	"strings"

	"github.com/hotsku/hotsku/verify/rundir"
)

// TerminalWidthDefault is the width of Terminal's table in columns.
const TerminalWidthDefault = 100

// terminalWidthMin is the least width the columns fit into.
const terminalWidthMin = 60

// TerminalOptions say what the terminal can do; the caller finds out.
type TerminalOptions struct {
	Color bool // ANSI colours: only for a terminal, and only if NO_COLOR is unset
	Width int  // columns; 0 means TerminalWidthDefault, which is also the most used
}

// Terminal writes the verdict as a table: the verdict and its reasons first,
// then headline figures, invariants, SLOs and the request accounting; the last
// line is the path of report.html. No line but that one is wider than Width,
// and no control character of the run's strings reaches the terminal.
func Terminal(w io.Writer, in Input, opts TerminalOptions) error {
	t := newTerminal(w, opts)
	t.verdict(in)
	t.headline(in)
	t.invariants(in)
	t.slos(in)
	t.faults(in)
	t.accounting(in)
	t.line()
	fmt.Fprintf(t.w, "report  %s\n", plain(in.Dir.Report()))
	if err := t.w.Flush(); err != nil {
		return fmt.Errorf("write terminal report: %w", err)
	}
	return nil
}

func (t *terminal) verdict(in Input) {
	r := in.run()
	c, mark := tintWarn, "?"
	switch r.Verdict {
	case rundir.VerdictPass:
		c, mark = tintGood, "✓"
	case rundir.VerdictFail:
		c, mark = tintBad, "✗"
	}
	about := fmt.Sprintf("%s  seed %d  exit code %d", r.Scheme, r.Seed, r.ExitCode)
	t.line(cell{text: in.verdictWord(), width: 12, tint: tint("1;" + string(c))}, cell{text: r.Name, width: max(1, min(30, columns(r.Name))), tint: tintBold},
		cell{text: strings.TrimSpace(about)})
	if r.Verdict == rundir.VerdictPass {
		t.wrapped(cell{text: mark, width: 1, tint: c}, in.passReason(), tintNone)
		for _, reason := range r.Reasons { // SLOs that are only reported
			t.wrapped(cell{text: "!", width: 1, tint: tintWarn}, reason, tintNone)
		}
		return
	}
	for _, reason := range in.reasons() {
		t.wrapped(cell{text: mark, width: 1, tint: c}, reason, tintNone)
	}
}

func (t *terminal) headline(in Input) {
	t.line()
	for _, h := range tiles(in) {
		c := map[string]tint{"good": tintGood, "bad": tintBad, "unknown": tintWarn}[h.State]
		t.line(cell{text: h.Label, width: 20}, cell{text: strings.TrimSpace(h.Value + " " + h.Unit), width: 14, right: true, tint: c},
			cell{text: h.Sub, tint: tintMuted})
	}
}

// Columns of the tables below; the first takes what is left.
const (
	columnFigure = 12
	columnWord   = 12
)

func (t *terminal) first(figures int) int {
	return max(20, t.width-figures*(columnFigure+2)-(columnWord+2))
}

func (t *terminal) invariants(in Input) {
	promises := in.promises()
	if len(promises) == 0 {
		t.heading(cell{text: "INVARIANTS: none was judged"})
		return
	}
	name := t.first(2)
	t.heading(cell{text: "INVARIANT", width: name}, cell{text: "CHECKED", width: columnFigure, right: true},
		cell{text: "VIOLATIONS", width: columnFigure, right: true}, cell{text: "STATUS", width: columnWord})
	for _, p := range promises {
		c, violations := tintGood, count(p.Violations)
		switch p.Status {
		case rundir.StatusViolated:
			c = tintBad
		case rundir.StatusNotChecked:
			c, violations = tintWarn, none
		}
		label := fmt.Sprintf("%-3s  %s", p.ID, p.Name)
		if !p.Required {
			label += " (not required)"
		}
		t.line(cell{text: label, width: name}, cell{text: count(p.Checked), width: columnFigure, right: true},
			cell{text: violations, width: columnFigure, right: true}, cell{text: statusWord(p.Status), width: columnWord, tint: c})
		if p.Status != rundir.StatusHeld {
			t.witnesses(p.Witness)
		}
	}
}

// witnesses writes the first few, indented.
func (t *terminal) witnesses(w []string) {
	const most = 3
	for i, text := range w {
		if i == most {
			t.wrapped(cell{width: 3}, fmt.Sprintf("… %s more in the report", count(int64(len(w)-most))), tintMuted)
			return
		}
		t.wrapped(cell{width: 3}, text, tintMuted)
	}
}

func (t *terminal) slos(in Input) {
	slo := in.run().SLO
	if len(slo) == 0 {
		return
	}
	name := t.first(2)
	title := "SLO"
	if in.reportOnly() {
		title = "SLO (reported only)"
	}
	t.heading(cell{text: title, width: name}, cell{text: "TARGET", width: columnFigure, right: true},
		cell{text: "MEASURED", width: columnFigure, right: true}, cell{text: "RESULT", width: columnWord})
	for _, s := range slo {
		word, class := sloWord(s)
		c := map[string]tint{"good": tintGood, "bad": tintBad, "warn": tintWarn}[class]
		t.line(cell{text: s.Name, width: name}, cell{text: sloTarget(s), width: columnFigure, right: true},
			cell{text: sloMeasured(s), width: columnFigure, right: true}, cell{text: word, width: columnWord, tint: c})
	}
}

func (t *terminal) faults(in Input) {
	faults, _ := faultRows(in)
	if len(faults) == 0 {
		return
	}
	name, when := len("FAULT"), len("WHEN")
	for _, f := range faults {
		name, when = max(name, columns(f.Name)), max(when, columns(f.When))
	}
	name, when = min(name, t.width/3), min(when, t.width/4)
	hits := t.width - name - when - columnWord - 6
	t.heading(cell{text: "FAULT", width: name}, cell{text: "WHEN", width: when}, cell{text: "HIT", width: hits}, cell{text: "BIT", width: columnWord})
	for _, f := range faults {
		word, c := "yes", tintGood
		switch {
		case !f.Bit:
			word, c = "no", tintWarn
		case len(f.Missed) > 0:
			word, c = "not enough", tintWarn
		}
		var what []string
		for _, h := range f.Hits {
			what = append(what, h.Name+" "+count(h.Count))
		}
		hit, below := strings.Join(what, ", "), ""
		if columns(hit) > hits {
			hit, below = "", hit
		}
		t.line(cell{text: f.Name, width: name}, cell{text: f.When, width: when}, cell{text: hit, width: hits}, cell{text: word, width: columnWord, tint: c})
		if below != "" {
			t.wrapped(cell{width: 3}, "hit: "+below, tintNone)
		}
		t.witnesses(f.Missed)
	}
}

func (t *terminal) accounting(in Input) {
	a := newAccounting(in)
	const column = 10
	titles := []string{"completed", "failed", "timed out", "dropped", "unfinished"}
	values := []int64{a.Completed, a.Failed, a.TimedOut, a.Dropped, a.Unfinished}
	head := []cell{{text: "SCHEDULED =", width: 11, right: true}}
	row := []cell{{text: count(a.Scheduled), width: 11, right: true}}
	for i, title := range titles {
		v := cell{text: count(values[i]), width: column, right: true}
		if title == "dropped" && a.Dropped > 0 {
			v.tint = tintWarn
		}
		head = append(head, cell{text: title, width: column, right: true})
		row = append(row, v)
	}
	sum := cell{text: "adds up", tint: tintGood}
	if !a.Balanced {
		sum = cell{text: fmt.Sprintf("does not add up: %s missing, sent off by %s", count(a.Gap), count(a.SentGap)), tint: tintBad}
	}
	t.heading(head...)
	t.line(append(row, sum)...)
}
