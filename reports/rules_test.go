package reports

import (
	"encoding/xml"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/hotsku/hotsku/verify/rundir"
)

func TestFigures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, got, want string }{
		{"thousands are separated", count(3_000_000), "3,000,000"},
		{"the least integer does not overflow", count(math.MinInt64), "−9,223,372,036,854,775,808"},
		{"a small latency keeps its digits", ms(0.0421), "0.042 ms"},
		{"a latency has three digits", ms(18.44), "18.4 ms"},
		{"a long latency is separated", ms(9_712.4), "9,712 ms"},
		{"no figure is no number", ms(math.NaN()), "– ms"},
		{"minus nothing is nothing", decimal(-0.0001, 2), "0.00"},
		{"all is 100 %", percent(1), "100 %"},
		{"nearly all is not 100 %", percent(0.9999999), "99.999 %"},
		{"a ratio rounds down", percent(0.99899999), "99.899 %"},
		{"a binary fraction is not rounded down twice", percent(0.999), "99.9 %"},
		{"a trace is not nothing", share(1, 3_000_000), "< 0.001 %"},
		{"no share of nothing", share(0, 0), none},
		{"a column of shares lines up", shareAligned(4, 100), "4.000 %"},
		{"sizes are binary", bytesSize(27_412_992), "26.1 MiB"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.rule, c.got, c.want)
		}
	}
}

func TestMeasuredNeverLooksLikeATargetItDiffersFrom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		slo  rundir.SLOResult
		want string
	}{
		{rundir.SLOResult{Metric: "latency_ms.all.p99", Op: "<", Target: 100, Measured: 99.96}, "99.96 ms"},
		{rundir.SLOResult{Metric: "latency_ms.all.p99", Op: "<", Target: 100, Measured: 100.0004}, "100.0004 ms"},
		{rundir.SLOResult{Metric: "latency_ms.all.p99", Op: "<", Target: 100, Measured: 100}, "100 ms"},
		{rundir.SLOResult{Metric: "orders.within_3s_ratio", Op: ">=", Target: 0.999, Measured: 0.99899}, "99.899 %"},
		{rundir.SLOResult{Metric: "load.intended_qps", Op: ">=", Target: 300_000, Measured: 299_999.6}, "299,999.6 /s"},
	} {
		if got := sloMeasured(c.slo); got != c.want {
			t.Errorf("%v against %v: %q, want %q", c.slo.Measured, c.slo.Target, got, c.want)
		}
	}
}

// A figure that rests on unchecked evidence must not be shown as zero (R1.6).
func TestUncheckedEvidenceIsNeverZero(t *testing.T) {
	t.Parallel()
	in := passInput()
	in.Run.Invariants[0].Status = rundir.StatusNotChecked
	in.Run.Invariants[2].Status = "held?"
	in.Run.Orders.Valid = 0
	for _, h := range []tile{oversellTile(in), deltaTile(in), ordersTile(in), within3sTile(in)} {
		if h.Value != none || h.Sub != "not checked" || h.State == "good" {
			t.Errorf("%s shows %q (%s), though it was not checked", h.Label, h.Value, h.Sub)
		}
	}
}

// A unit sold twice beside an order that is lost is one oversold: as many
// valid orders as units hide neither. R1.6.
func TestOversoldIsWhatI1Counted(t *testing.T) {
	t.Parallel()
	in := failInput()
	in.Run.Orders.Valid, in.Run.Orders.Oversold = 10_000, 1
	if got := oversellTile(in); got.Value != "1" || got.State != "bad" {
		t.Errorf("%+v", got)
	}
	in.Plan = nil // the count needs no stock
	if got := oversellTile(in); got.Value != "1" {
		t.Errorf("without a plan: %+v", got)
	}
}

// A figure nobody took is not 0: a killed process takes its counts with it.
func TestFiguresNobodyTookAreSaidToBeMissing(t *testing.T) {
	t.Parallel()
	in := faultInput()
	for _, f := range storeFacts(in.Run) {
		switch f.Name {
		case "Redis reserve calls", "Redis reserve P99", "Broker sends":
			if f.Value != notMeasured {
				t.Errorf("%s is %q", f.Name, f.Value)
			}
		case "Messages stored", "Empty claims":
			if f.Value == notMeasured {
				t.Errorf("%s is %q", f.Name, f.Value)
			}
		}
	}
	page := renderString(t, HTML, in)
	if want := "own counters: not measured. A process that ends takes its counts with it."; !strings.Contains(page, want) {
		t.Errorf("the page does not say %q", want)
	}
}

