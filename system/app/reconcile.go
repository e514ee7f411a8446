package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hotsku/hotsku/system/dlq"
	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/reconcile"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/telemetry"
)

// reconcilePool bounds reconcile's connections: the round, the servers'
// figures, the dead letters kept and the ones that arrive.
const reconcilePool = 4

// serversEvery is between two looks at the servers' own figures.
const serversEvery = 2 * time.Second

func (p *process) reconciler(ctx context.Context) (*reconcile.Reconciler, *pgxpool.Pool, Producer, error) {
	a := p.app
	store, err := p.store(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	pool, err := p.pool(ctx, reconcilePool, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	sender, err := p.producer(ctx, seckill.TopicOrderCreate, patientSend)
	if err != nil {
		return nil, nil, nil, err
	}
	r, err := reconcile.New(reconcile.Params{Config: a.cfg.Reconcile, Pool: pool, Store: store, Sender: sender, Now: time.Now, Log: a.log})
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return r, pool, sender, nil
}

// runReconcile holds the stores against each other, and takes over what the
// broker gave up on.
func (a *App) runReconcile(ctx context.Context, p *process) error {
	r, pool, sender, err := p.reconciler(ctx)
	if err != nil {
		return err
	}
	collector, err := dlq.NewCollector(dlq.CollectorConfig{Pool: pool, Log: a.log})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	keeper, err := dlq.NewKeeper(dlq.KeeperConfig{Pool: pool, Sender: sender, Automatic: a.cfg.DeadLetters, Log: a.log})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	cfg := a.cfg.consumer(mq.DeadLetterTopic(seckill.GroupOrder), seckill.GroupDeadLetters)
	cfg.AlsoTopics = []string{mq.DeadLetterTopic(seckill.GroupProjector), mq.DeadLetterTopic(seckill.GroupExpiry)}
	cfg.Workers, cfg.Batch = 1, min(cfg.Batch, dlq.SendMax)
	arrivals, err := p.consumer(ctx, cfg, func(ctx context.Context, batch []mq.Delivery) error {
		given := make([]dlq.Delivery, len(batch))
		for i, d := range batch {
			given[i] = dlq.Delivery{Topic: d.Topic, Queue: d.Queue, Offset: d.Offset, Body: d.Body}
		}
		return collector.Handle(ctx, given)
	})
	if err != nil {
		return err
	}
	p.metrics.MustRegister(&accounts{reconciler: r, keeper: keeper})
	stats := r.Stats()
	telemetry.Counter(p.metrics, "reconcile_rounds_total", "Rounds that looked at every SKU.", nil, &stats.Rounds)
	telemetry.Counter(p.metrics, "reconcile_round_failures_total", "Rounds that could not.", nil, &stats.RoundFails)
	telemetry.Gauge(p.metrics, "reconcile_last_round_timestamp_seconds", "When the last complete round ended, Unix time.", &stats.LastRound)
	telemetry.Counter(p.metrics, "reconcile_resent_total", "Messages sent again.", nil, &stats.Resent)
	telemetry.Counter(p.metrics, "reconcile_republished_total", "Events published again.", nil, &stats.Republished)
	telemetry.Counter(p.metrics, "dead_letters_collected_total", "Messages the broker gave up on.", nil, &collector.Collected)
	telemetry.Counter(p.metrics, "dead_letters_replayed_total", "Dead letters replayed by themselves.", nil, &keeper.Replayed)

	work, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	running.Go(func() { r.Run(work) })
	running.Go(func() { r.Watch(work, serversEvery) })
	running.Go(func() { keeper.Run(work) })
	err = arrivals.Run(ctx, func() { p.announce("") })
	stop()
	running.Wait()
	return err
}

// ReconcileOnce runs one round and returns its reports; a dry run changes
// nothing. The reports of SKUs that could be read come with the error about
// the others. An error that wraps ErrConfig means that nothing was started.
func (a *App) ReconcileOnce(ctx context.Context, dryRun bool) (reports []reconcile.Report, err error) {
	if err := a.cfg.Validate(RoleReconcile); err != nil {
		return nil, err
	}
	p := &process{app: a, role: RoleReconcile, metrics: telemetry.NewRegistry(string(RoleReconcile), a.cfg.Zone).Role(string(RoleReconcile), a.cfg.Zone)}
	defer func() { err = errors.Join(err, p.close()) }()
	r, _, _, err := p.reconciler(ctx)
	if err != nil {
		return nil, err
	}
	return r.Round(ctx, dryRun)
}
