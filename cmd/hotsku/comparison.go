package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hotsku/hotsku/reports/comparison"
)

func newCompareRuns() *cobra.Command {
	o := comparison.Options{Metrics: comparison.Metrics(), Tolerance: 0.1, Alpha: 0.05}
	var asJSON, doubtful bool
	cmd := &cobra.Command{
		Use:   "compare-runs A B",
		Short: "Say whether the runs of B are slower or dearer than those of A, beyond chance",
		Long: `Compare two sets of runs of the same load. A and B are run directories, or folders of run directories:
each run is one sample. A figure has changed when the medians differ by more than the tolerance and a
Mann-Whitney U test finds that chance alone would seldom do it (corrected by Holm for the figures that
are judged). Two single runs are shown beside each other and prove nothing.

Machines drift: take the runs of both sides in turns. make bench-compare BASE=COMMIT does.

Exit codes: 0 nothing judged is worse, 1 something is, 2 too few runs to tell, or runs that cannot be
compared, 64 bad command line.`,
		Example: `  hotsku compare-runs reports/out/before reports/out/after
  hotsku compare-runs --tolerance 0.2 --json A B | jq .worse`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError{fmt.Errorf("compare-runs takes two run directories, or folders of them, got %d arguments", len(args))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Validate(); err != nil {
				return usageError{err}
			}
			a, err := comparison.Read(args[0], doubtful)
			if err != nil {
				return err
			}
			b, err := comparison.Read(args[1], doubtful)
			if err != nil {
				return err
			}
			c, err := comparison.Compare(a, b, o)
			if err != nil {
				return err
			}
			if asJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				err = enc.Encode(c)
			} else {
				err = printComparison(cmd.OutOrStdout(), c)
			}
			switch {
			case err != nil:
				return fmt.Errorf("print the comparison: %w", err)
			case len(c.Worse) > 0:
				return verdictError{1}
			case !c.Conclusive:
				return verdictError{exitEnvironment}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.Float64Var(&o.Tolerance, "tolerance", o.Tolerance, "medians that differ by less than this share of A's are the same")
	f.Float64Var(&o.Alpha, "alpha", o.Alpha, "how likely chance alone may call a change, over all judged figures")
	f.BoolVar(&doubtful, "with-inconclusive", false, "take runs that were inconclusive, too")
	f.BoolVar(&asJSON, "json", false, "print the comparison as JSON")
	return cmd
}

func printComparison(w io.Writer, c *comparison.Comparison) error {
	var b strings.Builder
	verdict := "nothing judged is worse"
	switch {
	case len(c.Worse) > 0:
		verdict = "worse: " + strings.Join(c.Worse, ", ")
	case !c.Conclusive:
		verdict = "too few runs to tell"
	}
	fmt.Fprintf(&b, "%s\n\nA  %s\nB  %s\n\n%-27s%27s%27s%7s%7s  %s\n", verdict, c.A, c.B, "", "A median (min–max, n)", "B median (min–max, n)", "B/A", "p", "B is")
	judged := true
	for _, f := range c.Figures {
		if judged && !f.Judged {
			b.WriteString("not judged:\n")
		}
		judged = f.Judged
		ratio := "–"
		if f.Ratio > 0 {
			ratio = strconv.FormatFloat(f.Ratio, 'f', 2, 64)
		}
		fmt.Fprintf(&b, "%-27s%27s%27s%7s%7.3f  %s\n", strings.TrimSpace(f.Path+" "+unitOf(f)), spreadText(f.A), spreadText(f.B), ratio, f.P, f.Status)
	}
	for _, note := range c.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// unitOf is a figure's unit where its name does not hold it.
func unitOf(f comparison.Figure) string {
	if strings.Contains(f.Path, "_ms") || strings.Contains(f.Path, "_us_") {
		return ""
	}
	return f.Unit
}

func spreadText(s comparison.Spread) string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }
	if s.Median >= 1000 {
		number = func(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }
	}
	return fmt.Sprintf("%s (%s–%s, %d)", number(s.Median), number(s.Min), number(s.Max), s.N)
}
