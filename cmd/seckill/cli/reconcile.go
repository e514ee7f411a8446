package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/reconcile"
)

// exitNotConserved is the code of a reconciliation that found units or
// reservations in no place or in two.
const exitNotConserved = 1

// errNotConserved ends `reconcile --once`.
var errNotConserved = errors.New("not conserved: the report says what is where it cannot be; RUNBOOK.md says what to do")

// reconcileFlags say when something is too late.
func (o *options) reconcileFlags(f *pflag.FlagSet) {
	c := &o.cfg.Reconcile
	f.DurationVar(&c.Every, "reconcile-every", c.Every, "between two rounds")
	f.DurationVar(&c.StuckAfter, "stuck-after", c.StuckAfter, "how long a resend may be overdue before it is made here")
	f.DurationVar(&c.LostAfter, "lost-after", c.LostAfter, "how long a confirmed message may be undecided, with none as old at the broker, before it is sent again")
	f.DurationVar(&c.UnappliedAfter, "unapplied-after", c.UnappliedAfter, "how long a decision may be missing in Redis before its event is published again")
	f.IntVar(&c.RepairLimit, "repair-limit", c.RepairLimit, "most that one round sends and publishes again for a SKU")
	d := &o.cfg.DeadLetters
	f.IntVar(&d.Tries, "dead-letter-tries", d.Tries, "how often a readable dead letter is replayed by itself")
	f.DurationVar(&d.After, "dead-letter-after", d.After, "before the first replay, doubled at each")
}

// addOnce gives the reconcile role a way to run a single round.
func addOnce(o *options, cmd *cobra.Command) {
	var once, dryRun, asJSON bool
	f := cmd.Flags()
	f.BoolVar(&once, "once", false, "run one round, print its reports and end; 1 if something is not conserved")
	f.BoolVar(&dryRun, "dry-run", false, "with --once: print what would be mended, and change nothing")
	f.BoolVar(&asJSON, "json", false, "with --once: print JSON")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !once {
			if dryRun || asJSON {
				return usageError{errors.New("--dry-run and --json belong to --once")}
			}
			return run(cmd, args)
		}
		if _, err := o.settle(cmd); err != nil {
			return err
		}
		log, err := o.logger()
		if err != nil {
			return err
		}
		seed, err := o.idSeed()
		if err != nil {
			return err
		}
		reports, err := app.New(o.cfg, o.wiring, log, seed, nil).ReconcileOnce(cmd.Context(), dryRun)
		if err != nil && len(reports) == 0 {
			return err
		}
		return errors.Join(printReports(cmd.OutOrStdout(), reports, asJSON), err)
	}
}

func printReports(w io.Writer, reports []reconcile.Report, asJSON bool) error {
	conserved := true
	if asJSON {
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		if reports == nil {
			reports = []reconcile.Report{}
		}
		if err := out.Encode(reports); err != nil {
			return err
		}
	} else if len(reports) == 0 {
		fmt.Fprintln(w, "no sale to look after")
	}
	for i := range reports {
		if !asJSON {
			if err := reports[i].WriteText(w); err != nil {
				return err
			}
		}
		conserved = conserved && reports[i].Conserved()
	}
	if !conserved {
		return errNotConserved
	}
	return nil
}
