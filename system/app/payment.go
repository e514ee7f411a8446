package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hotsku/hotsku/system/lifecycle"
	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/order"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/telemetry"
)

// PaymentConfig says when unpaid orders expire.
type PaymentConfig struct {
	Window  time.Duration           // from the order's creation
	Sweeper lifecycle.SweeperConfig // for what no message reminds of
}

func (c PaymentConfig) validate() error {
	if c.Window < time.Second || c.Window > order.PaymentWindowMax {
		return fmt.Errorf("payment window %v: must be 1s to %v", c.Window, order.PaymentWindowMax)
	}
	return c.Sweeper.Validate()
}

// expiryConns is what expiry may hold of the consumer's pool: one connection
// for the checks, one for the sweeper.
const expiryConns = 2

// expiry is what expires unpaid orders beside the consumer that makes them.
type expiry struct {
	checks  *mq.Consumer
	sweeper *lifecycle.Sweeper
}

func (a *App) newExpiry(ctx context.Context, p *process, pool *pgxpool.Pool) (*expiry, error) {
	decider, err := lifecycle.New(lifecycle.Config{Pool: pool, Log: a.log})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	sweeper, err := lifecycle.NewSweeper(a.cfg.Payment.Sweeper, decider, a.log)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	sender, err := p.producer(ctx, seckill.TopicExpiry, patientSend)
	if err != nil {
		return nil, err
	}
	reminders, err := lifecycle.NewReminders(decider, sender, time.Now, a.log)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	cfg := a.cfg.consumer(seckill.TopicExpiry, seckill.GroupExpiry)
	cfg.Workers = 1
	checks, err := p.consumer(ctx, cfg, func(ctx context.Context, batch []mq.Delivery) error {
		bodies := make([][]byte, len(batch))
		for i := range batch {
			bodies[i] = batch[i].Body
		}
		return reminders.Handle(ctx, bodies)
	})
	if err != nil {
		return nil, err
	}
	endMetrics(p.metrics, decider.Stats())
	stats := &reminders.Stats
	telemetry.Counter(p.metrics, "expiry_checks_total", "Expiry checks delivered.", nil, &stats.Checks)
	telemetry.Counter(p.metrics, "expiry_checks_postponed_total", "Checks that came before their time and were sent on.", nil, &stats.Postponed)
	telemetry.Counter(p.metrics, "expiry_checks_unreadable_total", "Checks that cannot be read.", nil, &stats.Unreadable)
	telemetry.Counter(p.metrics, "expiry_swept_total", "Orders expired by the sweeper: no check reminded of them in time.", nil, &sweeper.Expired)
	telemetry.Counter(p.metrics, "expiry_sweep_failures_total", "Looks of the sweeper that failed.", nil, &sweeper.Fails)
	return &expiry{checks, sweeper}, nil
}

// endMetrics are those of the orders ended in this process.
func endMetrics(r prometheus.Registerer, s *lifecycle.Stats) {
	telemetry.Counter(r, "order_paid_total", "Orders paid.", nil, &s.Paid)
	telemetry.Counter(r, "order_cancelled_total", "Orders cancelled by their users.", nil, &s.Cancelled)
	telemetry.Counter(r, "order_expired_total", "Orders expired unpaid.", nil, &s.Expired)
	telemetry.Counter(r, "order_units_returned_total", "Units of ended orders put back on sale.", nil, &s.Returned)
	telemetry.Counter(r, "order_end_reruns_total", "Ends of orders run again after a lost race.", nil, &s.Reruns)
	telemetry.Counter(r, "order_end_failures_total", "Ends of orders that failed, outcome perhaps unknown.", nil, &s.Fails)
	telemetry.Counter(r, "order_end_stuck_total", "Orders that cannot end, for their rows contradict each other.", nil, &s.Stuck)
}

// runWith runs the expiry beside the consumer of create messages until ctx
// ends or one of them fails.
func (e *expiry) runWith(ctx context.Context, orders *mq.Consumer, ready func()) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var subscribed, running sync.WaitGroup
	subscribed.Add(2)
	checksErr := make(chan error, 1)
	running.Go(func() { e.sweeper.Run(ctx) })
	running.Go(func() {
		defer stop()
		once := sync.OnceFunc(subscribed.Done)
		defer once()
		checksErr <- e.checks.Run(ctx, once)
	})
	running.Go(func() {
		subscribed.Wait()
		if ctx.Err() == nil {
			ready()
		}
	})
	once := sync.OnceFunc(subscribed.Done)
	err := orders.Run(ctx, once)
	once()
	stop()
	running.Wait()
	if err == nil {
		err = <-checksErr
	}
	return err
}
