package verify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"time"

	"github.com/hotsku/hotsku/verify/rundir"
)

// Judgement is what the evidence of a run directory says.
type Judgement struct {
	plan           *rundir.Plan // nil if unreadable
	figures        rundir.Run   // all of run.json that evidence gives
	faults         []*rundir.EvidenceError
	altered        []*rundir.AlteredError
	contradictions []string // where the history is not the plan's
}

// Verify judges dir by its evidence. An error means that nothing was judged:
// dir is no run directory, or ctx ended. Evidence that is missing or spoilt is no
// error but part of the judgement.
func Verify(ctx context.Context, dir rundir.Dir) (*Judgement, error) {
	if err := dir.Recognise(); err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	e, err := gather(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("verify %s: %w", dir, err)
	}
	j := &Judgement{plan: e.plan, faults: e.found, altered: e.altered}
	run := &j.figures
	run.Schema = rundir.RunSchema
	for _, c := range checks() {
		run.Invariants = append(run.Invariants, c.judge(e))
	}
	run.Codes, run.LatencyMS.ByCode = map[string]int64{}, map[string]rundir.Percentiles{}
	run.Funnel, run.Faults, run.SLO = []rundir.FunnelStage{}, []rundir.FaultResult{}, []rundir.SLOResult{}
	run.Phases, run.Stages = []rundir.Phase{}, []rundir.Stage{}
	if p := e.plan; p != nil {
		run.Name, run.Seed, run.Scheme, run.Command, run.StartedAt = p.Name, p.Seed, p.Scheme, p.Command, p.CreatedAt
		if e.answers != nil {
			run.StartedAt = time.Unix(0, e.answers.startUnixNano).UTC()
			e.answers.figures.load(p, run)
			run.Funnel = e.answers.figures.funnel(&run.Load)
			run.Phases, run.Stages = e.answers.phases.result(), e.stages()
			j.contradictions = e.answers.contradictions
		}
		orders := e.orderFigures()
		run.Orders = orders.result
		run.Redis.Reserved, run.MQ.Stored = orders.reserved, e.messages
		run.Funnel = append(run.Funnel, orders.funnel()...)
		run.Faults = e.faultResults()
	}
	if s := e.snapshot; s != nil {
		run.Postgres.WALBytes = s.WALBytes
		run.Environment.Redis, run.Environment.Postgres, run.Environment.RocketMQ = s.Versions.Redis, s.Versions.Postgres, s.Versions.RocketMQ
	}
	return j, nil
}

// Run is run.json: the figures of the evidence, x's beside them, and the
// verdict. x decides nothing; its zero value leaves its figures empty.
func (j *Judgement) Run(x rundir.Extras) *rundir.Run {
	run := j.figures
	versions := run.Environment
	run.Environment = x.Environment
	for _, v := range []struct{ dst, src *string }{
		{&run.Environment.Redis, &versions.Redis},
		{&run.Environment.Postgres, &versions.Postgres},
		{&run.Environment.RocketMQ, &versions.RocketMQ},
	} {
		if *v.src != "" {
			*v.dst = *v.src
		}
	}
	reserved, stored, wal := run.Redis.Reserved, run.MQ.Stored, run.Postgres.WALBytes
	run.Redis, run.MQ, run.Postgres = x.Redis, x.MQ, x.Postgres
	run.Redis.Reserved, run.MQ.Stored, run.Postgres.WALBytes = reserved, stored, wal
	run.CPUSeconds, run.Phases = maps.Clone(x.CPUSeconds), cores(run.Phases, x.Usage)
	run.Funnel = append(append([]rundir.FunnelStage{}, x.Funnel...), run.Funnel...)
	j.decide(&run)
	return &run
}

// Judge is Verify and Run with the folder's own metrics/extras.json, if it
// has one: what `hotsku verify` does, and bench at its end, so that both say
// the same.
func Judge(ctx context.Context, dir rundir.Dir) (*rundir.Run, error) {
	j, err := Verify(ctx, dir)
	if err != nil {
		return nil, err
	}
	var x rundir.Extras
	var fault *rundir.EvidenceError
	if _, err := os.Stat(dir.Extras()); errors.Is(err, fs.ErrNotExist) {
		return j.Run(x), nil
	}
	if err := rundir.ReadJSON(dir.Extras(), &x); errors.As(err, &fault) {
		j.faults = append(j.faults, &rundir.EvidenceError{File: "metrics/extras.json", Offset: fault.Offset, Reason: fault.Reason})
		x = rundir.Extras{}
	} else if x.Schema != rundir.ExtrasSchema {
		j.faults = append(j.faults, &rundir.EvidenceError{File: "metrics/extras.json", Offset: -1,
			Reason: fmt.Sprintf("has schema %d, this build reads %d", x.Schema, rundir.ExtrasSchema)})
		x = rundir.Extras{}
	}
	return j.Run(x), nil
}
