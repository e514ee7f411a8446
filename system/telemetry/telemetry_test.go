package telemetry_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/hotsku/hotsku/system/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T) (*telemetry.Admin, prometheus.Registerer) {
	t.Helper()
	registry := telemetry.NewRegistry("access", "zone-1")
	metrics := registry.Role("access", "zone-1")
	a, err := telemetry.ServeAdmin("127.0.0.1:0", registry)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, metrics
}

func get(t *testing.T, a *telemetry.Admin, path string) (int, string) {
	t.Helper()
	resp, err := http.Get("http://" + a.Addr() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// R12.1: what is counted is exported, live, under role and zone.
func TestMetricsAreExported(t *testing.T) {
	a, metrics := serve(t)
	var requests, open atomic.Int64
	telemetry.Counter(metrics, "requests_total", "Requests.", prometheus.Labels{"result_code": "QUEUED"}, &requests)
	telemetry.Gauge(metrics, "open", "Open.", &open)
	telemetry.Seconds(metrics, "call", "Calls, seconds.").Observe(0.003)
	for range 2 {
		requests.Add(21)
		open.Store(7)
		_, body := get(t, a, "/metrics")
		for _, want := range []string{
			fmt.Sprintf(`requests_total{availability_zone="zone-1",result_code="QUEUED",role="access"} %d`, requests.Load()),
			`open{availability_zone="zone-1",role="access"} 7`,
			`call_count{availability_zone="zone-1",role="access"} 1`,
			`call_bucket{availability_zone="zone-1",role="access",le="0.003"} 1`,
			`call_bucket{availability_zone="zone-1",role="access",le="0.002"} 0`,
			"go_goroutines{", "process_resident_memory_bytes{",
		} {
			if !strings.Contains(body, want) {
				t.Errorf("no line %q", want)
			}
		}
	}
}

func TestReadinessIsApartFromHealth(t *testing.T) {
	a, _ := serve(t)
	expect := func(when string, want int) {
		t.Helper()
		if got, _ := get(t, a, "/readyz"); got != want {
			t.Errorf("%s: /readyz is %d, want %d", when, got, want)
		}
		if got, body := get(t, a, "/healthz"); got != 200 || body != "ok\n" {
			t.Errorf("%s: /healthz is %d %q", when, got, body)
		}
	}
	expect("no role", 503)
	one, two := a.Part(), a.Part()
	one.Set(true)
	expect("one of two ready", 503)
	two.Set(true)
	expect("both ready", 200)
	one.Set(false)
	expect("one no longer", 503)
	one.Set(true)
	if !a.Drain() {
		t.Error("it was ready")
	}
	expect("draining", 503)
	two.Set(true)
	expect("ready again while draining", 503)
	if a.Drain() {
		t.Error("draining twice: ready in between")
	}
	if got, _ := get(t, a, "/debug/pprof/goroutine?debug=1"); got != 200 {
		t.Errorf("profiles: %d", got)
	}
	if got, _ := get(t, a, "/"); got != 404 {
		t.Errorf("another path: %d", got)
	}
}

// Contracts 1: the admin address is nobody else's business.
func TestOnlyLoopbackIsServed(t *testing.T) {
	registry := telemetry.NewRegistry("access", "z")
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.org:80", "localhost:0", "127.0.0.1", "", "9090"} {
		if err := telemetry.CheckAdminAddr(addr); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: error is %v, want one line", addr, err)
		}
		if a, err := telemetry.ServeAdmin(addr, registry); err == nil {
			t.Errorf("%q is served", addr)
			a.Close()
		}
	}
	for _, addr := range []string{"127.0.0.1:0", "127.9.9.9:0", "[::1]:9090"} {
		if err := telemetry.CheckAdminAddr(addr); err != nil {
			t.Errorf("%q: %v", addr, err)
		}
	}
}

func TestAPortInUseIsAnError(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	registry := telemetry.NewRegistry("access", "z")
	_, err = telemetry.ServeAdmin(ln.Addr().String(), registry)
	var op *net.OpError
	if !errors.As(err, &op) || !strings.Contains(err.Error(), ln.Addr().String()) {
		t.Errorf("error is %v", err)
	}
}
