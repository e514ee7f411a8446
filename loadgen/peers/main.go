// Command peers compares hotsku load with other load generators, in one run,
// against one bare server, on the cores they all share. Figures of one run are
// compared with each other only; ratios are what lasts.
//
// Imports allowed: loadgen/summary, and what draws.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	serve := flag.Bool("serve", false, "be the bare server instead")
	flag.StringVar(&o.hotsku, "hotsku", "bin/hotsku", "the generator under comparison")
	flag.StringVar(&o.bin, "bin", "", "folder of peers that are not on the path")
	flag.DurationVar(&o.each, "each", 5*time.Second, "length of a run")
	flag.IntVar(&o.rounds, "rounds", 3, "runs of each generator; the median counts")
	flag.StringVar(&o.readme, "readme", "loadgen/README.md", "file whose table is replaced; empty: it is only printed")
	flag.StringVar(&o.chart, "chart", "loadgen/peers.svg", "chart to write; empty: none")
	flag.Parse()
	job := func() error { return o.run(ctx) }
	if *serve {
		job = bareServer
	}
	if err := job(); err != nil {
		fmt.Fprintln(os.Stderr, "peers: "+err.Error())
		os.Exit(2)
	}
}
