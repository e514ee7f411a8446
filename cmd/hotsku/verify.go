package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hotsku/hotsku/scenarios"
	"github.com/hotsku/hotsku/verify"
	"github.com/hotsku/hotsku/verify/rundir"
)

func newVerify() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify DIR",
		Short: "Judge a run directory again, from its files alone",
		Long: `Judge a run by its plan, history, store snapshots and timeline: no server is asked, nothing in the
directory is changed. The verdict is the one its run.json says, unless the evidence was changed since.

Exit codes: 0 pass, 1 violated or an SLO missed, 2 inconclusive or evidence missing, 64 bad command line.`,
		Example: `  hotsku verify reports/out/20261111T000000.000Z-bench-7
  hotsku verify --json DIR | jq .invariants`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("verify takes one run directory, got %d arguments; reports/out holds them", len(args))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := rundir.Dir(args[0])
			run, err := verify.Judge(cmd.Context(), dir)
			if err != nil {
				return fmt.Errorf("%w: give the folder that a run left", err)
			}
			if !asJSON {
				return printVerdict(cmd.OutOrStdout(), dir, run)
			}
			enc := json.NewEncoder(cmd.OutOrStdout())
			enc.SetIndent("", "  ")
			if err := enc.Encode(run); err != nil {
				return fmt.Errorf("print the verdict: %w", err)
			}
			if run.ExitCode != 0 {
				return verdictError{run.ExitCode}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the judgement in run.json's format")
	return cmd
}

func newReport() *cobra.Command {
	return &cobra.Command{
		Use:     "report DIR",
		Short:   "Write report.html and junit.xml of a judged run again",
		Example: `  hotsku report reports/out/20261111T000000.000Z-bench-7`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("report takes one run directory, got %d arguments; reports/out holds them", len(args))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := rundir.Dir(args[0])
			var run rundir.Run
			if err := rundir.ReadJSON(dir.Run(), &run); err != nil {
				return fmt.Errorf("%w; hotsku verify %s judges the evidence", err, dir)
			}
			if run.Schema != rundir.RunSchema {
				return fmt.Errorf("%s: schema %d, this build reads %d", dir.Run(), run.Schema, rundir.RunSchema)
			}
			if err := scenarios.WriteReports(dir, &run); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), dir.Report())
			return nil
		},
	}
}
