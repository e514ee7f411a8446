package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/mq/backlog"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/telemetry"
)

// App runs roles.
type App struct {
	cfg    Config
	wiring Wiring
	log    *slog.Logger
	seed   [32]byte
	ready  func(seckill.Ready)
}

// New returns an app. seed feeds ids and jitter: fresh randomness in
// production, one of its own for each process anywhere. ready is called once
// for each role, one call at a time, when it is ready to work.
func New(cfg Config, w Wiring, log *slog.Logger, seed [32]byte, ready func(seckill.Ready)) *App {
	return &App{cfg: cfg, wiring: w, log: log, seed: seed, ready: ready}
}

// onClose keeps c to be closed when the role ends.
func (p *process) onClose(c io.Closer) { p.opened = append(p.opened, c) }

// close closes what was opened, last first.
func (p *process) close() error {
	var errs []error
	for _, c := range slices.Backward(p.opened) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// announce says that the role is ready.
func (p *process) announce(listen string) {
	p.setReady(true)
	p.app.log.Info("ready", "listen", listen, "admin", p.admin.Addr())
	p.app.ready(seckill.Ready{Role: string(p.role), PID: os.Getpid(), Listen: listen, Admin: p.admin.Addr()})
}

// store connects to Redis; it must be there when a role starts.
func (p *process) store(ctx context.Context) (Store, error) {
	cfg := p.app.cfg.Redis
	if prefix := p.app.cfg.MQ.TopicPrefix; prefix != "" && cfg.SignalsKey == "" { // the figures are about these topics
		cfg.SignalsKey = reservation.SignalsKeyDefault + ":" + prefix
	}
	s, err := reservation.New(cfg, p.app.wiring.Scripts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	p.onClose(s)
	check, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := s.Check(check); err != nil {
		return nil, err
	}
	group := ""
	if p.role == RoleOutbox {
		group = seckill.GroupProjector
	}
	return observedStore{p.app.wiring.Store(s), p.observer(), group}, nil
}

// producer returns a producer for a topic that the name server knows.
func (p *process) producer(ctx context.Context, topic string, timeout time.Duration) (Producer, error) {
	if err := mq.CheckTopics(ctx, p.app.cfg.MQ, topic); err != nil {
		return nil, err
	}
	q, err := mq.NewProducer(p.app.cfg.MQ, timeout)
	if err != nil {
		return nil, err
	}
	p.onClose(q)
	return observedProducer{p.app.wiring.Producer(q), p.observer()}, nil
}

// consumer returns a consumer of a topic that the name server knows.
func (p *process) consumer(ctx context.Context, cfg mq.ConsumerConfig, handle mq.Handler) (*mq.Consumer, error) {
	if err := mq.CheckTopics(ctx, cfg.Config, append([]string{cfg.Topic}, cfg.AlsoTopics...)...); err != nil {
		return nil, err
	}
	if strings.HasPrefix(cfg.Topic, mq.DeadLetterPrefix) {
		cfg.Stall = 0 // nobody waits for those
	}
	if cfg.Stall > 0 {
		o, err := backlog.New(cfg.Config, cfg.Topic, cfg.Group, time.Now)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrConfig, err)
		}
		p.onClose(o)
		cfg.Waiting = o.Waiting
	}
	c, err := mq.NewConsumer(cfg, handle, p.app.log)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	topic := prometheus.Labels{"topic": cfg.Topic}
	telemetry.Counter(p.metrics, "consumer_messages_total", "Messages delivered to the handler.", topic, &c.Stats.Messages)
	telemetry.Counter(p.metrics, "consumer_redelivered_total", "Messages that had been handed back to the broker before.", topic, &c.Stats.Redelivered)
	telemetry.Counter(p.metrics, "consumer_handler_panics_total", "Panics of the handler; each is a defect.", topic, &c.Stats.Panics)
	telemetry.Counter(p.metrics, "consumer_handed_back_total", "Messages of batches the handler could not decide.", topic, &c.Stats.HandedBack)
	telemetry.Counter(p.metrics, "consumer_restarts_total", "Times the client was started anew, for messages waited and none came.", topic, &c.Stats.Restarts)
	return c, nil
}

// pool connects to PostgreSQL; it must be there, with this build's schema,
// when a role starts.
func (p *process) pool(ctx context.Context, conns int, settings map[string]string) (*pgxpool.Pool, error) {
	cfg := p.app.cfg.Database(string(p.role))
	cfg.MaxConns, cfg.Settings = conns, settings
	pool, err := postgres.Open(ctx, cfg)
	if err != nil {
		if errors.As(err, new(*pgconn.ParseConfigError)) {
			return nil, fmt.Errorf("%w: %w", ErrConfig, err)
		}
		return nil, err
	}
	p.onClose(closer(pool.Close))
	poolMetrics(p.metrics, pool)
	if err := postgres.CheckSchema(ctx, pool); err != nil {
		return nil, err
	}
	return pool, nil
}

type closer func()

func (c closer) Close() error { c(); return nil }
