// Package cli is the product's command line: one subcommand a role, and what
// prepares and mends a sale (migrate, activity, token, dlq). A main function
// gives it the wiring that its roles run with.
//
// Exit codes: 0 done, 1 reconcile --once found something not conserved, 2 the
// environment failed, 64 bad command line or configuration and nothing was
// started.
package cli

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
	"github.com/spf13/pflag"

	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/settings"
)

const (
	exitEnvironment = 2
	exitUsage       = 64
)

// usageError is a command line that cannot be obeyed.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Main obeys the words after the program's name and returns the exit code.
// The roles run with w.
func Main(w app.Wiring, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal drains, the second ends the process at once.
	context.AfterFunc(ctx, stop)
	root := newRoot(w)
	root.SetArgs(args)
	return run(ctx, root)
}

func run(ctx context.Context, root *cobra.Command) int {
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(root.ErrOrStderr(), "seckill: "+oneLine(err))
	if errors.Is(err, errNotConserved) {
		return exitNotConserved
	}
	if errors.As(err, new(usageError)) || errors.Is(err, app.ErrConfig) {
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

// oneLine has what was joined apart by "; ", and what one error says in several
// lines by a space.
func oneLine(err error) string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && strings.Contains(err.Error(), "\n") {
		var parts []string
		for _, e := range joined.Unwrap() {
			parts = append(parts, oneLine(e))
		}
		return strings.Join(parts, "; ")
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

func newRoot(w app.Wiring) *cobra.Command {
	root := &cobra.Command{
		Use:   "seckill",
		Short: "Sell one hot item without ever selling one too many",
		Long: `seckill runs the roles of the flash-sale order system and prepares sales.

Every flag can be given by environment, --name-server as SECKILL_NAME_SERVER, and in a YAML file named by --config:

  redis: 127.0.0.1:6379            # for all commands
  name-server: 127.0.0.1:9876
  orders:                          # for one command
    listen: 127.0.0.1:8081

Flags win over the environment, that over the file. seckill config ROLE prints what a role would run with.
Give secrets (--token-key, --redis-password) by environment or file: others can read a command line.`,
		Example: `  seckill migrate --postgres "$DSN" --name-server 127.0.0.1:9876 --broker 127.0.0.1:10911
  seckill activity create --activity 10001 --sku 20001 --stock 10000 --postgres "$DSN" --redis 127.0.0.1:6379
  seckill access --listen 127.0.0.1:8080 --redis 127.0.0.1:6379 --name-server 127.0.0.1:9876`,
		Version:       build(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w%s; %s --help lists the flags", settings.Explain(err), nearestFlag(cmd, err), cmd.CommandPath())}
	})
	o := &options{cfg: app.ConfigDefault(), wiring: w}
	root.PersistentFlags().StringVar(&o.configFile, configFlag, "", "configuration file, YAML")
	running := roles(o)
	root.AddCommand(running...)
	root.AddCommand(newConfig(o, running), newMigrate(o), newActivity(o), newToken(o), newDLQ(o))
	return root
}

// noArgs refuses positional arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		var names []string
		for _, c := range cmd.Commands() {
			names = append(names, c.Name())
		}
		return usageError{fmt.Errorf("unknown command %q%s; %s --help lists the commands", args[0], didYouMean("", args[0], names), cmd.CommandPath())}
	}
	return usageError{fmt.Errorf("%s takes no argument, but got %q", cmd.CommandPath(), args[0])}
}

// nearestFlag names the flag that an unknown one was probably meant to be.
func nearestFlag(cmd *cobra.Command, err error) string {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return ""
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return didYouMean("--", unknown.GetSpecifiedName(), names)
}

// didYouMean is empty if none of words is near.
func didYouMean(prefix, word string, words []string) string {
	if near := settings.Nearest(word, words); near != "" {
		return " (did you mean " + prefix + near + "?)"
	}
	return ""
}
