package scenarios

import (
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hotsku/hotsku/chaos"
	"github.com/hotsku/hotsku/chaos/proxy"
	"github.com/hotsku/hotsku/loadgen"
	"github.com/hotsku/hotsku/loadgen/pace"
	"github.com/hotsku/hotsku/scenarios/customers"
	"github.com/hotsku/hotsku/scenarios/fleet"
	"github.com/hotsku/hotsku/stack"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify"
	"github.com/hotsku/hotsku/verify/rundir"
	"github.com/hotsku/hotsku/verify/snapshot"
)

// Options of Run.
type Options struct {
	Dir      rundir.Dir // new or empty
	Seed     uint64
	Command  string // for the report
	SLOMode  string // rundir.SLOEnforce or rundir.SLOReport
	Binaries fleet.Binaries
	Progress Progress
	Servers  *Servers // nil: the run starts its own, and ends them
}

// Progress is told how a run goes. Calls come from one goroutine at a time.
type Progress interface {
	Phase(what string)
	Load(loadgen.Live)
	Converging(snapshot.Backlog)
}

// ErrUsage wraps what is wrong with the request for a run: nothing started.
var ErrUsage = errors.New("cannot run this")

// runner is one run.
type runner struct {
	s    *Scenario
	o    Options
	dir  rundir.Dir
	key  seckill.TokenKey
	plan *rundir.Plan

	timeline *chaos.Timeline
	notes    *customers.Notes
	stack    *stack.Stack
	lent     stack.Options  // what the stack was asked for with
	began    map[string]int // pids of the servers as the run found them
	servers  []*guarded
	fleet    *fleet.Fleet
	stores   *snapshot.Stores
	faults   []chaos.Fault
	dials    stack.Addresses // what the product dials
	ways     map[Way]*proxy.Proxy
	dialsOf  map[string]stack.Addresses // by kind, where it has a way of its own
	loading  chan struct{}              // closed when the load begins
	usage    usage
}

// Run takes a scenario from nothing to a judged run directory. It owns its
// servers and processes, and none is left when it returns, however it ends,
// but servers that Options.Servers keeps.
// An error means that there is no verdict; what evidence there is stays in
// the directory.
func Run(ctx context.Context, s Scenario, o Options) (run *rundir.Run, err error) {
	s = s.Drawn(o.Seed)
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	schedule, err := s.Load.schedule()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	if o.SLOMode != rundir.SLOEnforce && o.SLOMode != rundir.SLOReport {
		return nil, fmt.Errorf("%w: SLO mode %q: must be %s or %s", ErrUsage, o.SLOMode, rundir.SLOEnforce, rundir.SLOReport)
	}
	if err := prepareDir(o.Dir); err != nil {
		return nil, err
	}
	r := &runner{s: &s, o: o, dir: o.Dir, loading: make(chan struct{})}
	if err := r.evidence(ctx, schedule); err != nil {
		return nil, err
	}
	o.Progress.Phase("judging")
	run, err = verify.Judge(ctx, o.Dir)
	if err != nil {
		return nil, err
	}
	return run, WriteReports(o.Dir, run)
}

// prepareDir makes a run directory, or takes an empty one.
func prepareDir(dir rundir.Dir) error {
	entries, err := os.ReadDir(string(dir))
	switch {
	case err == nil && len(entries) > 0:
		return fmt.Errorf("%w: %s is not empty: give --out a new or empty folder", ErrUsage, dir)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w: %s is a file, or below one: give --out a new or empty folder", ErrUsage, dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w: give --out a folder that you may read and write", ErrUsage, err)
	}
	for _, d := range []string{string(dir), dir.Logs(), dir.Metrics()} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return fmt.Errorf("%w: make the run directory: %w: give --out a folder that you may write", ErrUsage, err)
		}
	}
	return nil
}

