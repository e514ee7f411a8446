package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/hotsku/hotsku/stack"
	"github.com/spf13/cobra"
)

func newUp() *cobra.Command {
	var (
		name          string
		portBase      int
		asEnv, asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start Redis, PostgreSQL and RocketMQ and keep them until hotsku down",
		Long: `Start a stack of real servers that outlives this command, or say where it is if it runs.
Servers of it that have ended are started again with their data.`,
		Example: `  hotsku up --stack dev
  eval "$(hotsku up --stack dev --env)" && go test ./...
  eval "$(hotsku up --stack dev --env)" && seckill migrate && seckill activity create --activity 1 --sku 2 --stock 100`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := stack.Options{Name: name, PortBase: portBase, Keep: true,
				Progress: func(server string, took time.Duration) {
					cmd.PrintErrf("%-8s ready after %.1f s\n", server, took.Seconds())
				}}
			if err := o.Validate(); err != nil {
				return usageError{err}
			}
			if asEnv && asJSON {
				return usageError{errors.New("--env and --json exclude each other")}
			}
			s, ran, err := stack.UpKept(cmd.Context(), o)
			if errors.Is(err, stack.ErrOtherPorts) {
				return usageError{err}
			}
			if err != nil {
				return err
			}
			defer s.Close()
			if ran {
				cmd.PrintErrf("stack %s runs already\n", name)
			}
			return printAddresses(cmd.OutOrStdout(), s.Addresses(), asEnv, asJSON)
		},
	}
	cmd.Flags().StringVar(&name, "stack", "default", "name of the stack")
	cmd.Flags().IntVar(&portBase, "port-base", 0, "first of eight ports in a row (0: chosen)")
	cmd.Flags().BoolVar(&asEnv, "env", false, "print shell exports, by which tests (HOTSKU_TEST_…) and seckill (SECKILL_…) find the servers")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the addresses as JSON")
	return cmd
}

func printAddresses(w io.Writer, a stack.Addresses, asEnv, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(a)
	}
	lines := []struct{ label, test, product, value string }{
		{"redis", "HOTSKU_TEST_REDIS", "SECKILL_REDIS", a.Redis},
		{"postgres", "HOTSKU_TEST_POSTGRES", "SECKILL_POSTGRES", a.Postgres},
		{"name server", "HOTSKU_TEST_NAMESRV", "SECKILL_NAME_SERVER", a.NameServer},
		{"broker", "HOTSKU_TEST_BROKER", "SECKILL_BROKER", a.Broker},
		{"metrics", "HOTSKU_TEST_BROKER_METRICS", "", a.BrokerMetrics},
	}
	var text strings.Builder
	for _, l := range lines {
		if !asEnv {
			fmt.Fprintf(&text, "%-12s %s\n", l.label, l.value)
			continue
		}
		for _, variable := range []string{l.test, l.product} {
			if variable != "" {
				fmt.Fprintf(&text, "export %s=%s\n", variable, shellQuote(l.value))
			}
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
