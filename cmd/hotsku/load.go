package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hotsku/hotsku/loadgen"
	"github.com/hotsku/hotsku/loadgen/pace"
	"github.com/hotsku/hotsku/loadgen/slo"
	"github.com/hotsku/hotsku/loadgen/summary"
	"github.com/hotsku/hotsku/loadgen/template"
)

// loadFlags are those of hotsku load.
type loadFlags struct {
	rate      float64
	duration  time.Duration
	shape     string
	seed      uint64
	conns     int
	depth     int
	connRamp  time.Duration
	client    string
	method    string
	headers   []string
	body      string
	literal   bool
	users     uint64
	timeout   time.Duration
	catchUp   time.Duration
	connect   string
	insecure  bool
	ports     string
	slo       string
	lagLimit  time.Duration
	out       string
	shard     string
	startAt   string
	json, csv bool
	prom      bool
	quiet     bool
	dump      string
}

func newLoad() *cobra.Command {
	var o loadFlags
	cmd := &cobra.Command{
		Use:   "load URL",
		Short: "Load any HTTP URL, open loop, with every request accounted for",
		Long: `Send requests to a URL when a schedule says so, whatever the server does. Latency runs from the moment
a request was meant to be sent; service time, from the write, is shown beside it. Every scheduled
request ends in exactly one way, also after Ctrl-C:

  scheduled = completed + failed + timed out + dropped + unfinished

A run whose generator fell behind says so and why, instead of calling the delay the server's.

Shapes (--shape); joined by "+" they run at once, by "," one after another; a bare name takes --rate
and --duration:
  ` + strings.ReplaceAll(pace.Forms, "\n", "\n  ") + `

Fields in URL, headers and body:
  ` + strings.ReplaceAll(template.Fields, "\n", "\n  ") + `

Objectives (--slo): ` + strings.ReplaceAll(slo.Forms, "\n", "\n  ") + `

Exit codes: 0 pass, 1 an objective was missed, 2 inconclusive (interrupted, sent late, dropped, not
sustained, no answer, no connection), 64 bad command line and nothing was sent.`,
		Example: `  hotsku load http://127.0.0.1:8080/
  hotsku load --rate 2000 --duration 30s --slo 'p99<100ms,errors<0.1%' http://127.0.0.1:8080/
  hotsku load --shape ramp:0:5000:1m,constant:5000:5m --out reports/out/soak http://127.0.0.1:8080/
  hotsku load --body '{"user":{{user}},"id":"{{uuid}}"}' --users 1000 --header 'Content-Type: application/json' http://127.0.0.1:8080/orders
  hotsku load --rate 300000 --conns 32 --depth 512 http://127.0.0.1:8080/    # pipelined
  hotsku load --shard 1/2 --start-at 2026-11-11T00:00:00Z --out a http://127.0.0.1:8080/    # hotsku merge a b
  hotsku load --dump a | head`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case o.dump != "" && len(args) > 0:
				return usageError{errors.New("load --dump takes a folder and no URL")}
			case o.dump == "" && len(args) != 1:
				return usageError{fmt.Errorf("load takes one URL such as http://127.0.0.1:8080/, got %d arguments; hotsku load --help has examples", len(args))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.dump != "" {
				return dumpHistory(cmd.OutOrStdout(), o.dump)
			}
			l, err := o.prepare(args[0])
			if err != nil {
				return usageError{err}
			}
			return l.run(cmd)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Float64Var(&o.rate, "rate", 100, "requests per second")
	f.DurationVar(&o.duration, "duration", 10*time.Second, "length of the load")
	f.StringVar(&o.shape, "shape", "constant", "when requests are due, see above")
	f.StringVar(&o.method, "method", "", "GET, or POST if there is a body, unless given")
	f.StringArrayVarP(&o.headers, "header", "H", nil, "'Name: value', may be repeated")
	f.StringVar(&o.body, "body", "", "body of every request; @FILE reads it from a file")
	f.BoolVar(&o.literal, "literal", false, "send {{ }} as it is")
	f.Uint64Var(&o.users, "users", 0, "number of users that take turns; 0: each request is another's")
	f.IntVar(&o.conns, "conns", 0, "keep-alive connections; 0: one for 100 requests per second at the peak, 16 to 1,000")
	f.IntVar(&o.depth, "depth", 1, "requests in flight on a connection, at most (1: no pipelining)")
	f.DurationVar(&o.connRamp, "conn-ramp", 0, "open the connections evenly over this time instead of before the start")
	f.DurationVar(&o.timeout, "timeout", loadgen.TimeoutDefault, "how long an answer may take before it counts as timed out")
	f.DurationVar(&o.catchUp, "catch-up", loadgen.CatchUpDefault, "how long after the schedule requests that waited may still be sent")
	f.StringVar(&o.slo, "slo", "", "objectives, such as 'p99<100ms,errors<0.1%'; a missed one exits 1")
	f.DurationVar(&o.lagLimit, "lag-limit", summary.SendLagLimitDefault, "P99 of send lag above which the run is inconclusive")
	f.StringVar(&o.out, "out", "", "new or empty folder for summary, histograms, charts and the history of every request")
	f.BoolVar(&o.json, "json", false, "print the summary as JSON")
	f.BoolVar(&o.csv, "csv", false, "print the series as CSV")
	f.BoolVar(&o.prom, "prometheus", false, "print the figures in Prometheus' text format")
	f.BoolVar(&o.quiet, "quiet", false, "no live line")
	f.Uint64Var(&o.seed, "seed", 1, "seed of everything that is drawn")
	f.StringVar(&o.shard, "shard", "", "I/N: offer the I-th of N shares, interleaved, with users of its own; needs --out")
	f.StringVar(&o.startAt, "start-at", "", "begin at this time (RFC 3339), so that shards begin together")
	f.StringVar(&o.connect, "connect", "", "host:port to connect to instead of the URL's")
	f.BoolVar(&o.insecure, "insecure", false, "trust any certificate")
	f.StringVar(&o.ports, "local-ports", "", "FIRST-LAST local port to use (Linux 6.3)")
	f.StringVar(&o.client, "client", string(loadgen.ClientWire), "wire, or fasthttp to compare (depth 1 alone)")
	f.StringVar(&o.dump, "dump", "", "print the history of the run in this folder as CSV, and send nothing")
	return cmd
}

// loader is a load that was checked.
type loader struct {
	o       *loadFlags
	cfg     loadgen.Config
	plan    summary.Plan
	index   int // of the shard, from 1
	startAt time.Time
}

// prepare checks the command line, all of it, before anything is opened.
func (o *loadFlags) prepare(url string) (*loader, error) {
	l := &loader{o: o, index: 1}
	body := []byte(o.body)
	if path, file := strings.CutPrefix(o.body, "@"); file {
		var err error
		if body, err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("--body: %w", err)
		}
	}
	tpl, err := template.New(template.Params{Method: o.method, URL: url, Headers: o.headers, Body: body, Literal: o.literal, Users: o.users, Seed: o.seed})
	if err != nil {
		return nil, err
	}
	if o.depth < 1 || o.timeout <= 0 {
		return nil, fmt.Errorf("--depth %d, --timeout %v: give at least 1, and more than 0s", o.depth, o.timeout)
	}
	sample, _, _ := tpl.Append(nil, 0)
	verb, _, _ := strings.Cut(string(sample), " ")
	digest := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %v", verb, url, o.headers, body, o.literal))
	l.plan = summary.Plan{Request: verb + " " + url, Digest: hex.EncodeToString(digest[:8]), Shape: o.shape, RatePerS: o.rate, Duration: o.duration.String(),
		Seed: o.seed, Users: o.users, Client: o.client, Conns: o.conns, Depth: o.depth, Timeout: o.timeout.String(), SLO: o.slo, LagLimit: o.lagLimit.String(), Shards: 1}
	schedule, err := l.plan.Schedule()
	switch {
	case err != nil && strings.ContainsAny(o.shape, ":+,"):
		return nil, fmt.Errorf("--shape: %w", err)
	case err != nil: // its figures are the other flags'
		return nil, fmt.Errorf("--shape, --rate, --duration: %w", err)
	}
	if o.conns == 0 {
		o.conns = connsFor(schedule)
		l.plan.Conns = o.conns
	}
	if schedule, err = l.shard(schedule); err != nil {
		return nil, err
	}
	if err := o.checkOutputs(); err != nil {
		return nil, err
	}
	if o.startAt != "" {
		if l.startAt, err = time.Parse(time.RFC3339, o.startAt); err != nil {
			return nil, fmt.Errorf("--start-at: %w: give a time such as 2026-11-11T00:00:00Z", err)
		}
	}
	l.cfg = loadgen.Config{Addrs: []string{tpl.Addr()}, Schedule: schedule, NewSource: func() loadgen.Source { return tpl }, Extract: summary.Extract,
		Conns: o.conns, Depth: o.depth, ConnRamp: o.connRamp, Client: loadgen.Client(o.client), Timeout: o.timeout, CatchUp: o.catchUp,
		Grace: o.timeout + time.Second}
	if o.connect != "" {
		l.cfg.Addrs = []string{o.connect}
	}
	if host, secure := tpl.Secure(); secure {
		l.cfg.TLS = &tls.Config{ServerName: host, InsecureSkipVerify: o.insecure} //nolint:gosec // asked for by its name
	}
	if o.ports != "" {
		if _, err := fmt.Sscanf(o.ports, "%d-%d", &l.cfg.LocalPorts[0], &l.cfg.LocalPorts[1]); err != nil {
			return nil, fmt.Errorf("--local-ports %q: give two port numbers such as 40000-49999", o.ports)
		}
	}
	return l, l.cfg.Validate()
}

// connsFor is one connection for 100 requests per second of the schedule's
// busiest hundredth, 16 to 1,000.
func connsFor(s pace.Schedule) int {
	const parts = 100
	peak, part := uint64(0), s.Span()/parts
	for i := range time.Duration(parts) {
		peak = max(peak, s.Due((i+1)*part)-s.Due(i*part))
	}
	return int(min(max(math.Ceil(float64(peak)/part.Seconds()/100), 16), 1000))
}

// checkOutputs checks what is to become of the figures.
func (o *loadFlags) checkOutputs() error {
	if o.slo != "" {
		if _, err := slo.Parse(o.slo); err != nil {
			return err
		}
	}
	if o.json && o.csv || o.json && o.prom || o.csv && o.prom {
		return errors.New("give one of --json, --csv and --prometheus; --out keeps all of them")
	}
	if o.out != "" {
		return summary.Prepare(o.out)
	}
	return nil
}

// shard takes the share that --shard asks for.
func (l *loader) shard(whole pace.Schedule) (pace.Schedule, error) {
	o := l.o
	if o.shard == "" {
		return whole, nil
	}
	var i, n int
	if read, err := fmt.Sscanf(o.shard, "%d/%d", &i, &n); err != nil || read != 2 || fmt.Sprintf("%d/%d", i, n) != o.shard || i < 1 || i > n {
		return nil, fmt.Errorf("--shard %q: give I/N with I from 1 to N, such as 1/3", o.shard)
	}
	if o.out == "" {
		return nil, errors.New("--shard needs --out: hotsku merge reads what shards leave there")
	}
	if o.users%uint64(n) != 0 {
		return nil, fmt.Errorf("--users %d: %d shards cannot have users of their own; give a multiple of %[2]d", o.users, n)
	}
	l.index, l.plan.Shards = i, n
	return pace.NewShard(whole, i-1, n)
}

// run offers the load, and prints and keeps what came of it.
func (l *loader) run(cmd *cobra.Command) error {
	ctx, stderr := cmd.Context(), cmd.ErrOrStderr()
	for _, warning := range loadgen.Preflight(l.cfg) {
		fmt.Fprintln(stderr, "warning: "+warning)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(800) // a collection may cost punctuality, memory is plenty
	}
	if l.o.out != "" {
		l.cfg.HistoryDir = summary.HistoryDir(l.o.out)
	}
	live := newLiveLine(stderr)
	if !l.o.quiet {
		l.cfg.OnProgress = live.show
	}
	if !l.startAt.IsZero() {
		l.cfg.Start = l.waitUntilStart(ctx, stderr)
	}
	res, err := loadgen.Run(ctx, l.cfg)
	live.done()
	if res == nil {
		return fmt.Errorf("%w; nothing was scheduled", err)
	}
	host, _ := os.Hostname() // for people; empty if it has none
	sum, sumErr := summary.Of(res, l.plan, l.index, host)
	if err := errors.Join(err, sumErr); err != nil {
		if sum != nil {
			fmt.Fprintln(stderr, sum.Account)
		}
		return err
	}
	if l.o.out != "" {
		if err := sum.Save(l.o.out); err != nil {
			return err
		}
	}
	return report(cmd.OutOrStdout(), sum, l.o.format(), l.o.out)
}

// waitUntilStart returns a channel that is closed at the time to begin.
func (l *loader) waitUntilStart(ctx context.Context, stderr io.Writer) <-chan struct{} {
	start := make(chan struct{})
	l.cfg.OnReady = func() {
		wait := time.Until(l.startAt)
		if wait < 0 {
			fmt.Fprintf(stderr, "warning: --start-at was %v ago; beginning now\n", -wait.Round(time.Millisecond))
		} else {
			fmt.Fprintf(stderr, "ready; beginning in %v\n", wait.Round(time.Millisecond))
		}
		time.AfterFunc(wait, func() { close(start) })
	}
	return start
}

// format is what to print.
func (o *loadFlags) format() func(*summary.Summary, io.Writer) error {
	switch {
	case o.json:
		return (*summary.Summary).JSON
	case o.csv:
		return (*summary.Summary).CSV
	case o.prom:
		return (*summary.Summary).Prometheus
	}
	return nil
}

// report prints a summary, says where the rest is, and turns the verdict into
// the exit code.
func report(w io.Writer, sum *summary.Summary, format func(*summary.Summary, io.Writer) error, out string) error {
	text := format == nil
	if text {
		format = (*summary.Summary).Text
	}
	if err := format(sum, w); err != nil {
		return err
	}
	if text && out != "" {
		fmt.Fprintf(w, "all of it: %s\n", out)
	}
	if code := sum.ExitCode(); code != 0 {
		return verdictError{code}
	}
	return nil
}
