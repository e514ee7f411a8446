// Command hotsku is the harness: it brings the stores up, loads the product, breaks it, judges the
// evidence and reports.
//
// Exit codes: 0 done or passed, 1 violated or an SLO missed, 2 inconclusive (environment, evidence), 64
// bad command line and nothing was started.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes of every subcommand.
const (
	exitEnvironment = 2
	exitUsage       = 64
)

// usageError is a command line that cannot be obeyed.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// The first signal ends the work in order, the second the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, newRoot()))
}

func run(ctx context.Context, root *cobra.Command) int {
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var verdict verdictError
	if errors.As(err, &verdict) { // printed already
		return verdict.code
	}
	fmt.Fprintln(root.ErrOrStderr(), "hotsku: "+oneLine(err))
	if errors.As(err, new(usageError)) {
		return exitUsage
	}
	return exitEnvironment
}

// build is the module's version, as the toolchain stamped it.
func build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version + " " + info.GoVersion
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "hotsku",
		Short: "Prove a flash-sale system on real stores, under load and faults",
		Long: `hotsku proves a flash-sale system on real stores, under load and faults: bench and chaos start their own servers, run the
product, judge what it left and stop everything; up keeps servers for work by hand; load takes any URL.

Exit codes: 0 pass or done, 1 violated or an SLO missed, 2 inconclusive or the environment failed, 64 bad command line.`,
		Example: `  hotsku bench --rate 20000 --duration 5s
  hotsku chaos run one-consumer-dies --seed 3
  hotsku mutants get-then-decr
  hotsku verify reports/out/20261111T000000.000Z-bench-7
  eval "$(hotsku up --env)"; hotsku down
  hotsku load --rate 2000 http://127.0.0.1:8080/`,
		Version:       build(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newUp(), newDown(), newStatus(), newBench(), newLoad(), newMerge(), newChaos(), newMutants(), newVerify(), newCompareRuns(), newReport())
	return root
}