// Stages that different sources counted are never put into one sum, and a
// stage that passes more than enters has no share.
func TestFunnelsArePartedBySource(t *testing.T) {
	t.Parallel()
	got := funnels([]rundir.FunnelStage{
		{Source: rundir.ByStores, Stage: "stored", In: 50, Out: 50}, {Source: rundir.ByHistory, Stage: "judged", In: 100, Out: 40},
		{Source: "augurs", Stage: "foreseen", In: 5, Out: 6}, {Source: rundir.ByStores, Stage: "ordered", In: 50, Out: 49},
	})
	var parts []string
	for _, f := range got {
		part := f.Counted + ":"
		for _, r := range f.Rows {
			part += " " + r.Stage + " " + r.Passed + " " + r.Away
		}
		parts = append(parts, part)
	}
	want := []string{
		"Requests and answers, by the generator's history: judged 40.000 % 60",
		"Requests, by the access processes' own counters: not measured. A process that ends takes its counts with it.:",
		"Reservations, by the stores: stored 100.000 % 0 ordered 98.000 % 1",
		"Counted by augurs: foreseen – –",
	}
	if strings.Join(parts, "\n") != strings.Join(want, "\n") {
		t.Errorf("parts are\n%s\nwant\n%s", strings.Join(parts, "\n"), strings.Join(want, "\n"))
	}
}

// The rate of answers is over the time they took: an overloaded system goes
// on answering when the load has ended.
func TestAnsweredRateIsOverTheTimeTheAnswersTook(t *testing.T) {
	t.Parallel()
	l := rundir.LoadResult{DurationS: 10, AnsweredInS: 25, Completed: 1_000_000}
	if got := answeredRate(l); got != "40,000 /s over 25.0 s" {
		t.Error(got)
	}
	l.AnsweredInS = 10.004
	if got := answeredRate(l); got != "99,960 /s" {
		t.Error(got)
	}
}

