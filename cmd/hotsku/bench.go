package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/hotsku/hotsku/scenarios"
)

func newBench() *cobra.Command {
	load := scenarios.LoadDefault
	o := newRunFlags()
	scheme := schemeDefault
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Sell one hot SKU under open-loop load and prove the result",
		Long: `Bring up real Redis, PostgreSQL and RocketMQ, run every role of the product, offer the load
open loop (a slow server does not slow it down; latency runs from the intended time), wait until
every order has arrived, copy the stores, judge the evidence, and write a report. Everything it
started is gone when it returns.

Exit codes: 0 pass, 1 an invariant violated or an SLO missed, 2 inconclusive (the generator fell
behind, evidence is missing, the environment failed), 64 bad command line.`,
		Example: `  hotsku bench
  hotsku bench --rate 20000 --duration 5s --stock 10000 --seed 7
  hotsku bench --slo=report --out /tmp/run`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := load.Validate(); err != nil {
				return usageError{err}
			}
			if scheme != schemeDefault {
				return usageError{fmt.Errorf("--scheme %q is not known; known is %s", scheme, schemeDefault)}
			}
			return o.run(cmd, scenarios.Bench(load))
		},
	}
	f := cmd.Flags()
	f.Int64Var(&load.RatePerS, "rate", load.RatePerS, "requests per second")
	f.DurationVar(&load.Duration, "duration", load.Duration, "length of the load")
	f.Int64Var(&load.Stock, "stock", load.Stock, "units of the SKU")
	f.IntVar(&load.Connections, "connections", load.Connections, "keep-alive connections")
	f.IntVar(&load.Depth, "depth", load.Depth, "requests in flight on a connection, at most (1: no pipelining)")
	f.DurationVar(&load.Timeout, "timeout", load.Timeout, "how long an answer may take, from when its request was written, before it counts as timed out; waiting to be written is in the latency, not in this")
	f.StringVar(&scheme, "scheme", scheme, "how the SKU is sold")
	o.register(cmd)
	return cmd
}

// schemeDefault is the scheme this build runs.
const schemeDefault = "redis-mq-token"

// runName is a run directory's name.
func runName(at time.Time, name string, seed uint64) string {
	return fmt.Sprintf("%s-%s-%d", at.UTC().Format("20060102T150405.000Z"), name, seed)
}
