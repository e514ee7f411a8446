package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/hotsku/hotsku/scenarios"
	"github.com/hotsku/hotsku/verify/rundir"
)

func newChaosReplay() *cobra.Command {
	o := newRunFlags()
	cmd := &cobra.Command{
		Use:   "replay DIR",
		Short: "Run again what a run directory's plan says: its scenario, seed and load",
		Long: `Run the scenario of a run directory again, with the seed and the load of its plan.json, whatever the
table says of that load today. Users, request ids and the moments of faults are those of the seed; what
processes and servers make of them is their own.`,
		Example: `  hotsku chaos replay reports/out/20261111T000000.000Z-one-consumer-dies-7`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("replay takes one run directory, got %d arguments; reports/out holds them", len(args))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := rundir.Dir(args[0]).ReadPlan()
			if err != nil {
				return usageError{fmt.Errorf("%w: give the folder that a run left", err)}
			}
			s, err := planned(plan)
			if err != nil {
				return usageError{err}
			}
			o.seed, o.sloMode = plan.Seed, plan.SLOMode
			asks := s.Drawn(plan.Seed)
			if !slices.Equal(asks.MustHits(), plan.MustHits) || !slices.Equal(s.Invariants, plan.Invariants) {
				cmd.PrintErrln("hotsku: what the scenario asks for was changed since: this run is judged by what it asks for now")
			}
			return o.run(cmd, s, shellWord(args[0]))
		},
	}
	cmd.Flags().StringVar(&o.out, "out", "", "run directory, new or empty (default: reports/out/<time>-<name>-<seed>)")
	cmd.Flags().StringVar(&o.binDir, "bin-dir", "", "folder of the product's binaries (default: that of hotsku)")
	return cmd
}

// planned is the scenario of a plan, with the plan's load.
func planned(plan *rundir.Plan) (scenarios.Scenario, error) {
	load := scenarios.Load{RatePerS: plan.Load.RatePerS, Duration: time.Duration(plan.Load.DurationMS) * time.Millisecond,
		Stock: plan.Activities[0].Stock, Connections: plan.Load.Connections, Depth: plan.Load.Depth,
		Timeout: time.Duration(plan.Load.TimeoutMS) * time.Millisecond}
	if err := load.Validate(); err != nil {
		return scenarios.Scenario{}, fmt.Errorf("plan.json: %w", err)
	}
	if bench := scenarios.Bench(load); plan.Name == bench.Name {
		return bench, nil
	}
	s, err := named(plan.Name)
	if err != nil {
		return s, err
	}
	s.Load = load
	return s, nil
}
