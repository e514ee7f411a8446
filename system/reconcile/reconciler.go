package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// Store is the Redis side.
type Store interface {
	Books(ctx context.Context, activityID, skuID int64) (reservation.Books, error)
	ReadLog(ctx context.Context, activityID, skuID int64, after string) ([]reservation.Change, bool, error)
	LookupReservations(ctx context.Context, activityID, skuID int64, ids []string) (map[string]reservation.Reservation, error)
	MarkSent(ctx context.Context, activityID, skuID int64, reservationIDs []string) error
	Signals(ctx context.Context) ([]reservation.Signal, error)
	Replication(ctx context.Context) (reservation.Replication, error)
}

// Sender is the broker side. nil means confirmed; any error means unknown.
type Sender interface {
	SendOrderCreates(messages []seckill.OrderCreateMessage) error
}

// Params are what a Reconciler works with. Sender may be nil for dry runs.
type Params struct {
	Config Config
	Pool   *pgxpool.Pool
	Store  Store
	Sender Sender
	Now    func() time.Time // stamps messages; nothing is judged by it
	Log    *slog.Logger
}

// Stats counts a Reconciler's work. Safe to read at any time.
type Stats struct {
	Rounds      atomic.Int64 // that looked at every SKU
	RoundFails  atomic.Int64 // that could not
	Resent      atomic.Int64
	Republished atomic.Int64
	LastRound   atomic.Int64 // Unix seconds of the last complete round
}

// Reconciler looks after all SKUs. Round is for one caller at a time; the
// rest is safe for concurrent use.
type Reconciler struct {
	cfg    Config
	pool   *pgxpool.Pool
	store  Store
	sender Sender
	now    func() time.Time
	log    *slog.Logger
	stats  Stats

	driven map[reservation.SKU]map[string]driven // of the SKUs and reservations still open

	mu      sync.Mutex
	reports []Report // of the last round
	servers Servers
}

// New checks the configuration and returns a Reconciler.
func New(p Params) (*Reconciler, error) {
	if err := p.Config.Validate(); err != nil {
		return nil, err
	}
	if p.Pool == nil || p.Store == nil || p.Now == nil || p.Log == nil {
		return nil, errors.New("reconcile: pool, store, now and log are required")
	}
	return &Reconciler{cfg: p.Config, pool: p.Pool, store: p.Store, sender: p.Sender, now: p.Now, log: p.Log,
		driven: map[reservation.SKU]map[string]driven{}}, nil
}

// Stats returns the counters, live.
func (r *Reconciler) Stats() *Stats { return &r.stats }

// Latest returns the reports of the last round, which are not to be changed.
func (r *Reconciler) Latest() []Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reports
}

// Run reconciles until ctx ends. What fails is logged and tried again with the
// next round.
func (r *Reconciler) Run(ctx context.Context) {
	tick := time.NewTicker(r.cfg.Every)
	defer tick.Stop()
	for {
		if _, err := r.Round(ctx, false); err != nil && ctx.Err() == nil {
			r.log.Warn("round not complete", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Round looks at every SKU once, mends what it finds, and saves each report
// beside the SKU's totals. A dry run only looks. The reports of SKUs that
// could be read come with the error about the others.
func (r *Reconciler) Round(ctx context.Context, dryRun bool) ([]Report, error) {
	skus, err := r.skus(ctx)
	if err != nil {
		r.stats.RoundFails.Add(1)
		return nil, err
	}
	reports := make([]Report, 0, len(skus))
	var errs []error
	open := make(map[reservation.SKU]map[string]driven, len(skus))
	for _, s := range skus {
		report, err := r.one(ctx, s, dryRun)
		if report != nil {
			reports = append(reports, *report)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("reconcile activity %d SKU %d: %w", s.ActivityID, s.SKUID, err))
		}
		open[s.SKU] = r.driven[s.SKU]
	}
	r.driven = open
	r.mu.Lock()
	r.reports = reports
	r.mu.Unlock()
	if len(errs) > 0 {
		r.stats.RoundFails.Add(1)
		return reports, errors.Join(errs...)
	}
	r.stats.Rounds.Add(1)
	r.stats.LastRound.Store(r.now().Unix())
	return reports, nil
}

func (r *Reconciler) one(ctx context.Context, s sku, dryRun bool) (*Report, error) {
	a, err := r.audit(ctx, s)
	if err != nil {
		return nil, err
	}
	if a.report.Delta != 0 {
		r.log.Error("not conserved", "activity_id", s.ActivityID, "sku_id", s.SKUID, "delta", a.report.Delta, "witnesses", a.report.Witnesses)
	}
	a.plan(dryRun)
	if dryRun {
		return a.report, nil
	}
	a.mend(ctx)
	return a.report, r.save(ctx, a.report)
}
