package app

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hotsku/hotsku/system/dlq"
	"github.com/hotsku/hotsku/system/reconcile"
)

// accounts exports what reconcile knows (12.2, 12.4, 12.5): the accounts of
// the SKUs on sale, which are few, the servers' own figures and the dead
// letters.
type accounts struct {
	reconciler *reconcile.Reconciler
	keeper     *dlq.Keeper
}

// account is a figure of one SKU.
type account struct {
	desc  *prometheus.Desc
	value func(*reconcile.Report) int64
}

func skuDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"activity_id", "sku_id"}, nil)
}

// skuAccounts are the figures of one SKU, as of the last round.
func skuAccounts() []account {
	return []account{
		{skuDesc("redis_stock_value", "Units that may be reserved."), func(r *reconcile.Report) int64 { return r.Redis.Stock }},
		{skuDesc("redis_reserved_count", "Reservations ever made."), func(r *reconcile.Report) int64 { return r.Reservations.Made }},
		{skuDesc("redis_token_drift", "Free units less those that Redis offers or that wait for an end; exact while nothing moves."),
			func(r *reconcile.Report) int64 { return r.Redis.Drift }},
		{skuDesc("postgres_order_created_count", "Valid orders, paid or not."), func(r *reconcile.Report) int64 { return r.Units.OrdersCreated + r.Units.OrdersPaid }},
		{skuDesc("postgres_order_paid_count", "Paid orders."), func(r *reconcile.Report) int64 { return r.Units.OrdersPaid }},
		{skuDesc("postgres_token_available_count", "Free tokens."), func(r *reconcile.Report) int64 { return r.Units.Available }},
		{skuDesc("postgres_token_claimed_count", "Tokens of unpaid orders."), func(r *reconcile.Report) int64 { return r.Units.Claimed }},
		{skuDesc("postgres_token_sold_count", "Tokens of paid orders."), func(r *reconcile.Report) int64 { return r.Units.Sold }},
		{skuDesc("postgres_token_released_count", "Tokens retired."), func(r *reconcile.Report) int64 { return r.Units.Released }},
		{skuDesc("reservation_released_count", "Reservations ended and compensated."), func(r *reconcile.Report) int64 { return r.Reservations.Compensated }},
		{skuDesc("compensation_pending_count", "Reservations ended, and their compensation not applied yet."),
			func(r *reconcile.Report) int64 { return r.Reservations.CompensationPending }},
		{skuDesc("reservation_in_process_count", "Reservations on their way."), func(r *reconcile.Report) int64 { return r.Reservations.InProcess }},
		{skuDesc("reservation_stuck_count", "Reservations that no scanner looks after."), func(r *reconcile.Report) int64 { return r.Reservations.Stuck }},
		{skuDesc("reservation_lost_count", "Reservations whose message was confirmed and never decided."), func(r *reconcile.Report) int64 { return r.Reservations.Lost }},
		{skuDesc("reservation_set_aside_count", "Reservations handed to a person."), func(r *reconcile.Report) int64 { return r.Reservations.SetAside }},
		{skuDesc("reservation_unapplied_count", "Decisions overdue in Redis."), func(r *reconcile.Report) int64 { return r.Reservations.Unapplied }},
		{skuDesc("reservation_not_in_redis_count", "Decided reservations that Redis lost."), func(r *reconcile.Report) int64 { return r.Reservations.NotInRedis }},
		{skuDesc("inventory_conservation_delta", "Units and reservations in no place or in two; anything but 0 is a defect or a loss."),
			func(r *reconcile.Report) int64 { return r.Delta }},
	}
}