// The line under INCONCLUSIVE says what kept the run from proving anything.
func TestTheSummaryOfAnInconclusiveRunSaysWhy(t *testing.T) {
	t.Parallel()
	late := passInput()
	late.Run.Verdict, late.Run.Load.SendLagMS.P99 = rundir.VerdictInconclusive, 134
	strange := passInput()
	strange.Run.Verdict, strange.Run.Reasons = rundir.VerdictInconclusive, []string{"history: request 7 is recorded twice"}
	for want, in := range map[string]Input{
		"The generator fell behind (send lag P99 134 ms, limit 20 ms).":                late,
		"The evidence does not allow a verdict: history: request 7 is recorded twice.": strange,
	} {
		if got := in.summary(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTheReportSaysHowToVerify(t *testing.T) {
	t.Parallel()
	in := passInput()
	if got := in.verifyCommand(); got != "bin/hotsku verify reports/out/20260511T200000-bench-7" {
		t.Error(got)
	}
	in.Run.Command, in.Dir = "hotsku bench --seed 7", "my runs/7"
	if got := in.verifyCommand(); got != "hotsku verify DIR" {
		t.Error(got)
	}
}

// An SLO whose figure nobody has is neither met nor missed, and shows no 0.
func TestAnSLOThatWasNotMeasuredIsSaidToBeThat(t *testing.T) {
	t.Parallel()
	in := passInput()
	in.Run.Verdict = rundir.VerdictInconclusive
	s := &in.Run.SLO[0]
	s.OK, s.NotMeasured, s.Measured = false, true, 0
	if got, want := in.summary(), "1 SLO not measured."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	text := renderString(t, func(w io.Writer, in Input) error { return Terminal(w, in, TerminalOptions{}) }, in)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, s.Name) && !strings.HasSuffix(line, "–  not measured\n") {
			t.Errorf("the table says %q", line)
		}
	}
	if page := renderString(t, HTML, in); !strings.Contains(page, `<span class="mark warn">not measured</span>`) {
		t.Error("the page does not say it")
	}
}

func TestOnlyPassIsPass(t *testing.T) {
	t.Parallel()
	for _, verdict := range []string{"", "PASS", "ok", "inconclusive"} {
		in := passInput()
		in.Run.Verdict = verdict
		if got := in.verdictWord(); got != "INCONCLUSIVE" {
			t.Errorf("the verdict %q is shown as %s", verdict, got)
		}
		if len(in.reasons()) == 0 {
			t.Errorf("the verdict %q has no reason", verdict)
		}
	}
}

func TestReasonsAreDerivedWhereRunGivesNone(t *testing.T) {
	t.Parallel()
	in := failInput()
	in.Run.Reasons = nil
	got := strings.Join(in.reasons(), "; ")
	want := "I1 no oversell: 1 violation; I3 conservation: 14 violations; SLO missed: P99 of all answers (R1.3) is 9,712 ms, target < 100 ms"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestJUnitOutcomes(t *testing.T) {
	t.Parallel()
	weak := faultInput()
	weak.Run.Faults[0].Hits["resent_by_scanner_only"] = 0
	toothless := faultInput()
	toothless.Run.Faults[0].Bit = false
	unbalanced := passInput()
	unbalanced.Run.Load.Completed--
	blind := passInput()
	blind.Run.SLO[0].OK, blind.Run.SLO[0].NotMeasured = false, true
	optional := inconclusiveInput()
	optional.Plan.Invariants = []string{"I1"}
	absent := passInput()
	absent.Plan.MustHits = []rundir.MustHit{{Fault: "kill", Hit: "killed", AtLeast: 1}}
	for _, c := range []struct {
		rule          string
		in            Input
		class, prefix string
		want          string
	}{
		{"held passes", passInput(), "invariants", "I1", "passed"},
		{"violated fails", failInput(), "invariants", "I1", "failure"},
		{"not checked is an error", inconclusiveInput(), "invariants", "I7", "error"},
		{"required and never judged is an error", inconclusiveInput(), "invariants", "I15", "error"},
		{"not checked and not required is skipped", optional, "invariants", "I7", "skipped"},
		{"a missed SLO fails", failInput(), "slo", "P99 of all", "failure"},
		{"a missed SLO is skipped in report mode", inconclusiveInput(), "slo", "requests judged", "skipped"},
		{"an SLO that was not measured is an error", blind, "slo", "P99 of all", "error"},
		{"a fault that bit passes", faultInput(), "faults", "kill", "passed"},
		{"a fault that did not bite is an error", toothless, "faults", "kill", "error"},
		{"a fault that hit too little is an error", weak, "faults", "kill", "error"},
		{"a required fault that never was is an error", absent, "faults", "kill", "error"},
		{"dropped requests are an error", inconclusiveInput(), "load", "no request dropped", "error"},
		{"a late generator is an error", inconclusiveInput(), "load", "send lag", "error"},
		{"an account that does not add up is an error", unbalanced, "load", "every request", "error"},
		{"no run is an error", Input{}, "verdict", "verdict", "error"},
		{"no request is an error", Input{}, "load", "every request", "error"},
	} {
		var doc junitSuites
		if err := xml.Unmarshal([]byte(renderString(t, JUnit, c.in)), &doc); err != nil {
			t.Fatal(err)
		}
		got := "absent"
		if found := findCase(doc, c.class, c.prefix); found != nil {
			switch {
			case found.Failure != nil:
				got = "failure"
			case found.Error != nil:
				got = "error"
			case found.Skipped != nil:
				got = "skipped"
			default:
				got = "passed"
			}
		}
		if got != c.want {
			t.Errorf("%s: %s", c.rule, got)
		}
	}
}

func TestTerminalColoursOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	for _, color := range []bool{false, true} {
		text := renderString(t, func(w io.Writer, in Input) error { return Terminal(w, in, TerminalOptions{Color: color}) }, failInput())
		if strings.Contains(text, "\x1b[") != color {
			t.Errorf("colour asked for: %t, written: %t", color, !color)
		}
	}
}

func TestWriteErrorsAreReturned(t *testing.T) {
	t.Parallel()
	for name, render := range map[string]func(io.Writer, Input) error{
		"html": HTML, "junit": JUnit,
		"terminal": func(w io.Writer, in Input) error { return Terminal(w, in, TerminalOptions{}) },
	} {
		if err := render(brokenWriter{}, passInput()); err == nil {
			t.Errorf("%s: a failed write went unnoticed", name)
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// A fault's row says all it hit, whatever the terminal's width.
func TestTerminalShowsEveryHitOfAFault(t *testing.T) {
	t.Parallel()
	for _, width := range []int{60, 80, 100} {
		in := faultInput()
		in.Run.Faults[0].Name = "kill@access.after-reserve"
		in.Plan.MustHits = nil
		var out strings.Builder
		if err := Terminal(&out, in, TerminalOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		for _, hit := range []string{"killed 1", "restarted 1", "resent_by_scanner_only 31"} {
			if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), hit) {
				t.Errorf("at %d columns %q is not shown:\n%s", width, hit, out.String())
			}
		}
	}
}

// A run that passes although SLOs were missed says both, and does not tick
// what was missed.
func TestTerminalOfAPassWithReportedSLOs(t *testing.T) {
	t.Parallel()
	in := passInput()
	in.Plan.SLOMode = rundir.SLOReport
	in.Run.SLO[0].OK = false
	in.Run.Reasons = []string{"SLO P99 missed"}
	var out strings.Builder
	if err := Terminal(&out, in, TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"✓  9 of 9 required invariants held, 3 of 4 SLOs met.\n", "!  SLO P99 missed\n"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is missing:\n%s", line, out.String())
		}
	}
}