// evidence runs the scenario and fills the run directory. Whatever it
// started has ended when it returns.
func (r *runner) evidence(ctx context.Context, schedule pace.Schedule) (err error) {
	if r.timeline, err = chaos.NewTimeline(r.dir, time.Now); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			r.timeline.Add("bench", "run", "ended early", nil, err.Error())
		}
		err = errors.Join(err, r.timeline.Close())
	}()
	if r.notes, err = customers.NewNotes(r.dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.notes.Close()) }()
	if err := r.startServers(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.stop(err == nil)) }()
	ctx, watched := r.watchServers(ctx)
	defer func() { err = errors.Join(watched(), err) }()
	if err := r.startFleet(ctx, schedule); err != nil {
		return err
	}
	addrs, err := r.membersServing("access")
	if err != nil {
		return err
	}
	before, err := r.scrape(ctx)
	if err != nil {
		return err
	}
	baseline, err := r.stores.Counters(ctx)
	if err != nil {
		return err
	}
	following, cancel := context.WithCancel(ctx)
	followed := make(chan struct{})
	go func() { defer close(followed); r.followUsage(following) }()
	enough := func() { cancel(); <-followed }
	defer enough()
	result, err := r.loadUnderFaults(ctx, schedule, addrs)
	if err != nil {
		return err
	}
	r.o.Progress.Phase("waiting until every order has arrived")
	quiescence, err := r.stores.Quiesce(ctx, time.Now(), r.s.Converge, r.o.Progress.Converging)
	if err != nil {
		return err
	}
	enough()
	r.timeline.Add("bench", "stores", "converged", nil, fmt.Sprintf("quiescent %v after %v", quiescence.Quiescent, quiescence.Waited.Round(time.Millisecond)))
	after, err := r.scrape(ctx)
	if err != nil {
		return err
	}
	r.o.Progress.Phase("copying the stores")
	if err := r.stores.Take(ctx, r.dir, quiescence, baseline); err != nil {
		return err
	}
	extras := r.extras(before, after, result)
	if err := rundir.WriteJSON(r.dir.Extras(), &extras); err != nil {
		return err
	}
	if err := r.writeMeasurements(result); err != nil {
		return err
	}
	return r.census(ctx)
}

func (r *runner) startServers(ctx context.Context) (err error) {
	if r.o.Servers.keeps() {
		r.o.Progress.Phase("emptying Redis, PostgreSQL and RocketMQ")
	} else {
		r.o.Progress.Phase("starting Redis, PostgreSQL and RocketMQ")
	}
	r.lent = stack.Options{Nice: serverNice(), BrokerBehindProxy: r.s.brokerBehindProxy()}
	if r.stack, err = r.o.Servers.take(ctx, r.lent); err != nil {
		return err
	}
	r.began = found(r.stack)
	r.dials = r.stack.Addresses()
	for _, s := range r.stack.Servers() {
		r.timeline.Add("bench", s.Name(), "started", nil, s.Addr())
		r.servers = append(r.servers, guard(s))
	}
	return nil
}

// startFleet brings the product up with a sale to make: schema, topics,
// activities, processes, warm-up, and the plan before any traffic.
func (r *runner) startFleet(ctx context.Context, schedule pace.Schedule) (err error) {
	r.o.Progress.Phase("starting the product")
	if err := r.openWays(r.stack.Addresses(), func(w Way, addr string) {
		r.timeline.Add("bench", w.name(), "proxy listens", nil, addr)
	}); err != nil {
		return err
	}
	r.key = seckill.TokenKey{ID: "run", Secret: make([]byte, 32)}
	if _, err := crand.Read(r.key.Secret); err != nil {
		return fmt.Errorf("draw a token key: %w", err)
	}
	r.fleet, err = fleet.New(fleet.Config{Binaries: r.o.Binaries, Addresses: r.dials,
		TokenKey: r.key.ID + ":" + hex.EncodeToString(r.key.Secret), LogDir: r.dir.Logs(), Seed: r.o.Seed,
		StartTimeout: 30 * time.Second, StopGrace: 15 * time.Second})
	if err != nil {
		return err
	}
	for _, role := range r.s.Fleet {
		role.Addresses = r.dialledBy(role.Kind)
		if _, err := r.fleet.Add(role); err != nil {
			return err
		}
	}
	if _, err := r.fleet.Run(ctx, "migrate"); err != nil {
		return err
	}
	now := time.Now().Truncate(time.Second)
	r.plan = r.s.plan(r.o.Seed, r.o.Command, r.o.SLOMode, int64(schedule.Total()), now)
	if err := r.plan.Validate(); err != nil {
		return err
	}
	if r.stores, err = r.openStores(r.plan.Activities, nil); err != nil {
		return err
	}
	warmUp := rundir.Activity{ActivityID: warmUpActivityID, SKUID: skuID, Stock: warmUpStock, Tokens: warmUpStock, StartsAt: now, EndsAt: now.Add(saleLength)}
	for _, a := range append([]rundir.Activity{warmUp}, r.plan.Activities...) {
		if err := r.create(ctx, a); err != nil {
			return err
		}
	}
	if err := r.fleet.Start(ctx); err != nil {
		return err
	}
	for _, m := range r.fleet.Members() {
		r.timeline.Add("bench", m.Name(), "started", nil, m.Listen())
	}
	r.o.Progress.Phase("warming up")
	addrs, err := r.membersServing("access")
	if err != nil {
		return err
	}
	if err := r.warmUp(ctx, addrs); err != nil {
		return err
	}
	if err := r.setUpFaults(ctx); err != nil {
		return err
	}
	return rundir.WriteJSON(r.dir.Plan(), r.plan)
}

