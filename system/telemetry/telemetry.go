// Package telemetry exports what the roles count: metrics under the
// specification's names (chapter 12), health and profiles on the admin
// address. Labels are low-cardinality; no user_id and no request_id ever is
// one (R12.7).
package telemetry

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Registry holds a role's metrics. Safe for concurrent use.
type Registry struct{ *prometheus.Registry }

// NewRegistry returns a registry with the process's and Go's own metrics;
// zone and role are labels of every metric.
func NewRegistry(role, zone string) (Registry, prometheus.Registerer) {
	r := prometheus.NewRegistry()
	labelled := prometheus.WrapRegistererWith(prometheus.Labels{"role": role, "availability_zone": zone}, r)
	labelled.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return Registry{r}, labelled
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

// Admin serves /metrics, /healthz, /readyz and /debug/pprof on a loopback
// address, apart from the traffic.
type Admin struct {
	ln    net.Listener
	srv   *http.Server
	ready atomic.Bool
	done  chan struct{}
}

// CheckAdminAddr says whether ServeAdmin may serve on addr. Only loopback is
// allowed: profiles and health are nobody else's business.
func CheckAdminAddr(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("admin address %q: must be host:port", addr)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("admin address %q: must be a loopback address such as 127.0.0.1:9090", addr)
	}
	return nil
}

// ServeAdmin starts serving on addr, a loopback host:port with port 0 for
// any.
func ServeAdmin(addr string, r Registry) (*Admin, error) {
	if err := CheckAdminAddr(addr); err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("admin address %s: %w", addr, err)
	}
	a := &Admin{ln: ln, done: make(chan struct{})}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(r, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !a.ready.Load() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	a.srv = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	go func() {
		defer close(a.done)
		_ = a.srv.Serve(ln) // always http.ErrServerClosed, after Close
	}()
	return a, nil
}

// Addr is where it serves.
func (a *Admin) Addr() string { return a.ln.Addr().String() }

// SetReady says whether /readyz answers 200.
func (a *Admin) SetReady(ready bool) { a.ready.Store(ready) }

// Close stops serving.
func (a *Admin) Close() error {
	err := a.srv.Close()
	<-a.done
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
