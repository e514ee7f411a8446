package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// What is offered. Unpipelined it is a share of what wrk reaches in the same
// run, so that the machine carries it; the idle rate hardly moves it.
const (
	shareOfWrk     = 0.75
	rateWithoutWrk = 20_000
	idleRate       = 1_000
)

var pipelinedRates = []int{300_000, 600_000}

// pipelineDepth is how many requests a connection of the pipelined runs has in
// flight at most.
const pipelineDepth = 2048

type options struct {
	hotsku, bin, readme, chart string
	each                       time.Duration
	rounds                     int

	unpipelined int // our rate
}

// measure is one run.
type measure struct {
	requests uint64        // by the server's count
	cpu      time.Duration // of the generator
	wall     time.Duration
	p99      float64 // ms; -1 if it was not found
	// Ours only, ms: how late requests were written, and the latency from then
	// on, which is what others call latency.
	lagP99, serviceP99 float64
}

func (m measure) perCPU() float64 { return float64(m.requests) / m.cpu.Seconds() }
func (m measure) cores() float64  { return m.cpu.Seconds() / m.wall.Seconds() }

// row is the median of a generator's rounds.
type row struct {
	name      string
	fast      measure // unpipelined, as fast as it goes
	idle      measure // at the same low rate
	hasIdle   bool
	leftOut   string // why it is not there
	pipelined []measure
}

