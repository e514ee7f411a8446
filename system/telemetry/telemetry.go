// Package telemetry exports what the roles count: metrics under the
// specification's names (chapter 12), health and profiles on the admin
// address. Labels are low-cardinality; no user_id and no request_id ever is
// one (R12.7).
package telemetry

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Registry holds a role's metrics. Safe for concurrent use.
type Registry struct{ *prometheus.Registry }

// NewRegistry returns a registry with the process's and Go's own metrics,
// labelled with the process's name (its role) and zone.
func NewRegistry(process, zone string) Registry {
	r := Registry{prometheus.NewRegistry()}
	r.Role(process, zone).MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Role is where a role of the process registers its metrics; role and zone
// are labels of each.
func (r Registry) Role(role, zone string) prometheus.Registerer {
	return prometheus.WrapRegistererWith(prometheus.Labels{"role": role, "availability_zone": zone}, r.Registry)
}

// Counter exports an existing count.
func Counter(r prometheus.Registerer, name, help string, labels prometheus.Labels, n *atomic.Int64) {
	r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels},
		func() float64 { return float64(n.Load()) }))
}

// Gauge exports an existing value.
func Gauge(r prometheus.Registerer, name, help string, n *atomic.Int64) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
		func() float64 { return float64(n.Load()) }))
}

// Seconds makes a histogram of durations in seconds, 0.1 ms to 5 s.
func Seconds(r prometheus.Registerer, name, help string) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help,
		Buckets: []float64{.0001, .0002, .0005, .001, .002, .003, .005, .0075, .01, .015, .02, .03, .04, .05, .075, .1, .15, .25, .5, 1, 2.5, 5}})
	r.MustRegister(h)
	return h
}
