package scenarios

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/hotsku/hotsku/reports"
	"github.com/hotsku/hotsku/verify/rundir"
)

// ReportInput reads what reports show beside run. What cannot be read is
// left out: the reports say that it is missing.
func ReportInput(dir rundir.Dir, run *rundir.Run) reports.Input {
	in := Summary(dir, run)
	var m rundir.Measurements
	if rundir.ReadJSON(dir.Measurements(), &m) == nil {
		in.Measurements = &m
	}
	for e, err := range rundir.Rows[rundir.TimelineEvent](dir.Timeline()) {
		if err != nil {
			break
		}
		in.Timeline = append(in.Timeline, e)
	}
	return in
}

// Summary is ReportInput without what only a run's own report shows.
func Summary(dir rundir.Dir, run *rundir.Run) reports.Input {
	in := reports.Input{Run: run, Dir: dir}
	if plan, err := dir.ReadPlan(); err == nil {
		in.Plan = plan
	}
	return in
}

// WriteReports writes run.json, report.html and junit.xml.
func WriteReports(dir rundir.Dir, run *rundir.Run) error {
	if err := rundir.WriteJSON(dir.Run(), run); err != nil {
		return err
	}
	in := ReportInput(dir, run)
	var html, junit bytes.Buffer
	if err := errors.Join(reports.HTML(&html, in), reports.JUnit(&junit, in)); err != nil {
		return fmt.Errorf("write reports: %w", err)
	}
	return errors.Join(rundir.WriteFile(dir.Report(), html.Bytes()), rundir.WriteFile(dir.JUnit(), junit.Bytes()))
}
