package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/hotsku/hotsku/reports"
	"github.com/hotsku/hotsku/scenarios"
	"github.com/hotsku/hotsku/scenarios/fleet"
	"github.com/hotsku/hotsku/verify/rundir"
)

// runFlags are shared by the commands that run scenarios.
type runFlags struct {
	out     string
	seed    uint64
	sloMode string
	binDir  string
	servers *scenarios.Servers // kept from run to run; nil: each has its own
}

func newRunFlags() *runFlags { return &runFlags{sloMode: rundir.SLOEnforce} }

func (o *runFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.out, "out", "", "run directory, new or empty (default: reports/out/<time>-<name>-<seed>)")
	f.Uint64Var(&o.seed, "seed", 0, "seed of users, request ids and faults; 0 draws one")
	f.StringVar(&o.sloMode, "slo", o.sloMode, "enforce: a missed SLO exits 1; report: it is only shown")
	f.StringVar(&o.binDir, "bin-dir", "", "folder of the product's binaries (default: that of hotsku)")
}

// verdictError carries a judged run's exit code; the verdict is printed
// already.
type verdictError struct{ code int }

func (e verdictError) Error() string { return fmt.Sprintf("exit %d", e.code) }

// drawSeed draws the seed if none was given.
func (o *runFlags) drawSeed() {
	if o.seed == 0 {
		o.seed = 1 + rand.Uint64N(1<<32)
	}
}

// run runs one scenario and prints its verdict. again are the words that name
// it after the command.
func (o *runFlags) run(cmd *cobra.Command, s scenarios.Scenario, again ...string) error {
	if err := o.ready(); err != nil {
		return err
	}
	binaries, err := o.binaries()
	if err != nil {
		return err
	}
	o.drawSeed()
	dir := o.out
	if dir == "" {
		dir = filepath.Join("reports", "out", runName(time.Now(), s.Name, o.seed))
	}
	// The generator shares the cores with what it measures.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(800)
	}
	p := newProgress(cmd.ErrOrStderr(), time.Now)
	run, err := scenarios.Run(cmd.Context(), s, scenarios.Options{Dir: rundir.Dir(dir), Seed: o.seed,
		Command: commandLine(cmd, again, o.seed, manyFlags...), SLOMode: o.sloMode, Binaries: binaries, Progress: p, Servers: o.servers})
	p.done()
	switch {
	case err == nil:
		return printVerdict(cmd.OutOrStdout(), rundir.Dir(dir), run)
	case errors.Is(err, scenarios.ErrUsage):
		return usageError{err}
	case cmd.Context().Err() != nil && errors.Is(err, scenarios.ErrLeft):
		return fmt.Errorf("interrupted, and %w; evidence so far is in %s", err, dir)
	case cmd.Context().Err() != nil:
		return fmt.Errorf("interrupted; everything was stopped, evidence so far is in %s", dir)
	}
	return fmt.Errorf("%w; what evidence there is, and every process's log, is in %s", err, dir)
}

// ready says what would keep every run from starting.
func (o *runFlags) ready() error {
	if o.sloMode != rundir.SLOEnforce && o.sloMode != rundir.SLOReport {
		return usageError{fmt.Errorf("--slo %q: must be %s or %s", o.sloMode, rundir.SLOEnforce, rundir.SLOReport)}
	}
	_, err := o.binaries()
	return err
}

// binaries finds the product beside hotsku itself.
func (o *runFlags) binaries() (fleet.Binaries, error) {
	dir := o.binDir
	if dir == "" {
		self, err := os.Executable()
		if err != nil {
			return fleet.Binaries{}, fmt.Errorf("find hotsku's folder: %w: give --bin-dir", err)
		}
		dir = filepath.Dir(self)
	}
	return fleet.FindBinaries(dir)
}

// printVerdict prints the table and turns the verdict into the exit code.
func printVerdict(w io.Writer, dir rundir.Dir, run *rundir.Run) error {
	if err := reports.Terminal(w, scenarios.ReportInput(dir, run), terminalOptions(w)); err != nil {
		return fmt.Errorf("print the verdict: %w", err)
	}
	if run.ExitCode != 0 {
		return verdictError{run.ExitCode}
	}
	return nil
}

func terminalOptions(w io.Writer) reports.TerminalOptions {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return reports.TerminalOptions{}
	}
	o := reports.TerminalOptions{Color: os.Getenv("NO_COLOR") == ""}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil {
		o.Width = min(width, reports.TerminalWidthDefault)
	}
	return o
}

// manyFlags choose several runs; the command of one of them is without.
var manyFlags = []string{"tag", "all", "seeds", "resume"}

// commandLine is what to type to run the same again: with the seed that was
// drawn, and without the folder that is not empty any more and flags to leave.
func commandLine(cmd *cobra.Command, again []string, seed uint64, leave ...string) string {
	path := strings.Fields(cmd.CommandPath())
	words := slices.Concat([]string{program(os.Args[0])}, path[1:], again)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch {
		case f.Name == "out", f.Name == "seed", slices.Contains(leave, f.Name):
		case f.Value.Type() == "bool" && f.Value.String() == "true":
			words = append(words, "--"+f.Name)
		default:
			words = append(words, "--"+f.Name, shellWord(f.Value.String()))
		}
	})
	if cmd.Flags().Lookup("seed") != nil {
		words = append(words, "--seed", strconv.FormatUint(seed, 10))
	}
	return strings.Join(words, " ")
}

// program is how hotsku was called, so that the command is found where it was
// typed; by its name if it was called otherwise.
func program(called string) string {
	if filepath.Base(called) == "hotsku" {
		return shellWord(called)
	}
	return "hotsku"
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`)

// shellWord quotes s if a shell would take it for more than one word.
func shellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return shellQuote(s)
}
