package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/hotsku/hotsku/scenarios"
	"github.com/hotsku/hotsku/scenarios/night"
	"github.com/hotsku/hotsku/verify/rundir"
)

func newReport() *cobra.Command {
	return &cobra.Command{
		Use:   "report DIR",
		Short: "Write report.html and junit.xml of a judged run, or of a night, again",
		Example: `  hotsku report reports/out/20261111T000000.000Z-bench-7
  hotsku report reports/out/20261111T220000.000Z-night-7`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("report takes one run directory, got %d arguments; reports/out holds them", len(args))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if whole := rundir.NightDir(args[0]); isNight(whole) {
				if err := night.Write(whole); err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), whole.Report())
				return nil
			}
			dir := rundir.Dir(args[0])
			if err := dir.Recognise(); err != nil {
				return fmt.Errorf("report: %w: give the folder that a run left", err)
			}
			run, err := dir.ReadRun()
			if err != nil {
				return fmt.Errorf("%w; hotsku verify %s judges the evidence", err, dir)
			}
			if err := scenarios.WriteReports(dir, run); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), dir.Report())
			return nil
		},
	}
}

func isNight(dir rundir.NightDir) bool {
	_, err := os.Stat(dir.Record())
	return err == nil
}
