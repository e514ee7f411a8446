package night

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/hotsku/hotsku/reports"
	"github.com/hotsku/hotsku/scenarios"
	"github.com/hotsku/hotsku/verify/rundir"
)

// Read reads a night for its reports: its record, and each run that has a
// verdict.
func Read(dir rundir.NightDir) (reports.Night, error) {
	record, err := dir.Read()
	if err != nil {
		return reports.Night{}, err
	}
	n := reports.Night{Record: record, Inputs: make([]reports.Input, len(record.Runs)), Dir: dir}
	for i, r := range record.Runs {
		if r.Dir == "" {
			continue
		}
		run, err := dir.Judged(r)
		if err != nil {
			if r.Error == "" {
				record.Runs[i].Error = "it was cut off: " + oneLine(err)
			}
			continue
		}
		n.Inputs[i] = scenarios.Summary(dir.Run(r.Dir), run)
	}
	return n, nil
}

// Write writes a night's report.html and junit.xml from its files.
func Write(dir rundir.NightDir) error {
	n, err := Read(dir)
	if err != nil {
		return err
	}
	var html, junit bytes.Buffer
	if err := errors.Join(reports.NightHTML(&html, n), reports.NightJUnit(&junit, n)); err != nil {
		return fmt.Errorf("write the night's reports: %w", err)
	}
	return errors.Join(rundir.WriteFile(dir.Report(), html.Bytes()), rundir.WriteFile(dir.JUnit(), junit.Bytes()))
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
