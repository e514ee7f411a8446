package telemetry

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Admin serves /metrics, /healthz, /readyz and /debug/pprof on a loopback
// address, apart from the traffic.
type Admin struct {
	ln   net.Listener
	srv  *http.Server
	done chan struct{}

	mu       sync.Mutex
	parts    []*Readiness
	draining bool
}

// Readiness is one role's share of the process's readiness. Safe for
// concurrent use.
type Readiness struct{ ready atomic.Bool }

// Set says whether the role takes work.
func (r *Readiness) Set(ready bool) { r.ready.Store(ready) }

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
		if !a.Ready() {
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

// Part adds a role, not ready yet. /readyz answers 200 while there are roles,
// all are ready, and the process does not drain.
func (a *Admin) Part() *Readiness {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := new(Readiness)
	a.parts = append(a.parts, r)
	return r
}

// Ready is what /readyz says.
func (a *Admin) Ready() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.parts {
		if !r.ready.Load() {
			return false
		}
	}
	return len(a.parts) > 0 && !a.draining
}

// Drain ends readiness for good, and says whether there was any.
func (a *Admin) Drain() (wasReady bool) {
	wasReady = a.Ready()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.draining = true
	return wasReady
}

// Close stops serving.
func (a *Admin) Close() error {
	err := a.srv.Close()
	<-a.done
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