func (o *options) run(ctx context.Context) error {
	tmp, err := os.MkdirTemp("", "hotsku-peers-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(tmp)
	srv, err := startServer(ctx)
	if err != nil {
		return err
	}
	defer srv.stop()
	if err := o.calibrate(ctx, srv, tmp); err != nil {
		return err
	}
	idle, err := o.idle(ctx, srv, tmp)
	if err != nil {
		return err
	}
	var rows []row
	for i, p := range peers(o.hotsku) {
		r, err := o.compare(ctx, srv, p, i == 0, tmp)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil {
			r = row{name: filepath.Base(p.name), leftOut: err.Error()}
		}
		r.idle, r.hasIdle = idle[p.name]
		rows = append(rows, r)
	}
	if rows[0].leftOut != "" {
		return fmt.Errorf("hotsku itself could not be measured: %s", rows[0].leftOut)
	}
	return o.publish(rows)
}

// calibrate sets our unpipelined rate.
func (o *options) calibrate(ctx context.Context, srv *server, tmp string) error {
	o.unpipelined = rateWithoutWrk
	for _, p := range peers(o.hotsku) {
		path, err := o.find(p.name)
		if p.name != "wrk" || err != nil {
			continue
		}
		m, err := o.median(ctx, srv, p, path, job{url: srv.url(), each: o.each, depth: 1}, tmp)
		if err != nil {
			return err
		}
		o.unpipelined = int(shareOfWrk*float64(m.requests)/m.wall.Seconds()/1000) * 1000
	}
	if o.unpipelined == 0 {
		return errors.New("this machine carries less than a thousand requests per second")
	}
	return nil
}

// compare runs a generator through what it can do.
func (o *options) compare(ctx context.Context, srv *server, p peer, ours bool, tmp string) (r row, err error) {
	r.name = filepath.Base(p.name)
	path, err := o.find(p.name)
	if err != nil {
		return r, err
	}
	j := job{url: srv.url(), each: o.each, depth: 1}
	if ours {
		j.rate = o.unpipelined
	}
	if r.fast, err = o.median(ctx, srv, p, path, j, tmp); err != nil {
		return r, err
	}
	for _, rate := range pipelinedRates {
		if !ours {
			break
		}
		j.rate, j.depth = rate, pipelineDepth
		m, err := o.median(ctx, srv, p, path, j, tmp)
		if err != nil {
			return r, err
		}
		r.pipelined = append(r.pipelined, m)
	}
	return r, nil
}

// find looks for a generator among the installed ones and on the path.
func (o *options) find(name string) (string, error) {
	if o.bin != "" {
		if path, err := exec.LookPath(filepath.Join(o.bin, name)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", errors.New("not installed")
	}
	return path, nil
}

// median runs a job several times and takes the round in the middle.
func (o *options) median(ctx context.Context, srv *server, p peer, path string, j job, tmp string) (measure, error) {
	var rounds []measure
	for i := range o.rounds {
		j.folder = filepath.Join(tmp, fmt.Sprintf("%s-%d-%d-%d", filepath.Base(p.name), j.rate, j.depth, i))
		m, err := once(ctx, srv, p, path, j)
		if err != nil {
			return m, err
		}
		note(p, j, m)
		rounds = append(rounds, m)
	}
	return middle(rounds), nil
}

// middle takes of each figure the round in the middle.
func middle(rounds []measure) measure {
	at := func(figure func(measure) float64) measure {
		slices.SortFunc(rounds, func(a, b measure) int { return cmp.Compare(figure(a), figure(b)) })
		return rounds[len(rounds)/2]
	}
	m := at(measure.perCPU)
	m.p99 = at(func(m measure) float64 { return m.p99 }).p99
	m.lagP99 = at(func(m measure) float64 { return m.lagP99 }).lagP99
	m.serviceP99 = at(func(m measure) float64 { return m.serviceP99 }).serviceP99
	return m
}

// idle has every generator that keeps a rate offer the same low one. They take
// turns: what else the machine does for a while, it does to all of them.
func (o *options) idle(ctx context.Context, srv *server, tmp string) (map[string]measure, error) {
	rounds := map[string][]measure{}
	for i := range 2*o.rounds - 1 {
		for _, p := range peers(o.hotsku) {
			path, err := o.find(p.name)
			if err != nil || !p.paced {
				continue
			}
			j := job{url: srv.url(), each: o.each, depth: 1, rate: idleRate, folder: filepath.Join(tmp, fmt.Sprintf("%s-idle-%d", filepath.Base(p.name), i))}
			m, err := once(ctx, srv, p, path, j)
			if ctx.Err() != nil {
				return nil, errors.New("interrupted")
			}
			if err != nil {
				continue // its row says why when it is loaded
			}
			note(p, j, m)
			rounds[p.name] = append(rounds[p.name], m)
		}
	}
	medians := map[string]measure{}
	for name, of := range rounds {
		medians[name] = middle(of)
	}
	return medians, nil
}

// note shows a round as it ends.
func note(p peer, j job, m measure) {
	fmt.Fprintf(os.Stderr, "%-8s rate %7d depth %4d: %8.0f/s, %7.0f a CPU second, %.2f cores, P99 %.3f ms, send lag P99 %.3f ms\n", filepath.Base(p.name), j.rate, j.depth,
		float64(m.requests)/m.wall.Seconds(), m.perCPU(), m.cores(), m.p99, m.lagP99)
}

// once is one run. The CPU time is that of the process and all it waited for.
func once(ctx context.Context, srv *server, p peer, path string, j job) (measure, error) {
	args := p.args(j)
	if len(args) == 0 {
		return measure{}, errors.New("it could not be set up")
	}
	cmd := exec.CommandContext(ctx, path, args...)
	if args[0] == "sh" { // $0 is the generator
		cmd = exec.CommandContext(ctx, "sh", append(args[1:], path)...)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	before, err := srv.served()
	if err != nil {
		return measure{}, err
	}
	began := time.Now()
	failed := cmd.Run()
	m := measure{wall: time.Since(began), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), p99: -1}
	after, err := srv.served()
	if err != nil {
		return m, err
	}
	if m.requests = after - before; m.requests == 0 {
		return m, fmt.Errorf("it sent nothing: %w: %.200s", errors.Join(failed, errors.New("no request was served")), errs.String())
	}
	if ms, ok := p.p99(out.String(), j); ok {
		m.p99 = ms
	}
	m.lagP99, m.serviceP99 = oursOf(out.String())
	return m, os.RemoveAll(j.folder)
}
