package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hotsku/hotsku/verify"
	"github.com/hotsku/hotsku/verify/rundir"
)

func newVerify() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify DIR",
		Short: "Judge a run directory again, from its files alone",
		Long: `Judge a run by its plan, history, store snapshots and timeline: no server is asked, nothing in the
directory is changed. The verdict is the one its run.json says, unless the one or the other was changed
since: then a line says in what they differ.

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
			if _, err := dir.ReadPlan(); err != nil && !asJSON {
				return fmt.Errorf("%w: without it nothing can be judged", err)
			}
			if note := compare(dir, run); note != "" {
				cmd.PrintErrln("hotsku: " + note)
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

// compare says in a line how a run directory's run.json differs from what its
// evidence says now; empty if it does not.
func compare(dir rundir.Dir, found *rundir.Run) string {
	said, err := dir.ReadRun()
	if err != nil {
		return fmt.Sprintf("%v: there is nothing to compare the verdict with", err)
	}
	was, err1 := figures(said)
	is, err2 := figures(found)
	if err := errors.Join(err1, err2); err != nil {
		return err.Error()
	}
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if !bytes.Equal(was[name], is[name]) {
			differ = append(differ, name)
		}
	}
	if len(differ) == 0 {
		return ""
	}
	return fmt.Sprintf("run.json says %s (exit code %d), the evidence %s (exit code %d): they differ in %s; one of them was changed since the run, or judged by another build",
		said.Verdict, said.ExitCode, found.Verdict, found.ExitCode, strings.Join(differ, ", "))
}

// figures are the parts of a run.json by their names.
func figures(run *rundir.Run) (map[string]json.RawMessage, error) {
	body, err := json.Marshal(run)
	if err != nil {
		return nil, err
	}
	parts := map[string]json.RawMessage{}
	return parts, json.Unmarshal(body, &parts)
}
