package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/hotsku/hotsku/system/lifecycle"
	"github.com/hotsku/hotsku/system/orders"
	"github.com/hotsku/hotsku/system/telemetry"
)

// ordersPool bounds the query service's connections, its rate-limited way
// back to PostgreSQL when Redis is down (R7.11.6); payments and cancellations
// have as many of their own.
const ordersPool = 4

// Bounds of the query endpoints; fasthttp's server serves them as it is.
const (
	ordersReadTimeout  = 10 * time.Second
	ordersWriteTimeout = 5 * time.Second
	ordersIdleTimeout  = 75 * time.Second
	ordersBodyLimit    = 4 << 10 // bytes
	ordersConnections  = 4096
)

func (a *App) runOrders(ctx context.Context, p *process) error {
	store, err := p.store(ctx)
	if err != nil {
		return err
	}
	pool, err := p.pool(ctx, 2*ordersPool, nil)
	if err != nil {
		return err
	}
	decider, err := lifecycle.New(lifecycle.Config{Pool: pool, Log: a.log})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	endMetrics(p.metrics, decider.Stats())
	service, err := orders.New(orders.Config{Cache: store, Pool: pool, Ender: decider, EndLimit: ordersPool, FallbackLimit: ordersPool, Log: a.log})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	handler, err := orders.Handler(work, service, a.cfg.TokenKeys...)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	stats := service.Stats()
	telemetry.Counter(p.metrics, "query_cache_answers_total", "Queries decided by what Redis knew.", nil, &stats.CacheAnswers)
	telemetry.Counter(p.metrics, "query_cache_failures_total", "Looks into Redis that failed.", nil, &stats.CacheFails)
	telemetry.Counter(p.metrics, "query_fallbacks_total", "Looks into PostgreSQL.", nil, &stats.Fallbacks)
	telemetry.Counter(p.metrics, "query_store_failures_total", "Looks into PostgreSQL that failed.", nil, &stats.StoreFails)
	telemetry.Counter(p.metrics, "query_cache_rebuilt_total", "Keys put back into Redis, or decisions written there.", nil, &stats.Rebuilt)
	telemetry.Counter(p.metrics, "query_cache_rebuild_failures_total", "Rebuilds that failed.", nil, &stats.RebuildFails)
	telemetry.Counter(p.metrics, "query_rate_limited_total", "Queries turned away to spare PostgreSQL.", nil, &stats.RateLimited)

	ln, err := a.listen(a.cfg.Listen)
	if err != nil {
		return err
	}
	server := &fasthttp.Server{Handler: a.wiring.Queries(handler), Name: "seckill", Concurrency: ordersConnections,
		ReadTimeout: ordersReadTimeout, WriteTimeout: ordersWriteTimeout, IdleTimeout: ordersIdleTimeout,
		MaxRequestBodySize: ordersBodyLimit, CloseOnShutdown: true, Logger: fasthttpLog{a.log}}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	p.announce(ln.Addr().String())
	select {
	case err := <-served:
		return fmt.Errorf("serve queries: %w", err)
	case <-ctx.Done():
	}
	p.setReady(false)
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.cfg.Drain)
	defer cancel()
	if err := server.ShutdownWithContext(drain); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("shut the query server down: %w", err)
	}
	return nil
}

// fasthttpLog takes the server's own lines, which are about clients.
type fasthttpLog struct{ log *slog.Logger }

func (l fasthttpLog) Printf(format string, args ...any) {
	l.log.Debug(fmt.Sprintf(format, args...))
}
