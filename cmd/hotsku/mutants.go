package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/hotsku/hotsku/scenarios"
	"github.com/hotsku/hotsku/scenarios/fleet"
	"github.com/hotsku/hotsku/scenarios/mutants"
	"github.com/hotsku/hotsku/verify/rundir"
)

// matrixFile is the kill matrix in the parent folder of its runs.
const matrixFile = "mutants.json"

// seedsMax bounds --seeds.
const seedsMax = 100

// mutantFlags are those of hotsku mutants.
type mutantFlags struct {
	runFlags
	seeds     int
	reference bool
}

func newMutants() *cobra.Command {
	o := &mutantFlags{runFlags: runFlags{sloMode: rundir.SLOReport}}
	var listed bool
	cmd := &cobra.Command{
		Use:   "mutants [NAME…]",
		Short: "Run wrong designs, each of which its scenario must find out",
		Long: `Run the product with one wrong design at a time, in the scenario that must find it out, and print the kill matrix:
design, scenario, the invariant that was violated, and how many seeds that took. The right design runs in each of the
scenarios once, and must pass. Without names all wrong designs run. The matrix is also written to --out as ` + matrixFile + `.

A design counts as killed only by an invariant named for it, and only if it did wrong in that run.

Exit codes: 0 all killed, 1 a wrong design survived or the right one violated an invariant, 2 some run said nothing.`,
		Example: `  hotsku mutants --list
  hotsku mutants get-then-decr --seed 7
  hotsku mutants --seeds 3 --out night/mutants`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if listed {
				for _, m := range mutants.All() {
					fmt.Fprintf(cmd.OutOrStdout(), "%-34s %-28s %-6v %s\n", m.Name, m.Scenario, m.KilledBy, m.Doc)
				}
				return nil
			}
			chosen, err := chooseMutants(args)
			if err != nil {
				return usageError{err}
			}
			if o.seeds < 1 || o.seeds > seedsMax {
				return usageError{fmt.Errorf("--seeds %d: must be 1 to %d", o.seeds, seedsMax)}
			}
			return o.runMutants(cmd, chosen, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.out, "out", "", "parent folder of the runs, new or empty (default: reports/out/<time>-mutants-<seed>)")
	f.Uint64Var(&o.seed, "seed", 0, "first seed; 0 draws one")
	f.IntVar(&o.seeds, "seeds", 1, "seeds to try until a design is killed")
	f.BoolVar(&o.reference, "reference", true, "run the right design in each scenario, too")
	f.StringVar(&o.binDir, "bin-dir", "", "folder of the product's binaries (default: that of hotsku)")
	f.BoolVar(&listed, "list", false, "print one wrong design a line, and run nothing")
	return cmd
}

// chooseMutants picks them by name; all without one.
func chooseMutants(names []string) ([]mutants.Mutant, error) {
	all := mutants.All()
	if len(names) == 0 {
		return all, nil
	}
	known := make([]string, len(all))
	for i := range all {
		known[i] = all[i].Name
	}
	var chosen []mutants.Mutant
	for _, name := range names {
		i := slices.Index(known, name)
		if i < 0 {
			return nil, fmt.Errorf("there is no wrong design %q%s; hotsku mutants --list shows them all", name, didYouMean("", name, known))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// runMutants runs the chosen designs and prints the matrix, as far as it came.
func (o *mutantFlags) runMutants(cmd *cobra.Command, chosen []mutants.Mutant, args []string) error {
	binaries, err := o.binaries()
	if err != nil {
		return err
	}
	if err := fleet.CheckMutant(binaries); err != nil {
		return err
	}
	o.drawSeed()
	if o.out == "" {
		o.out = filepath.Join("reports", "out", runName(time.Now(), "mutants", o.seed))
	}
	if entries, err := os.ReadDir(o.out); err == nil && len(entries) > 0 {
		return usageError{fmt.Errorf("%s is not empty: give --out a new or empty folder", o.out)}
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return usageError{fmt.Errorf("%w: give --out a folder that you may write", err)}
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(800)
	}
	o.servers = &scenarios.Servers{}
	matrix := mutants.Matrix{Schema: mutants.MatrixSchema, Command: commandLine(cmd, args, o.seed)}
	referred := map[string]bool{}
	for i, m := range chosen {
		if o.reference && !referred[m.Scenario] {
			referred[m.Scenario] = true
			row := mutants.Row{Design: mutants.ReferenceName, Scenario: m.Scenario, KilledBy: []string{}}
			err = o.runRow(cmd, &row, binaries, mutants.Mutant{Name: mutants.ReferenceName, Scenario: m.Scenario})
			matrix.Rows = append(matrix.Rows, row)
			if err != nil {
				break
			}
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "\n%d of %d: %s, %s\n", i+1, len(chosen), m.Name, m.Doc)
		row := mutants.Row{Design: m.Name, Scenario: m.Scenario, KilledBy: m.KilledBy}
		err = o.runRow(cmd, &row, binaries, m)
		matrix.Rows = append(matrix.Rows, row)
		if err != nil {
			break
		}
	}
	code := matrix.Conclude()
	err = errors.Join(err, o.servers.Close(), matrix.WriteText(cmd.OutOrStdout()), rundir.WriteJSON(filepath.Join(o.out, matrixFile), &matrix))
	if err == nil && code != 0 {
		err = verdictError{code}
	}
	return err
}

// runRow runs a design with seed after seed until the row is done. An error
// ends everything: the run was interrupted, or left something running.
func (o *mutantFlags) runRow(cmd *cobra.Command, row *mutants.Row, binaries fleet.Binaries, m mutants.Mutant) error {
	i := slices.IndexFunc(scenarios.All(), func(s scenarios.Scenario) bool { return s.Name == m.Scenario })
	if i < 0 {
		return fmt.Errorf("%s: there is no scenario %q", m.Name, m.Scenario)
	}
	s := scenarios.All()[i]
	for seed := o.seed; seed < o.seed+uint64(o.seeds) && !row.Done(); seed++ {
		dir := rundir.Dir(filepath.Join(o.out, fmt.Sprintf("%s-%s-%d", m.Name, m.Scenario, seed)))
		fmt.Fprintf(cmd.ErrOrStderr(), "%s in %s, seed %d\n", m.Name, m.Scenario, seed)
		finding, err := o.runMutant(cmd, s, seed, dir, binaries, m)
		row.Runs = append(row.Runs, mutants.Run{Seed: seed, Dir: string(dir), Finding: finding})
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "%s in %s, seed %d: %s %v\n", m.Name, m.Scenario, seed, finding.Outcome, finding.By)
	}
	return nil
}

func (o *mutantFlags) runMutant(cmd *cobra.Command, s scenarios.Scenario, seed uint64, dir rundir.Dir, binaries fleet.Binaries, m mutants.Mutant) (mutants.Finding, error) {
	again := fmt.Sprintf("hotsku chaos run %s --seed %d", s.Name, seed)
	if m.Name != mutants.ReferenceName {
		binaries = fleet.Mutated(binaries, m.Name, mutants.FiringFile(dir))
		again = fmt.Sprintf("hotsku mutants %s --seed %d", m.Name, seed)
	}
	p := newProgress(cmd.ErrOrStderr(), time.Now)
	run, err := scenarios.Run(cmd.Context(), s, scenarios.Options{Dir: dir, Seed: seed, Command: again,
		SLOMode: rundir.SLOReport, Binaries: binaries, Progress: p, Servers: o.servers})
	p.done()
	switch {
	case cmd.Context().Err() != nil && !errors.Is(err, scenarios.ErrLeft):
		err = fmt.Errorf("interrupted; everything was stopped, evidence so far is in %s", o.out)
		return mutants.Broken(err), err
	case errors.Is(err, scenarios.ErrLeft), errors.Is(err, context.Canceled):
		return mutants.Broken(err), err
	case err != nil:
		return mutants.Broken(err), nil
	case m.Name == mutants.ReferenceName:
		return mutants.JudgeReference(run), nil
	}
	plan, err := dir.ReadPlan()
	if err != nil {
		return mutants.Broken(err), nil
	}
	firings, err := mutants.CountFirings(dir, m.Name, plan.Activities[0].ActivityID)
	if err != nil {
		return mutants.Broken(err), nil
	}
	return m.Judge(run, firings), nil
}