// create makes an activity as an operator does.
func (r *runner) create(ctx context.Context, a rundir.Activity) error {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	_, err := r.fleet.Run(ctx, "activity", "create", "--activity", number(a.ActivityID), "--sku", number(a.SKUID),
		"--stock", number(a.Stock), "--tokens", number(a.Tokens), "--price-cents", strconv.Itoa(priceCents),
		"--starts", a.StartsAt.UTC().Format(time.RFC3339), "--for", a.EndsAt.Sub(a.StartsAt).String(), "--resell="+strconv.FormatBool(a.Resell))
	return err
}

// setUpFaults builds the faults into what runs now.
func (r *runner) setUpFaults(ctx context.Context) error {
	servers := make([]stack.Server, len(r.servers))
	for i, g := range r.servers {
		servers[i] = g
	}
	for i, f := range r.s.Faults {
		fault, err := f.Kind.build(site{fleet: r.fleet, servers: servers, dials: r.dials, direct: r.stack.Addresses(), ways: r.ways, plan: r.plan,
			hitFile: filepath.Join(r.dir.Logs(), fmt.Sprintf("faultpoint-%d.jsonl", i+1)),
			rng:     rand.New(rand.NewPCG(r.o.Seed, uint64(i))), load: r.loading})
		if err != nil {
			return err
		}
		if err := fault.Setup(ctx); err != nil {
			return fmt.Errorf("set up %s: %w", fault.Name(), err)
		}
		r.timeline.Add("bench", fault.Target(), "fault set up", nil, fault.Name())
		r.plan.Schedule = append(r.plan.Schedule, scheduled(fault))
		r.faults = append(r.faults, fault)
	}
	return nil
}

// scheduled says a fault as the seed drew it.
func scheduled(f chaos.Fault) string {
	if timed, ok := f.(interface{ When() time.Duration }); ok {
		return fmt.Sprintf("%s: %s, %v into the load", f.Name(), f.Target(), timed.When())
	}
	return fmt.Sprintf("%s: %s", f.Name(), f.Target())
}

// loadUnderFaults offers the load while the faults take their course. A
// fault that did not bite is in the timeline, and verify judges it; one that
// failed otherwise, or cannot be healed, ends the load and the run, and a
// load that failed ends the faults.
func (r *runner) loadUnderFaults(ctx context.Context, schedule pace.Schedule, addrs []string) (*loadgen.Result, error) {
	cfg, err := r.generator(schedule, activityID, r.plan.Workload, addrs)
	if err != nil {
		return nil, err
	}
	r.o.Progress.Phase(strings.Join(append([]string{"load"}, r.plan.Schedule...), "; "))
	g, ctx := errgroup.WithContext(ctx)
	for i, f := range r.faults {
		g.Go(func() error {
			err := chaos.Drive(ctx, f, r.s.Faults[i].Limits, r.timeline)
			if errors.Is(err, chaos.ErrNoBite) && !errors.Is(err, chaos.ErrNotHealed) {
				return nil
			}
			return err
		})
	}
	visiting, leave := context.WithCancel(ctx)
	defer leave()
	g.Go(func() error { return r.visitors(visiting) })
	var result *loadgen.Result
	g.Go(func() (err error) {
		defer leave()
		result, err = r.load(ctx, cfg)
		return err
	})
	return result, g.Wait()
}

// openStores connects to the stores as the verifier's copyist. A nil
// consumers takes all groups.
func (r *runner) openStores(activities []rundir.Activity, consumers []snapshot.Consumer) (*snapshot.Stores, error) {
	a := r.stack.Addresses()
	return snapshot.Open(snapshot.Config{Redis: a.Redis, Postgres: a.Postgres, NameServer: a.NameServer, Activities: activities, Consumers: consumers})
}

// settled waits until nothing of the warm-up is under way. It asks no group
// for its offset: clients commit those up to 5 s late.
func (r *runner) settled(ctx context.Context, limit time.Duration) error {
	stores, err := r.openStores([]rundir.Activity{{ActivityID: warmUpActivityID, SKUID: skuID}}, []snapshot.Consumer{})
	if err != nil {
		return err
	}
	quiescence, err := stores.Quiesce(ctx, time.Now(), limit, nil)
	if err := errors.Join(err, stores.Close()); err != nil {
		return err
	}
	if !quiescence.Quiescent {
		return fmt.Errorf("warm up: still under way after %v: %+v: see the processes' logs", limit, quiescence.Last)
	}
	return nil
}
