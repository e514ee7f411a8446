package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/telemetry"
)

// Role is a process's part.
type Role string

// The roles.
const (
	RoleAccess   Role = "access"
	RoleConsumer Role = "consumer"
	RoleScanner  Role = "scanner"
	RoleOutbox   Role = "outbox"
	RoleOrders   Role = "orders"

	RoleReconcile Role = "reconcile"
)

// Roles are all of them: what one small machine runs.
func Roles() []Role {
	return []Role{RoleAccess, RoleConsumer, RoleScanner, RoleOutbox, RoleOrders, RoleReconcile}
}

// part is what a role does, and what of the configuration it needs.
type part struct {
	run    func(*App, context.Context, *process) error
	needs  []need
	serves bool // clients reach it: it drains for them
}

func (r Role) part() (part, error) {
	known, ok := map[Role]part{
		RoleAccess:    {(*App).runAccess, []need{needsRedis, needsMQ, needsListen, needsTLS, needsAccess, needsSubmit}, true},
		RoleConsumer:  {(*App).runConsumer, []need{needsPostgres, needsMQ, needsConsumer, needsPayment}, false},
		RoleScanner:   {(*App).runScanner, []need{needsRedis, needsMQ, needsScanner, needsPostgres}, false},
		RoleOutbox:    {(*App).runOutbox, []need{needsRedis, needsPostgres, needsMQ, needsConsumer}, false},
		RoleOrders:    {(*App).runOrders, []need{needsRedis, needsPostgres, needsListen, needsTLS}, true},
		RoleReconcile: {(*App).runReconcile, []need{needsRedis, needsPostgres, needsMQ, needsConsumer, needsReconcile}, false},
	}[r]
	if !ok {
		return part{}, fmt.Errorf("%w: role %q is not known", ErrConfig, r)
	}
	return known, nil
}

// Run runs roles in this process until ctx ends, then drains them. When one
// ends by itself, the others end, too. An error that wraps ErrConfig means
// that nothing was started.
//
// Draining: readiness fails at once, clients are served for DrainDelay more,
// so that whoever balances them has looked elsewhere, and then each role has
// Drain to finish what it began.
func (a *App) Run(ctx context.Context, roles ...Role) error {
	if err := a.cfg.Validate(roles...); err != nil {
		return err
	}
	name := "all"
	if len(roles) == 1 {
		name = string(roles[0])
	}
	registry := telemetry.NewRegistry(name, a.cfg.Zone)
	admin, err := telemetry.ServeAdmin(a.cfg.Admin, registry)
	if err != nil {
		return fmt.Errorf("%w: choose another with --admin", err)
	}
	tracer, err := telemetry.NewTracer(ctx, a.cfg.Trace, name, a.cfg.Zone, a.log)
	if err != nil {
		return errors.Join(err, admin.Close())
	}
	tracer.Register(registry.Role(name, a.cfg.Zone))
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	delay := drainDelay(a.cfg.DrainDelay, roles)
	drained := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		defer close(drained)
		wasReady := admin.Drain()
		a.log.Info("told to end: draining, no longer ready", "role", name, "why", context.Cause(ctx), "still_serving_for", delay, "then_at_most", a.cfg.Drain)
		if wasReady && delay > 0 {
			select {
			case <-time.After(delay):
			case <-work.Done():
			}
		}
		stop()
	})
	var first firstError
	var announcing sync.Mutex
	ready := func(r seckill.Ready) {
		announcing.Lock()
		defer announcing.Unlock()
		a.ready(r)
	}
	var running sync.WaitGroup
	for _, role := range roles {
		p := &process{app: a.as(role, len(roles) > 1), role: role, admin: admin, tracer: tracer, ready: admin.Part()}
		p.app.ready = ready
		p.metrics = registry.Role(string(role), a.cfg.Zone)
		running.Go(func() {
			defer stop()
			if err := p.run(work); err != nil && !first.take(role, err) {
				p.app.log.Warn("ended badly, after another", "error", err)
			}
		})
	}
	running.Wait()
	if !unwatch() {
		<-drained
		a.log.Info("ended", "role", name)
	}
	if err := tracer.Close(); err != nil {
		a.log.Warn("the last spans were not exported", "error", err)
	}
	if first.err != nil && len(roles) > 1 {
		first.err = fmt.Errorf("%s: %w", first.role, first.err)
	}
	return errors.Join(first.err, admin.Close())
}

// firstError is why a process ends: the role that failed first takes the
// others with it, and what those say of being cut short is no cause.
type firstError struct {
	mu   sync.Mutex
	role Role
	err  error
}

// take keeps err if it is the first.
func (f *firstError) take(role Role, err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return false
	}
	f.role, f.err = role, err
	return true
}

// drainDelay is how long clients are served after the signal: not at all
// where there are none.
func drainDelay(delay time.Duration, roles []Role) time.Duration {
	for _, role := range roles {
		if p, err := role.part(); err == nil && p.serves {
			return delay
		}
	}
	return 0
}

// as is the app as the role sees it: of several, each with ids of its own.
func (a *App) as(role Role, several bool) *App {
	own := *a
	own.cfg = a.cfg.as(role)
	own.log = a.log.With("role", string(role))
	if several {
		own.seed = sha256.Sum256(append(a.seed[:], role...))
	}
	return &own
}

// process is a running role: what it opened, in order.
type process struct {
	app     *App
	role    Role
	metrics prometheus.Registerer
	admin   *telemetry.Admin
	tracer  *telemetry.Tracer // nil: nothing is traced
	ready   *telemetry.Readiness
	opened  []io.Closer
}

func (p *process) run(ctx context.Context) error {
	part, err := p.role.part()
	if err != nil {
		return err
	}
	err = part.run(p.app, ctx, p)
	p.setReady(false)
	return errors.Join(err, p.close())
}

// observer tells of what the role does.
func (p *process) observer() observer { return observer{p.app.log, p.tracer} }

func (p *process) setReady(ready bool) { p.ready.Set(ready) }