var (
	redisUpDesc       = prometheus.NewDesc("redis_up", "Whether Redis answered.", nil, nil)
	redisLagDesc      = prometheus.NewDesc("redis_replication_lag", "Since the longest silent replica was heard of, seconds.", nil, nil)
	redisLagBytesDesc = prometheus.NewDesc("redis_replication_lag_bytes", "What the replica farthest behind lacks.", nil, nil)
	redisReplicasDesc = prometheus.NewDesc("redis_replicas", "Replicas connected.", nil, nil)
	redisFailoverDesc = prometheus.NewDesc("redis_failover_total", "Times another Redis answered than before, or as another role.", nil, nil)
	databaseUpDesc    = prometheus.NewDesc("database_up", "Whether PostgreSQL answered.", nil, nil)
	walBytesDesc      = prometheus.NewDesc("wal_bytes", "Position in the write-ahead log.", nil, nil)
	lockWaitDesc      = prometheus.NewDesc("lock_wait_duration", "Of whoever waits longest for a lock now, seconds.", nil, nil)
	lockWaitersDesc   = prometheus.NewDesc("lock_waiters", "Sessions that wait for a lock now.", nil, nil)
	lagDesc           = prometheus.NewDesc("replication_lag", "Of the PostgreSQL replica farthest behind, seconds.", nil, nil)
	replicasDesc      = prometheus.NewDesc("database_replicas", "PostgreSQL replicas connected.", nil, nil)
	unpublishedDesc   = prometheus.NewDesc("outbox_unpublished_count", "Events that wait to be published.", nil, nil)
	oldestEventDesc   = prometheus.NewDesc("outbox_oldest_unpublished_age", "Age of the oldest of them, seconds.", nil, nil)
	deadOpenDesc      = prometheus.NewDesc("dead_letter_open_count", "Dead letters that nothing has settled.", []string{"class"}, nil)
	deadOldestDesc    = prometheus.NewDesc("dead_letter_oldest_age", "Age of the oldest of them, seconds.", []string{"class"}, nil)
)

// Describe implements prometheus.Collector.
func (a *accounts) Describe(out chan<- *prometheus.Desc) {
	for _, f := range skuAccounts() {
		out <- f.desc
	}
	for _, d := range []*prometheus.Desc{redisUpDesc, redisLagDesc, redisLagBytesDesc, redisReplicasDesc, redisFailoverDesc, databaseUpDesc,
		walBytesDesc, lockWaitDesc, lockWaitersDesc, lagDesc, replicasDesc, unpublishedDesc, oldestEventDesc, deadOpenDesc, deadOldestDesc} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (a *accounts) Collect(out chan<- prometheus.Metric) {
	reports := a.reconciler.Latest()
	for i := range reports {
		r := &reports[i]
		for _, f := range skuAccounts() {
			out <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, float64(f.value(r)),
				strconv.FormatInt(r.ActivityID, 10), strconv.FormatInt(r.SKUID, 10))
		}
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	s := a.reconciler.Servers()
	gauge(redisUpDesc, flag(s.RedisUp))
	gauge(redisLagDesc, s.Redis.Lag.Seconds())
	gauge(redisLagBytesDesc, float64(s.Redis.LagBytes))
	gauge(redisReplicasDesc, float64(s.Redis.Replicas))
	out <- prometheus.MustNewConstMetric(redisFailoverDesc, prometheus.CounterValue, float64(s.Failovers))
	gauge(databaseUpDesc, flag(s.PostgresUp))
	out <- prometheus.MustNewConstMetric(walBytesDesc, prometheus.CounterValue, float64(s.Postgres.WALBytes))
	gauge(lockWaitDesc, s.Postgres.LockWait.Seconds())
	gauge(lockWaitersDesc, float64(s.Postgres.LockWaiters))
	gauge(lagDesc, s.Postgres.ReplicationLag.Seconds())
	gauge(replicasDesc, float64(s.Postgres.Replicas))
	gauge(unpublishedDesc, float64(s.Postgres.Unpublished))
	gauge(oldestEventDesc, s.Postgres.OldestEvent.Seconds())
	open := map[dlq.Class]dlq.Backlog{}
	for _, b := range a.keeper.Backlog() {
		open[b.Class] = b
	}
	for _, c := range dlq.Classes() { // 0, too: an alert needs a figure to fall back to
		gauge(deadOpenDesc, float64(open[c].Open), string(c))
		gauge(deadOldestDesc, open[c].Oldest.Seconds(), string(c))
	}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
