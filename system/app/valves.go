package app

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hotsku/hotsku/system/mq/backlog"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/telemetry"
	"github.com/hotsku/hotsku/system/valve"
)

// valves are what stops an access process's reservations.
func (a *App) valves(store Store) (*valve.Breaker, *valve.Watcher, error) {
	breaker, err := valve.NewBreaker(a.cfg.Breaker, time.Now, func(from, to valve.BreakerState) {
		a.log.Warn("broker breaker", "from", from.String(), "to", to.String())
	})
	if err != nil {
		return nil, nil, err
	}
	watcher, err := valve.NewWatcher(a.cfg.Valves, store, a.log)
	return breaker, watcher, err
}

func valveMetrics(r prometheus.Registerer, breaker *valve.Breaker, watcher *valve.Watcher) {
	telemetry.Gauge(r, "broker_breaker_state", "0 closed, 1 open, 2 half-open.", &breaker.State)
	telemetry.Counter(r, "broker_breaker_opened_total", "Times the breaker opened.", nil, &breaker.Opened)
	for _, s := range valve.Signals() {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "valve_closed",
			Help: "1 while the signal stops reservations.", ConstLabels: prometheus.Labels{"signal": string(s)}},
			func() float64 { return float64(watcher.Gauges[s].Over.Load()) }))
	}
}

// publisher measures, beside the scanner, what access processes go by.
func (a *App) publisher(p *process, store Store, pool *pgxpool.Pool) (*valve.Publisher, error) {
	observer, err := backlog.New(a.cfg.MQ, seckill.TopicOrderCreate, seckill.GroupOrder, time.Now)
	if err != nil {
		return nil, err
	}
	p.onClose(observer)
	pending := new(atomic.Int64)
	publisher, err := valve.NewPublisher(valve.PublisherConfigDefault, store, []valve.Source{
		valve.PendingSource(store, pending),
		valve.BacklogSource(func(ctx context.Context) (int64, time.Duration, error) {
			b, err := observer.Measure(ctx)
			return b.Messages, b.Oldest, err
		}),
		valve.DatabaseSource(func(ctx context.Context) error { return postgres.CheckWritable(ctx, pool) }),
	}, a.log)
	if err != nil {
		return nil, err
	}
	telemetry.Gauge(p.metrics, "reservation_pending_count", "Reservations without a confirmed message.", pending)
	telemetry.Gauge(p.metrics, "consumer_lag", "Create messages the consumers have not acknowledged.", publisher.Values[valve.SignalLag])
	seconds := func(name, help string, s valve.Signal) {
		p.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
			func() float64 { return float64(publisher.Values[s].Load()) / 1000 }))
	}
	seconds("reservation_oldest_pending_age", "Age of the oldest reservation without a confirmed message, seconds.", valve.SignalOldestPending)
	seconds("oldest_message_age", "Since the oldest unacknowledged create message was stored, seconds.", valve.SignalOldestMessage)
	seconds("database_down_seconds", "For how long PostgreSQL has not been writable.", valve.SignalDatabaseDown)
	return publisher, nil
}
