package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/hotsku/hotsku/reports"
	"github.com/hotsku/hotsku/scenarios"
	"github.com/hotsku/hotsku/scenarios/night"
	"github.com/hotsku/hotsku/verify/rundir"
)

// nightSeedsMax bounds a night.
const nightSeedsMax = 1000

// runScenario takes a scenario to a verdict, which it prints.
type runScenario func(o *runFlags, cmd *cobra.Command, s scenarios.Scenario) error

// night runs the chosen scenarios with so many seeds, all of them with one
// seed before any with the next, and judges the whole.
func (o *runFlags) night(cmd *cobra.Command, args []string, chosen []scenarios.Scenario, seeds int) error {
	if err := o.ready(); err != nil {
		return err
	}
	now := time.Now()
	record := rundir.Night{Command: commandLine(cmd, args, o.seed), StartedAt: now.UTC().Truncate(time.Second), SLOMode: o.sloMode}
	for i := range seeds {
		for _, s := range chosen {
			record.Runs = append(record.Runs, rundir.NightRun{Scenario: s.Name, Seed: o.seed + uint64(i), Doc: s.Doc})
		}
	}
	dir := o.out
	if dir == "" {
		dir = filepath.Join("reports", "out", runName(now, "night", o.seed))
	}
	n, err := night.Begin(rundir.NightDir(dir), record)
	if err != nil {
		return usageError{err}
	}
	return runNight(cmd, *o, n, rundir.NightDir(dir), (*runFlags).runOne)
}

// resume goes on with a night.
func (o *runFlags) resume(cmd *cobra.Command, dir rundir.NightDir) error {
	record, err := dir.Read()
	if err != nil {
		return usageError{fmt.Errorf("%w: give --resume the folder of a night", err)}
	}
	for _, r := range record.Runs { // before anything is moved
		if _, err := named(r.Scenario); err != nil {
			return usageError{fmt.Errorf("the night %s was made by another build: %w", dir, err)}
		}
	}
	if err := cmd.Flags().Set("slo", record.SLOMode); err != nil { // the commands of its runs name it
		return err
	}
	if err := o.ready(); err != nil {
		return err
	}
	n, aside, err := night.Resume(dir)
	if errors.Is(err, night.ErrUsage) {
		return usageError{err}
	}
	for _, name := range aside {
		cmd.PrintErrf("hotsku: %s ended without a verdict: it is in %s, and is run again\n", name, dir.SetAside())
	}
	if err != nil {
		return err
	}
	return runNight(cmd, *o, n, dir, (*runFlags).runOne)
}

// runOne is run, as a night does it.
func (o *runFlags) runOne(cmd *cobra.Command, s scenarios.Scenario) error {
	return o.run(cmd, s, s.Name)
}

// runNight runs what is pending of n, closes it, and prints the night's
// verdict.
func runNight(cmd *cobra.Command, o runFlags, n *night.Night, dir rundir.NightDir, run runScenario) error {
	pending := len(n.Pending())
	done := len(n.Record().Runs) - pending
	o.servers = &scenarios.Servers{}
	err := n.Run(cmd.Context(), night.Params{Now: time.Now,
		Folder: func(at time.Time, r rundir.NightRun) string { return runName(at, r.Scenario, r.Seed) },
		Run: func(_ context.Context, r rundir.NightRun, dir rundir.Dir) error {
			done++
			s, err := named(r.Scenario)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "\n%d of %d  %s, seed %d: %s\n", done, len(n.Record().Runs), s.Name, r.Seed, s.Doc)
			o := o
			o.out, o.seed = string(dir), r.Seed
			err = run(&o, cmd, s)
			if errors.As(err, new(verdictError)) { // printed, and in run.json
				return nil
			}
			if err != nil {
				cmd.PrintErrf("hotsku: %s: %s\n", s.Name, oneLine(err))
			}
			return err
		}})
	err = errors.Join(err, o.servers.Close(), n.Close())
	if err != nil && !errors.Is(err, night.ErrInterrupted) {
		return err
	}
	return printNight(cmd, dir)
}

// printNight writes the night's reports anew, prints its table and turns its
// verdict into the exit code.
func printNight(cmd *cobra.Command, dir rundir.NightDir) error {
	if err := night.Write(dir); err != nil {
		return err
	}
	whole, err := night.Read(dir)
	if err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout())
	if err := reports.NightTerminal(cmd.OutOrStdout(), whole, terminalOptions(cmd.OutOrStdout())); err != nil {
		return fmt.Errorf("print the verdict: %w", err)
	}
	if code := whole.ExitCode(); code != 0 {
		return verdictError{code}
	}
	return nil
}
