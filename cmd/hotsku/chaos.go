package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hotsku/hotsku/scenarios"
)

func newChaos() *cobra.Command {
	cmd := &cobra.Command{
		Use: "chaos", Short: "Run scenarios with faults that bite", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newChaosList(), newChaosRun())
	return cmd
}

func newChaosList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "One scenario a line: name, tags, what goes wrong", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, s := range scenarios.All() {
				fmt.Fprintf(cmd.OutOrStdout(), "%-28s %-16s %s\n", s.Name, strings.Join(s.Tags, ","), s.Doc)
			}
			return nil
		},
	}
}

func newChaosRun() *cobra.Command {
	o := newRunFlags()
	var tag string
	var all bool
	cmd := &cobra.Command{
		Use:   "run NAME… | --tag TAG | --all",
		Short: "Run scenarios, each on servers of its own, and judge them",
		Long: `Run each scenario from nothing to a verdict. A fault that did not bite makes its run inconclusive,
never passed. With several scenarios the exit code is the worst: 1 before 2 before 0, and --out is
their parent folder.`,
		Example: `  hotsku chaos run kill-access-after-reserve --seed 7
  hotsku chaos run --tag smoke`,
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, err := choose(args, tag, all)
			if err != nil {
				return usageError{err}
			}
			return runAll(cmd, *o, chosen, func(o runFlags, s scenarios.Scenario) error { return o.run(cmd, s, s.Name) })
		},
	}
	o.register(cmd)
	cmd.Flags().StringVar(&tag, "tag", "", "run the scenarios with this tag")
	cmd.Flags().BoolVar(&all, "all", false, "run every scenario")
	return cmd
}

// runAll runs the chosen scenarios with one seed and returns the worst of
// their errors. It stops when it is interrupted, and at what nobody could
// obey.
func runAll(cmd *cobra.Command, o runFlags, chosen []scenarios.Scenario, run func(runFlags, scenarios.Scenario) error) error {
	o.drawSeed()
	if len(chosen) == 1 {
		return run(o, chosen[0])
	}
	parent, worst := o.out, error(nil)
	if entries, err := os.ReadDir(parent); parent != "" && err == nil && len(entries) > 0 {
		return usageError{fmt.Errorf("%s is not empty: give --out a new or empty folder", parent)}
	}
	for _, s := range chosen {
		if parent != "" {
			o.out = filepath.Join(parent, runName(time.Now(), s.Name, o.seed))
		}
		fmt.Fprintf(cmd.OutOrStdout(), "\n%s: %s\n", s.Name, s.Doc)
		err := run(o, s)
		if cmd.Context().Err() != nil || errors.As(err, new(usageError)) {
			return err
		}
		if err != nil && !errors.As(err, new(verdictError)) {
			fmt.Fprintf(cmd.ErrOrStderr(), "hotsku: %s: %s\n", s.Name, oneLine(err))
			err = verdictError{exitEnvironment} // printed
		}
		worst = worse(worst, err)
	}
	return worst
}

// worse returns the error whose exit code says more: 1, then 2, then none.
func worse(a, b error) error {
	for _, err := range []error{a, b} {
		if v, ok := errors.AsType[verdictError](err); ok && v.code == 1 {
			return err
		}
	}
	if a != nil {
		return a
	}
	return b
}

// choose picks scenarios by name, tag, or all.
func choose(names []string, tag string, all bool) ([]scenarios.Scenario, error) {
	table := scenarios.All()
	var given []string
	for what, is := range map[string]bool{"scenario names": len(names) > 0, "--tag": tag != "", "--all": all} {
		if is {
			given = append(given, what)
		}
	}
	const how = "give scenario names, or --tag, or --all; hotsku chaos list shows them"
	slices.Sort(given)
	switch {
	case len(given) == 0:
		return nil, errors.New(how)
	case len(given) > 1:
		return nil, fmt.Errorf("%s exclude each other: %s", strings.Join(given, " and "), how)
	}
	var chosen []scenarios.Scenario
	for _, name := range names {
		i := slices.IndexFunc(table, func(s scenarios.Scenario) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no scenario %q%s; hotsku chaos list shows them all", name, didYouMean("", name, scenarioNames(table)))
		}
		chosen = append(chosen, table[i])
	}
	for _, s := range table {
		if all || tag != "" && slices.Contains(s.Tags, tag) {
			chosen = append(chosen, s)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no scenario has the tag %q; hotsku chaos list shows the tags", tag)
	}
	return chosen, nil
}

func scenarioNames(table []scenarios.Scenario) []string {
	names := make([]string, len(table))
	for i := range table {
		names[i] = table[i].Name
	}
	return names
}
