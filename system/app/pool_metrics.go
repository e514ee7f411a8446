package app

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// poolMetrics exports a pool's use (12.4).
func poolMetrics(r prometheus.Registerer, pool *pgxpool.Pool) {
	gauge := func(name, help string, value func(*pgxpool.Stat) float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
			func() float64 { return value(pool.Stat()) }))
	}
	gauge("database_pool_acquired", "Connections in use.", func(s *pgxpool.Stat) float64 { return float64(s.AcquiredConns()) })
	gauge("database_pool_limit", "Connections the pool may have.", func(s *pgxpool.Stat) float64 { return float64(s.MaxConns()) })
	counter := func(name, help string, value func(*pgxpool.Stat) float64) {
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help},
			func() float64 { return value(pool.Stat()) }))
	}
	counter("database_pool_waiting", "Times a connection was wanted and none was free.", func(s *pgxpool.Stat) float64 { return float64(s.EmptyAcquireCount()) })
	counter("database_pool_wait_seconds_total", "Time spent waiting for one.", func(s *pgxpool.Stat) float64 { return s.EmptyAcquireWaitTime().Seconds() })
}
