package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/reservation"
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
// when the role is ready to work.
func New(cfg Config, w Wiring, log *slog.Logger, seed [32]byte, ready func(seckill.Ready)) *App {
	return &App{cfg: cfg, wiring: w, log: log, seed: seed, ready: ready}
}

// Run runs a role until ctx ends, then drains it. An error that wraps
// ErrConfig means that nothing was started.
func (a *App) Run(ctx context.Context, role Role) error {
	run := map[Role]func(context.Context, *process) error{
		RoleAccess: a.runAccess, RoleConsumer: a.runConsumer, RoleScanner: a.runScanner,
		RoleOutbox: a.runOutbox, RoleOrders: a.runOrders,
	}[role]
	if run == nil {
		return fmt.Errorf("%w: role %q is not known", ErrConfig, role)
	}
	registry, metrics := telemetry.NewRegistry(string(role), a.cfg.Zone)
	admin, err := telemetry.ServeAdmin(a.cfg.Admin, registry)
	if err != nil {
		return err
	}
	p := &process{app: a, role: role, metrics: metrics, admin: admin}
	p.onClose(admin)
	err = run(ctx, p)
	return errors.Join(err, p.close())
}

// process is a running role: what it opened, in order.
type process struct {
	app     *App
	role    Role
	metrics prometheus.Registerer
	admin   *telemetry.Admin
	opened  []io.Closer
}

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
	p.admin.SetReady(true)
	p.app.log.Info("ready", "listen", listen, "admin", p.admin.Addr())
	p.app.ready(seckill.Ready{Role: string(p.role), PID: os.Getpid(), Listen: listen, Admin: p.admin.Addr()})
}

// store connects to Redis; it must be there when a role starts.
func (p *process) store(ctx context.Context) (Store, error) {
	s, err := reservation.New(p.app.cfg.Redis, p.app.wiring.Scripts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	p.onClose(s)
	check, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := s.Check(check); err != nil {
		return nil, err
	}
	return p.app.wiring.Store(s), nil
}

func (p *process) producer(timeout time.Duration) (Producer, error) {
	q, err := mq.NewProducer(p.app.cfg.MQ, timeout)
	if err != nil {
		return nil, err
	}
	p.onClose(q)
	return p.app.wiring.Producer(q), nil
}
