package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hotsku/hotsku/scenarios"
	"github.com/hotsku/hotsku/verify/rundir"
)

func newChaos() *cobra.Command {
	cmd := &cobra.Command{
		Use: "chaos", Short: "Run scenarios with faults that bite", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newChaosList(), newChaosRun(), newChaosReplay())
	return cmd
}

func newChaosList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "Show the scenarios: tags, what goes wrong, what the fault must hit, what must hold", Args: noArgs,
		Example: `  hotsku chaos list
  hotsku chaos list --json | jq -r '.[] | select(.tags | index("smoke")) | .name'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows := listing(scenarios.All())
			if !asJSON {
				return printListing(cmd.OutOrStdout(), rows)
			}
			enc := json.NewEncoder(cmd.OutOrStdout())
			enc.SetIndent("", "  ")
			enc.SetEscapeHTML(false)
			return enc.Encode(rows)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newChaosRun() *cobra.Command {
	o := newRunFlags()
	var tag, resume string
	var all bool
	seeds := 1
	cmd := &cobra.Command{
		Use:   "run NAME… | --tag TAG | --all | --resume DIR",
		Short: "Run scenarios and judge them",
		Long: `Run each scenario from nothing to a verdict. A fault that did not bite makes its run inconclusive,
never passed. Several runs are a night: --out is their parent folder, with night.json, one report.html
and one junit.xml over all; --resume goes on with a night that was interrupted: runs with a verdict are
kept, runs without one are set aside and run again. The exit code is the worst: 1 before 2 before 0.`,
		Example: `  hotsku chaos run kill-access-after-reserve --seed 7
  hotsku chaos run --tag smoke
  hotsku chaos run --all --seeds 3 --out reports/out/tonight
  hotsku chaos run --resume reports/out/tonight`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if resume != "" {
				if err := aloneWith(cmd, args, "resume", "bin-dir"); err != nil {
					return usageError{err}
				}
				return o.resume(cmd, rundir.NightDir(resume))
			}
			chosen, err := choose(args, tag, all)
			if err != nil {
				return usageError{err}
			}
			if seeds < 1 || seeds > nightSeedsMax {
				return usageError{fmt.Errorf("--seeds %d: must be 1 to %d", seeds, nightSeedsMax)}
			}
			o.drawSeed()
			if len(chosen) == 1 && seeds == 1 {
				return o.run(cmd, chosen[0], chosen[0].Name)
			}
			return o.night(cmd, args, chosen, seeds)
		},
	}
	o.register(cmd)
	cmd.Flags().StringVar(&tag, "tag", "", "run the scenarios with this tag")
	cmd.Flags().BoolVar(&all, "all", false, "run every scenario")
	cmd.Flags().IntVar(&seeds, "seeds", seeds, "run each scenario with so many seeds, from --seed on")
	cmd.Flags().StringVar(&resume, "resume", "", "go on with the night in this folder")
	return cmd
}

// aloneWith refuses what was given beside a flag and is not among allowed.
func aloneWith(cmd *cobra.Command, args []string, flag string, allowed ...string) error {
	var others []string
	if len(args) > 0 {
		others = append(others, "scenario names")
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != flag && !slices.Contains(allowed, f.Name) {
			others = append(others, "--"+f.Name)
		}
	})
	if len(others) == 0 {
		return nil
	}
	return fmt.Errorf("--%s takes all from the folder: leave %s away", flag, strings.Join(others, ", "))
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
		s, err := named(name)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, s)
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

// named is the scenario of that name; an error suggests the nearest.
func named(name string) (scenarios.Scenario, error) {
	table := scenarios.All()
	names := make([]string, len(table))
	for i, s := range table {
		if s.Name == name {
			return s, nil
		}
		names[i] = s.Name
	}
	return scenarios.Scenario{}, fmt.Errorf("there is no scenario %q%s; hotsku chaos list shows them all", name, didYouMean("", name, names))
}
