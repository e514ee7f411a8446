package app

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hotsku/hotsku/system/lifecycle"
	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/order"
	"github.com/hotsku/hotsku/system/outbox"
	"github.com/hotsku/hotsku/system/outbox/project"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/telemetry"
)

// patientSend bounds a send nobody waits for: it gets the time a slow broker
// needs.
const patientSend = 3 * time.Second

// projectors bounds the batches of events at Redis at once.
const projectors = 2

func (a *App) rand() *rand.Rand {
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(a.seed[:8]), binary.LittleEndian.Uint64(a.seed[8:])))
}

func (a *App) runConsumer(ctx context.Context, p *process) error {
	pool, err := p.pool(ctx, a.cfg.Consumer.Workers+1+expiryConns, postgres.ConsumerSettings())
	if err != nil {
		return err
	}
	made := order.Config{Pool: pool, IDs: seckill.NewIDGenerator(time.Now, a.seed),
		Rand: a.rand(), Hit: a.wiring.Hit, Log: a.log, Decided: p.observer().decided(seckill.GroupOrder), BatchLimit: a.cfg.Consumer.Batch, PaymentWindow: a.cfg.Payment.Window}
	if err := a.wiring.Order(ctx, &made); err != nil {
		return err
	}
	processor, err := order.New(made)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	consumerMetrics(p.metrics, processor.Stats())
	handler := a.wiring.OrderHandler(func(ctx context.Context, batch []mq.Delivery) error {
		deliveries := make([]order.Delivery, len(batch))
		for i, d := range batch {
			deliveries[i] = order.Delivery(d)
		}
		return processor.Process(ctx, deliveries)
	})
	c, err := p.consumer(ctx, a.cfg.consumer(seckill.TopicOrderCreate, seckill.GroupOrder), handler)
	if err != nil {
		return err
	}
	e, err := a.newExpiry(ctx, p, pool)
	if err != nil {
		return err
	}
	return e.runWith(ctx, c, func() { p.announce("") })
}

func consumerMetrics(r prometheus.Registerer, s *order.Stats) {
	telemetry.Counter(r, "order_created_total", "Orders committed.", nil, &s.Orders)
	telemetry.Counter(r, "inbox_conflict_total", "Messages the inbox knew: a repeat, not an error.", nil, &s.Duplicates)
	telemetry.Counter(r, "order_settled_total", "New messages of reservations already decided.", nil, &s.Settled)
	telemetry.Counter(r, "order_unique_conflict_total", "Reservations rejected for a user who has an order.", nil, &s.Rejected.DuplicateUser)
	telemetry.Counter(r, "order_no_final_stock_total", "Reservations rejected for want of a token.", nil, &s.Rejected.NoFinalStock)
	telemetry.Counter(r, "dlq_message_total", "Messages parked as dead letters.", nil, &s.Parked)
	telemetry.Counter(r, "inventory_token_empty_total", "Claims that found no unit.", nil, &s.ClaimsEmpty)
	telemetry.Counter(r, "order_transactions_total", "Transactions committed.", nil, &s.Transactions)
	telemetry.Counter(r, "order_transaction_nanoseconds_total", "Time in committed transactions.", nil, &s.TxNanos)
	telemetry.Counter(r, "transaction_rollback_total", "Attempts run again behind the exclusive gate.", nil, &s.Reruns)
	telemetry.Counter(r, "order_transient_failures_total", "Attempts repeated after a back-off.", nil, &s.TransientFails)
}

func (a *App) runOutbox(ctx context.Context, p *process) error {
	store, err := p.store(ctx)
	if err != nil {
		return err
	}
	sender, err := p.producer(ctx, seckill.TopicEvent, patientSend)
	if err != nil {
		return err
	}
	pool, err := p.pool(ctx, 2, postgres.QueueSettings())
	if err != nil {
		return err
	}
	if err := mq.CheckTopics(ctx, a.cfg.MQ, seckill.TopicExpiry); err != nil {
		return err
	}
	scheduler, err := lifecycle.NewScheduler(sender, sender, time.Now, a.log)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	telemetry.Counter(p.metrics, "expiry_scheduled_total", "New orders whose expiry checks the broker confirmed.", nil, &scheduler.Scheduled)
	telemetry.Counter(p.metrics, "expiry_schedule_failures_total", "Expiry checks not confirmed: left to the sweeper.", nil, &scheduler.Fails)
	publisher, err := outbox.New(outbox.Config{Pool: pool, Sender: scheduler, Hit: a.wiring.Hit, Log: a.log})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	outboxMetrics(p.metrics, publisher.Stats())
	projector, err := project.New(project.ConfigDefault, store, a.log, a.wiring.Hit)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	telemetry.Counter(p.metrics, "projector_applied_total", "Decisions written to Redis.", nil, &projector.Stats.Applied)
	telemetry.Counter(p.metrics, "projector_repeated_total", "Decisions that were there already.", nil, &projector.Stats.Repeated)
	telemetry.Counter(p.metrics, "projector_missing_total", "Decisions about reservations Redis does not hold.", nil, &projector.Stats.Missing)
	telemetry.Counter(p.metrics, "projector_unreadable_total", "Events that cannot be applied.", nil, &projector.Stats.Unreadable)
	telemetry.Counter(p.metrics, "projector_spoilt_total", "Decisions about SKUs whose keys in Redis cannot be read.", nil, &projector.Stats.Spoilt)
	handler := a.wiring.EventHandler(func(ctx context.Context, batch []mq.Delivery) error {
		bodies := make([][]byte, len(batch))
		for i := range batch {
			bodies[i] = batch[i].Body
		}
		return projector.Handle(ctx, bodies)
	})
	cfg := a.cfg.consumer(seckill.TopicEvent, seckill.GroupProjector)
	cfg.Workers = projectors
	c, err := p.consumer(ctx, cfg, handler)
	if err != nil {
		return err
	}
	// The publisher ends before the consumer: what it published last is
	// still applied here if it comes in time, and by the next process if not.
	publishing, stop := context.WithCancel(ctx)
	defer stop()
	var published sync.WaitGroup
	published.Go(func() { publisher.Run(publishing) })
	err = c.Run(ctx, func() { p.announce("") })
	stop()
	published.Wait()
	return err
}

func outboxMetrics(r prometheus.Registerer, s *outbox.Stats) {
	telemetry.Counter(r, "outbox_published_total", "Events the broker confirmed.", nil, &s.Published)
	telemetry.Counter(r, "outbox_unknown_total", "Sends without a confirmation; repeated.", nil, &s.SendsUnknown)
	telemetry.Counter(r, "outbox_store_failures_total", "Failures to reach the outbox.", nil, &s.StoreFails)
}
