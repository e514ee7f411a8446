package customers

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = seckill.TokenKey{ID: "k1", Secret: []byte("0123456789abcdef0123456789abcdef")}

// window is an orders process that knows an order of every request, and notes
// who ended which how.
type window struct {
	t    *testing.T
	mu   sync.Mutex
	ends map[string]string // by order
	wait bool
}

func (w *window) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	codec, err := seckill.NewTokenCodec(key)
	if err != nil {
		w.t.Error(err)
	}
	who, err := codec.Verify([]byte(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")), 0)
	if err != nil || who.ActivityID != 10001 {
		w.t.Errorf("token says %+v, %v", who, err)
	}
	a := seckill.Answer{Code: seckill.CodeFound}
	switch rest, ok := strings.CutPrefix(r.URL.Path, "/v1/seckill/requests/"); {
	case w.wait:
		a.Code = seckill.CodeProcessing
	case ok:
		if r.Method != "GET" || r.URL.Query().Get("activity_id") != "10001" || r.URL.Query().Get("sku_id") != "20001" {
			w.t.Errorf("asked %s %s", r.Method, r.URL)
		}
		a.Status, a.OrderID = "ORDER_CREATED", "of-"+rest
	default:
		parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/seckill/orders/"), "/")
		if r.Method != "POST" || len(parts) != 2 {
			w.t.Errorf("asked %s %s", r.Method, r.URL)
		}
		w.mu.Lock()
		w.ends[parts[0]] = parts[1]
		w.mu.Unlock()
	}
	_, _ = rw.Write(a.AppendJSON(nil))
}

// R7.4.7: owners ask for requests that were sent, and a seeded share pays or
// cancels; a process that is gone costs them nothing while another serves.
func TestCustomersAskPayAndCancel(t *testing.T) {
	run := func(t *testing.T, w *window, seed uint64, gone bool) *Customers {
		served := httptest.NewServer(w)
		defer served.Close()
		addrs := []string{strings.TrimPrefix(served.URL, "http://")}
		if gone {
			closed := httptest.NewServer(w)
			closed.Close()
			addrs = append(addrs, strings.TrimPrefix(closed.URL, "http://"))
		}
		c, err := New(Config{Addrs: addrs, Workload: rundir.Workload{Seed: seed, FirstUser: 1000}, RatePerS: 1000,
			ActivityID: 10001, SKUID: 20001, Key: key, ExpiresAt: 1 << 40, Every: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		for turn := range 200 {
			c.visit(turn, c.cfg.Workload.Pick(uint64(turn)))
		}
		c.client.CloseIdleConnections()
		return c
	}
	first, second := &window{t: t, ends: map[string]string{}}, &window{t: t, ends: map[string]string{}}
	c := run(t, first, 7, false)
	if s := &c.Stats; s.Asked.Load() != 200 || s.Found.Load() != 200 || s.Failed.Load() != 0 ||
		s.Paid.Load() < 50 || s.Cancelled.Load() < 20 || s.Paid.Load()+s.Cancelled.Load() != int64(len(first.ends)) || len(first.ends) > 150 {
		t.Errorf("%v, %d ended", c.Stats.Hits(), len(first.ends))
	}
	if again := run(t, second, 7, true); !maps.Equal(first.ends, second.ends) || again.Stats.Failed.Load() != 0 {
		t.Errorf("the same seed, one of two processes gone: %v after %v", again.Stats.Hits(), c.Stats.Hits())
	}
	waiting := run(t, &window{t: t, wait: true}, 7, false)
	if s := &waiting.Stats; s.Waiting.Load() != 200 || s.Paid.Load() != 0 {
		t.Errorf("%v", s.Hits())
	}
}

// Nobody asks for what was not sent yet, and whoever asks when it ends is
// waited for.
func TestCustomersComeAfterTheirRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(Config{Addrs: []string{"127.0.0.1:1"}, Workload: rundir.Workload{Seed: 3, FirstUser: 1}, RatePerS: 10,
			ActivityID: 1, SKUID: 1, Key: key, ExpiresAt: 1 << 40, Every: 100 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		c.client.Transport = refusing{}
		ctx, cancel := context.WithTimeout(t.Context(), askAfter-time.Millisecond)
		defer cancel()
		c.Run(ctx)
		if n := c.Stats.Asked.Load(); n != 0 {
			t.Errorf("%d asked before anything was %v old", n, askAfter)
		}
		ctx, cancel = context.WithTimeout(t.Context(), askAfter+time.Second)
		defer cancel()
		c.Run(ctx)
		if n := c.Stats.Asked.Load(); n < 5 || n != c.Stats.Failed.Load() {
			t.Errorf("%v", c.Stats.Hits())
		}
	})
}

// refusing is a network without anybody.
type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, http.ErrServerClosed }

func TestCustomersNeedSomebodyToAsk(t *testing.T) {
	for says, cfg := range map[string]Config{
		"nobody to ask":    {RatePerS: 1, Every: 1, Key: key},
		"must be positive": {Addrs: []string{"a:1"}, Key: key},
		"key":              {Addrs: []string{"a:1"}, RatePerS: 1, Every: 1},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", cfg, err, says)
		}
	}
}
