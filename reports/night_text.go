package reports

import (
	"fmt"
	"io"
)

// NightJUnit writes a night's junit.xml: each run's test suite, as JUnit
// writes it, named by scenario and seed. A run without a verdict is a suite
// whose one case is an error, so that CI never shows it as passed.
func NightJUnit(w io.Writer, n Night) error {
	var suites []junitSuite
	for i, r := range n.Record.Runs {
		name := fmt.Sprintf("hotsku.%s.seed-%d", r.Scenario, r.Seed)
		if in := n.input(i); in.Run != nil {
			suite := in.suite()
			suite.Name, suite.Time = name, seconds3(r.TookS)
			suites = append(suites, suite)
			continue
		}
		suite := junitSuite{Name: name, Time: seconds3(r.TookS), Properties: []junitProperty{{"seed", fmt.Sprint(r.Seed)}}}
		kind := "no_verdict"
		if n.state(i) == stateNotRun {
			kind = "not_run"
		}
		suite.add(junitCase{Class: name + ".verdict", Name: "verdict", Time: seconds3(0), Error: &junitOutcome{stateWords[n.state(i)].word, kind, n.outcome(i)}})
		suites = append(suites, suite)
	}
	return writeSuites(w, suites)
}

// NightTerminal writes the night as a table, a line a run, and why each that
// did not pass came out so; the last line is the path of its report. Widths
// and control characters are as in Terminal.
func NightTerminal(w io.Writer, n Night, opts TerminalOptions) error {
	t := newTerminal(w, opts)
	mark := map[string]struct {
		sign string
		tint tint
	}{"good": {"✓", tintGood}, "bad": {"✗", tintBad}, "warn": {"?", tintWarn}}
	verdict := [...]string{"good", "bad", "warn"}[n.ExitCode()]
	t.line(cell{text: n.verdictWord(), width: 12, tint: tint("1;" + string(mark[verdict].tint))}, cell{text: n.summary()})
	const seed, took = 12, 14
	name := t.width - seed - took - columnWord - 6
	t.heading(cell{text: "SCENARIO", width: name}, cell{text: "SEED", width: seed, right: true}, cell{text: "TOOK", width: took, right: true}, cell{text: "RESULT", width: columnWord})
	for i, r := range n.Record.Runs {
		s := n.state(i)
		words := stateWords[s]
		t.line(cell{text: r.Scenario, width: name}, cell{text: fmt.Sprint(r.Seed), width: seed, right: true},
			cell{text: span(r.TookS), width: took, right: true}, cell{text: words.word, width: columnWord + 2, tint: mark[words.class].tint})
		if s != statePass && s != stateNotRun {
			t.wrapped(cell{text: mark[words.class].sign, width: 3, tint: mark[words.class].tint}, n.outcome(i), tintMuted)
		}
	}
	if again := n.resumeCommand(); again != "" {
		t.line()
		fmt.Fprintf(t.w, "go on   %s\n", plain(again))
	}
	t.line()
	fmt.Fprintf(t.w, "report  %s\n", plain(n.Dir.Report()))
	if err := t.w.Flush(); err != nil {
		return fmt.Errorf("write terminal report: %w", err)
	}
	return nil
}
