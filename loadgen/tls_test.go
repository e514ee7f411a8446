package loadgen_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hotsku/hotsku/loadgen"
	"github.com/hotsku/hotsku/loadgen/wire"
)

// tlsServer is a real HTTPS server that answers each request with its number,
// and the configuration that trusts it.
func tlsServer(t *testing.T, version uint16, s *seen) (addr string, trusting *tls.Config) {
	t.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		n := strings.TrimSpace(r.Header.Get("X-N"))
		s.addText(t, n)
		_, _ = io.WriteString(w, n)
	}))
	srv.TLS = &tls.Config{MaxVersion: version}
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // connections end as the tests mean them to
	srv.StartTLS()
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	return srv.Listener.Addr().String(), &tls.Config{RootCAs: roots}
}

func TestHTTPS(t *testing.T) {
	t.Parallel()
	for name, version := range map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13} {
		for client, tick := range map[loadgen.Client]time.Duration{loadgen.ClientWire: 50 * time.Millisecond, loadgen.ClientFast: time.Millisecond} {
			t.Run(name+" by "+string(client), func(t *testing.T) {
				t.Parallel()
				var s seen
				addr, trusting := tlsServer(t, version, &s)
				depth := 64 // and one tick releases more than a TLS record holds
				if client == loadgen.ClientFast {
					depth = 1
				}
				res := load(t, t.Context(), loadgen.Config{
					Addrs: []string{addr}, Schedule: constant(t, 4000, time.Second), Conns: 4, Depth: depth,
					TLS: trusting, Client: client, Tick: tick, CatchUp: time.Minute,
				})
				if res.Completed != 4000 || res.Statuses[200] != 4000 {
					t.Errorf("%d of 4000 completed, statuses %v, failures %v", res.Completed, res.Statuses, res.Failures)
				}
				s.noneTwice(t)
			})
		}
	}
}

func TestWhatIsNoTLSIsNamed(t *testing.T) {
	t.Parallel()
	var s seen
	secure, _ := tlsServer(t, tls.VersionTLS13, &s)
	plain := serve(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") })
	for name, tc := range map[string]struct{ addr, says string }{
		"a certificate nobody vouches for": {secure, "x509"},
		"a server without TLS":             {plain, "TLS"},
	} {
		res, err := loadgen.Run(t.Context(), loadgen.Config{
			Addrs: []string{tc.addr}, Schedule: constant(t, 100, time.Second), NewSource: newPosts, TLS: &tls.Config{}, Conns: 1, DialTimeout: time.Minute, ConnectWait: 5 * time.Second,
		})
		if res != nil || !errors.Is(err, loadgen.ErrNoConnection) || !strings.Contains(err.Error(), wire.CauseTLS.String()+";") || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: result %v, error %v; want ErrNoConnection by %v with %q", name, res, err, wire.CauseTLS, tc.says)
		}
	}
}

func TestATLSConnectionClosedMidPipelineFailsEachOutstandingOnce(t *testing.T) {
	t.Parallel()
	var s seen
	_, trusting := tlsServer(t, tls.VersionTLS13, &s)
	srv := httptest.NewUnstartedServer(nil)
	srv.StartTLS()
	cert := srv.TLS.Certificates
	srv.Close()
	addr := serve(t, func(c net.Conn) {
		sc := tls.Server(c, &tls.Config{Certificates: cert})
		r := bufio.NewReader(sc)
		for i := 0; ; i++ {
			n, err := readRequest(r)
			if err != nil {
				return
			}
			s.add(n)
			if i >= 100 {
				return // without a farewell
			}
			if _, err := io.WriteString(sc, answerTo(n, 200, "")); err != nil {
				return
			}
		}
	})
	res := load(t, t.Context(), loadgen.Config{Addrs: []string{addr}, Schedule: constant(t, 5000, time.Second), Conns: 4, TLS: trusting})
	if res.Failed == 0 || res.Completed == 0 || res.TimedOut+res.Unfinished != 0 {
		t.Errorf("completed %d, failed %d, timed out %d, unfinished %d; want only the first two", res.Completed, res.Failed, res.TimedOut, res.Unfinished)
	}
	if lost := res.Failures[wire.CauseClosed] + res.Failures[wire.CauseReset]; lost != res.Failed {
		t.Errorf("failures %v; want closed and reset only", res.Failures)
	}
	s.noneTwice(t)
}
