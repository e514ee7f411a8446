package reports

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/hotsku/hotsku/verify/rundir"
)

// The elements of a JUnit report, as CI servers read them.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr"`
		Timestamp  string          `xml:"timestamp,attr,omitempty"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Time    string        `xml:"time,attr"`
		Skipped *junitOutcome `xml:"skipped"`
		Error   *junitOutcome `xml:"error"`
		Failure *junitOutcome `xml:"failure"`
	}
	junitOutcome struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes junit.xml: one test suite for the run, one test case for each
// invariant, SLO and fault, for the request accounting, and for the verdict
// itself. What was violated or missed is a failure, with its witnesses; what
// proves nothing (not checked, a fault that did not bite, requests dropped) is
// an error, so that CI never shows it as passed. An SLO missed in report mode
// is skipped.
func JUnit(w io.Writer, in Input) error {
	return writeSuites(w, []junitSuite{in.suite()})
}

// suite is the run as a test suite.
func (in Input) suite() junitSuite {
	r := in.run()
	suite := junitSuite{
		Name: strings.TrimSuffix("hotsku."+r.Name, "."),
		Time: seconds3(r.Load.DurationS),
		Properties: []junitProperty{
			{"verdict", r.Verdict},
			{"seed", fmt.Sprint(r.Seed)},
			{"scheme", r.Scheme},
			{"command", r.Command},
		},
	}
	if !r.StartedAt.IsZero() {
		suite.Timestamp = r.StartedAt.UTC().Format("2006-01-02T15:04:05")
	}
	for _, cases := range [][]junitCase{
		in.verdictCases(), in.invariantCases(), in.sloCases(), in.faultCases(), in.loadCases(),
	} {
		for _, c := range cases {
			c.Class = suite.Name + "." + c.Class
			c.Time = seconds3(0)
			suite.add(c)
		}
	}
	return suite
}

func writeSuites(w io.Writer, suites []junitSuite) error {
	doc := junitSuites{Name: "hotsku", Suites: suites}
	for _, suite := range suites {
		doc.Tests, doc.Failures, doc.Errors = doc.Tests+suite.Tests, doc.Failures+suite.Failures, doc.Errors+suite.Errors
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return fmt.Errorf("write junit report: %w", err)
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return fmt.Errorf("write junit report: %w", err)
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return fmt.Errorf("write junit report: %w", err)
	}
	return nil
}

func (s *junitSuite) add(c junitCase) {
	s.Tests++
	switch {
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	case c.Skipped != nil:
		s.Skipped++
	}
	s.Cases = append(s.Cases, c)
}

func (in Input) verdictCases() []junitCase {
	c := junitCase{Class: "verdict", Name: "verdict"}
	text := strings.Join(in.reasons(), "\n")
	switch in.run().Verdict {
	case rundir.VerdictPass:
	case rundir.VerdictFail:
		c.Failure = &junitOutcome{in.reasons()[0], "fail", text}
	default:
		c.Error = &junitOutcome{in.reasons()[0], "inconclusive", text}
	}
	return []junitCase{c}
}

func (in Input) invariantCases() []junitCase {
	var out []junitCase
	for _, p := range in.promises() {
		c := junitCase{Class: "invariants", Name: p.ID + " " + p.Name}
		witness := strings.Join(p.Witness, "\n")
		switch {
		case p.Status == rundir.StatusViolated:
			c.Failure = &junitOutcome{plural64(p.Violations, "violation") + " in " + count(p.Checked) + " checked", "violated", witness}
		case p.Status == rundir.StatusNotChecked && p.Required:
			c.Error = &junitOutcome{"not checked", "not_checked", witness}
		case p.Status == rundir.StatusNotChecked:
			c.Skipped = &junitOutcome{Message: "not checked, not required by the plan", Text: witness}
		}
		out = append(out, c)
	}
	return out
}

func (in Input) sloCases() []junitCase {
	var out []junitCase
	for _, s := range in.run().SLO {
		c := junitCase{Class: "slo", Name: s.Name}
		if !s.OK {
			text := fmt.Sprintf("%s: measured %s, target %s", s.Metric, sloMeasured(s), sloTarget(s))
			if s.NotMeasured {
				c.Error = &junitOutcome{notMeasured + ", target " + sloTarget(s), "not_measured", s.Metric}
			} else if in.reportOnly() {
				c.Skipped = &junitOutcome{Message: "missed, reported only", Text: text}
			} else {
				c.Failure = &junitOutcome{"measured " + sloMeasured(s) + ", target " + sloTarget(s), "missed", text}
			}
		}
		out = append(out, c)
	}
	return out
}

func (in Input) faultCases() []junitCase {
	var out []junitCase
	for _, f := range in.run().Faults {
		c := junitCase{Class: "faults", Name: f.Name + " bit"}
		missed := in.missedHits(f)
		switch {
		case !f.Bit:
			c.Error = &junitOutcome{"the fault did not bite", "no_bite", strings.Join(missed, "\n")}
		case len(missed) > 0:
			c.Error = &junitOutcome{"the fault hit less than the plan requires", "no_bite", strings.Join(missed, "\n")}
		}
		out = append(out, c)
	}
	for _, m := range in.absentFaults() {
		out = append(out, junitCase{Class: "faults", Name: m.Fault + " " + m.Hit, Error: &junitOutcome{
			"the fault is absent from run.json", "no_bite", fmt.Sprintf("%s: at least %s required", m.Hit, count(m.AtLeast))}})
	}
	return out
}

func (in Input) loadCases() []junitCase {
	l := in.run().Load
	sum := junitCase{Class: "load", Name: "every request accounted for"}
	text := fmt.Sprintf("scheduled %d = completed %d + failed %d + timed out %d + dropped %d + unfinished %d; sent %d",
		l.Scheduled, l.Completed, l.Failed, l.TimedOut, l.Dropped, l.Unfinished, l.Sent)
	if gap, sentGap := accountingGap(l); gap != 0 || sentGap != 0 {
		sum.Error = &junitOutcome{fmt.Sprintf("does not add up: %d missing, sent off by %d", gap, sentGap), "accounting", text}
	} else if l.Scheduled == 0 {
		sum.Error = &junitOutcome{"no request was scheduled", "accounting", text}
	}
	dropped := junitCase{Class: "load", Name: "no request dropped"}
	if l.Dropped > 0 {
		dropped.Error = &junitOutcome{plural64(l.Dropped, "request") + " never sent", "dropped", text}
	}
	out := []junitCase{sum, dropped}
	if in.Plan != nil && in.Plan.Limits.SendLagP99MS > 0 {
		lag := junitCase{Class: "load", Name: "send lag P99 within its limit"}
		if l.SendLagMS.P99 > in.Plan.Limits.SendLagP99MS {
			lag.Error = &junitOutcome{
				"send lag P99 " + ms(l.SendLagMS.P99) + ", limit " + newAccounting(in).LagLimit, "send_lag", text}
		}
		out = append(out, lag)
	}
	return out
}

func seconds3(s float64) string {
	if !finite(s) || s < 0 {
		s = 0
	}
	return fmt.Sprintf("%.3f", s)
}
