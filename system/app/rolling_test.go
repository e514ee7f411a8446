package app_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

// balancer sends each request to one of the access processes that are ready,
// as it last knew: what a gateway does.
type balancer struct {
	mu      sync.Mutex
	targets []*process
	ready   []*process
	unready map[*process]bool // those seen not ready after they were
}

func (b *balancer) add(p *process) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.targets = append(b.targets, p)
	b.ready = append(b.ready, p)
}

// probe looks at the readiness of all once.
func (b *balancer) probe() {
	b.mu.Lock()
	targets := append([]*process(nil), b.targets...)
	b.mu.Unlock()
	var ready, unready []*process
	for _, p := range targets {
		resp, err := http.Get("http://" + p.Admin + "/readyz")
		if err == nil {
			resp.Body.Close()
		}
		if err == nil && resp.StatusCode == http.StatusOK {
			ready = append(ready, p)
		} else {
			unready = append(unready, p)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	ready = append(ready, b.targets[len(targets):]...) // added meanwhile
	b.ready = ready
	for _, p := range unready {
		b.unready[p] = true
	}
}

func (b *balancer) pick() *process {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ready[rand.IntN(len(b.ready))]
}

// R7.4.3 R7.11.9 R7.10.1: access processes are replaced one after the other
// under load. No request fails, nobody is turned away for it, and everyone
// who was accepted has one order.
func TestARollingRestartLosesNothing(t *testing.T) { // R7.4.3
	w := setup(t, 20_000, 20_000)
	w.cfg.DrainDelay = time.Second
	for _, r := range []app.Role{app.RoleScanner, app.RoleConsumer, app.RoleOutbox} {
		w.start(r)
	}
	seed := byte(0)
	access := func() *process {
		seed++
		return start(t, part{Role: app.RoleAccess, Config: w.cfg, SKU: w.sku, Seed: seed})
	}
	b := &balancer{unready: make(map[*process]bool)}
	old := []*process{access(), access()}
	for _, p := range old {
		b.add(p)
	}
	stop := make(chan struct{})
	var background sync.WaitGroup
	background.Go(func() {
		for tick := time.Tick(20 * time.Millisecond); ; <-tick {
			select {
			case <-stop:
				return
			default:
				b.probe()
			}
		}
	})
	codec, err := seckill.NewTokenCodec(key)
	if err != nil {
		t.Fatal(err)
	}
	var signing sync.Mutex // the codec serves one at a time
	request := func(user int64, to *process) (*http.Request, error) {
		signing.Lock()
		token := codec.AppendSigned(nil, user, w.sku.ActivityID, time.Now().Add(time.Hour).Unix())
		signing.Unlock()
		req, err := http.NewRequest("POST", "http://"+to.Listen+"/v1/seckill/orders", strings.NewReader(
			fmt.Sprintf(`{"activity_id":%d,"sku_id":%d,"request_id":%q,"quantity":1}`, w.sku.ActivityID, w.sku.SKUID, requestOf(user))))
		if err != nil {
			return nil, err
		}
		req.GetBody = nil // no second try by the client library
		req.Header.Set("Authorization", "Bearer "+string(token))
		return req, nil
	}
	var users, requests, accepted atomic.Int64
	// buy asks until the user is accepted, as clients do: a busy machine may
	// answer RATE_LIMITED or UNAVAILABLE. A connection that breaks is a loss.
	buy := func(client *http.Client, user int64) error {
		for {
			req, err := request(user, b.pick())
			if err != nil {
				return err
			}
			requests.Add(1)
			resp, err := client.Do(req)
			if err != nil {
				return err
			}
			text, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil {
				return err
			}
			switch a, err := seckill.ParseAnswer(text); {
			case err != nil:
				return err
			case a.Code.Accepted():
				return nil
			case a.Code != seckill.CodeRateLimited && a.Code != seckill.CodeUnavailable:
				return fmt.Errorf("answer %s", text)
			case strings.Contains(a.Reason, "draining"):
				return fmt.Errorf("turned away by a drain: %s", text)
			}
		}
	}
	for range 8 {
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: 10 * time.Second}
		background.Go(func() {
			defer client.CloseIdleConnections()
			for tick := time.Tick(8 * time.Millisecond); ; <-tick {
				select {
				case <-stop:
					return
				default:
				}
				user := users.Add(1)
				if err := buy(client, user); err != nil {
					t.Errorf("user %d: %v", user, err)
					return
				}
				accepted.Add(1)
			}
		})
	}
	for _, p := range old {
		before := accepted.Load()
		eventually(t, "load", 30*time.Second, func() bool { return accepted.Load() > before+100 || t.Failed() })
		b.add(access())
		p.drain()
		if !b.seenUnready(p) {
			t.Errorf("%s ended before the balancer could see that it was not ready", p.Listen)
		}
	}
	before := accepted.Load()
	eventually(t, "load on the new ones", 30*time.Second, func() bool { return accepted.Load() > before+100 || t.Failed() })
	close(stop)
	background.Wait()
	if t.Failed() {
		return
	}
	pool := systest.Pool(t, postgres.Config{URL: w.cfg.Postgres})
	var orders int64
	eventually(t, fmt.Sprintf("%d orders", accepted.Load()), 60*time.Second, func() bool {
		if err := pool.QueryRow(t.Context(), `SELECT count(DISTINCT user_id) FROM orders`).Scan(&orders); err != nil {
			t.Fatal(err)
		}
		return orders >= accepted.Load()
	})
	if orders != accepted.Load() || accepted.Load() != users.Load() {
		t.Errorf("%d users asked, %d were accepted, %d have orders", users.Load(), accepted.Load(), orders)
	}
	t.Logf("%d users with %d requests over two replacements", users.Load(), requests.Load())
}

func (b *balancer) seenUnready(p *process) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.unready[p]
}
