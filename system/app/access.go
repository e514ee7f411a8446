package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hotsku/hotsku/system/access"
	"github.com/hotsku/hotsku/system/access/submit"
	"github.com/hotsku/hotsku/system/admission"
	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/telemetry"
)

func (a *App) runAccess(ctx context.Context, p *process) error {
	store, err := p.store(ctx)
	if err != nil {
		return err
	}
	// Answers do not wait for the producer's own timeout: at the submit path's
	// they are QUEUED_PENDING_MESSAGE. A confirmation that comes later still
	// spares the scanner a resend, until the scanner looks.
	sender, err := p.producer(ctx, seckill.TopicOrderCreate, max(a.cfg.Submit.SendTimeout, time.Second))
	if err != nil {
		return err
	}
	lua := telemetry.Seconds(p.metrics, "reservation_lua_duration", "Reserve script call as access saw it, seconds.")
	sends := telemetry.Seconds(p.metrics, "message_send_duration", "One batch sent to the broker, seconds.")
	bounds := a.cfg.Submit
	if a.cfg.Access.Without.Has(admission.StageInFlightCap) {
		bounds.InFlight = submit.InFlightMax // out of reach; memory stays bounded
	}
	breaker, watcher, err := a.valves(store)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	path, err := submit.New(submit.Params{Config: bounds, Store: store, Sender: sender,
		Breaker: breaker, Valves: watcher.Closed, ErrorCode: mq.ErrorCode, IDs: seckill.NewIDGenerator(time.Now, a.seed), Log: a.log,
		Observe: submit.Observers{Reserve: func(d time.Duration) { lua.Observe(d.Seconds()) },
			Send:  func(d time.Duration) { sends.Observe(d.Seconds()) },
			Trace: p.observer().begin, Answered: p.observer().answered}, Hit: a.wiring.Hit})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	gate := admission.NewGate(admission.GateConfigDefault, store, a.log)
	server, err := access.New(access.Params{Config: a.cfg.Access, Keys: a.cfg.TokenKeys, Gate: gate, Submit: path, Log: a.log})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	p.metrics.MustRegister(newEdgeMetrics(&server.Stats))
	pathMetrics(p.metrics, &path.Stats)
	valveMetrics(p.metrics, breaker, watcher)
	ln, err := a.listen(a.cfg.Listen)
	if err != nil {
		return err
	}

	var background sync.WaitGroup
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	background.Go(func() { gate.Run(watching) })
	background.Go(func() { watcher.Run(watching) })
	path.Start()
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	p.announce(ln.Addr().String())

	select {
	case <-ctx.Done():
		err = nil
	case err = <-served:
	}
	p.setReady(false)
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.cfg.Drain)
	defer cancel()
	if serr := server.Shutdown(drain); serr != nil {
		a.log.Warn("shutdown", "error", serr)
	}
	path.Stop()
	stopWatching()
	background.Wait()
	return err
}

func pathMetrics(r prometheus.Registerer, path *submit.Stats) {
	telemetry.Counter(r, "seckill_submitted_total", "Requests admitted to the way to Redis.", nil, &path.Submitted)
	telemetry.Counter(r, "seckill_breaker_refused_total", "Requests refused while the broker's breaker was open.", nil, &path.Broken)
	telemetry.Counter(r, "seckill_valves_refused_total", "Requests refused while a valve was closed.", nil, &path.Shut)
	telemetry.Counter(r, "seckill_inflight_refused_total", "Requests turned away by the in-flight cap.", nil, &path.TurnedAway)
	telemetry.Counter(r, "seckill_queue_expired_total", "Requests that waited too long for their batch.", nil, &path.Expired)
	telemetry.Counter(r, "reservation_lua_calls_total", "Reserve script calls.", nil, &path.ReserveCalls)
	telemetry.Counter(r, "reservation_lua_errors", "Reserve script calls whose outcome is unknown.", nil, &path.ReserveFails)
	telemetry.Counter(r, "reservation_lua_late_total", "Reserve script calls that outlasted their answers.", nil, &path.ReserveLate)
	telemetry.Counter(r, "reservation_created_total", "Reservations made by this process.", nil, &path.Created)
	telemetry.Counter(r, "message_send_total", "Batches sent.", nil, &path.Sends)
	telemetry.Counter(r, "message_send_unknown_total", "Batches sent without a confirmation.", nil, &path.SendsUnknown)
	telemetry.Counter(r, "message_unsent_total", "Reservations left to the scanner while the breaker was open.", nil, &path.Unsent)
	telemetry.Counter(r, "seckill_queued_pending_total", "Answers given before the confirmation came.", nil, &path.Late)
	telemetry.Counter(r, "reservation_marked_total", "Reservations marked sent.", nil, &path.Marked)
	telemetry.Counter(r, "reservation_marks_dropped_total", "Marks not made; the scanner resends.", nil, &path.MarksDropped)
}
