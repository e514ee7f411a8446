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

	goredis "github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/system/activity"
	"github.com/hotsku/hotsku/system/admission"
	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

// buyer is one user who wants one unit, asks by the request ids a and b, and
// remembers all he was told.
type buyer struct {
	user               int64
	a, b               string
	mu                 sync.Mutex
	seen               []observation
	reservation, order string
	held               string // the request id of the reservation
}

// crowd is clients that retry for buyers, whatever they are told, at whatever
// processes there are.
type crowd struct {
	*world
	client *http.Client
	began  time.Time
	limit  atomic.Int64 // of buyers

	mu     sync.Mutex
	access []*process
	orders []*process
	buyers []*buyer
	codes  map[seckill.Code]int
}

func newCrowd(w *world) *crowd {
	return &crowd{world: w, began: time.Now(), codes: map[seckill.Code]int{},
		client: &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
}

// somebody draws a buyer: a new one, one of the latest, or any.
func (c *crowd) somebody(rng *rand.Rand) *buyer {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.buyers)
	if n == 0 || int64(n) < c.limit.Load() && rng.IntN(8) == 0 {
		user := int64(n + 1)
		c.buyers = append(c.buyers, &buyer{user: user, a: fmt.Sprintf("a-%d", user), b: fmt.Sprintf("b-%d", user)})
		return c.buyers[n]
	}
	if rng.IntN(2) == 0 {
		return c.buyers[max(0, n-20)+rng.IntN(min(n, 20))]
	}
	return c.buyers[rng.IntN(n)]
}

// step does one thing for one buyer.
func (c *crowd) step(rng *rand.Rand) {
	u := c.somebody(rng)
	u.mu.Lock()
	reservation, order, held := u.reservation, u.order, u.held
	u.mu.Unlock()
	switch roll := rng.IntN(100); {
	case roll < 12 && reservation != "":
		c.do(u, askReservation, reservation, observation{})
	case roll < 20 && order != "":
		c.do(u, askOrder, order, observation{})
	case roll < 23 && order != "":
		c.do(u, askPay, order, observation{})
	case roll < 26 && order != "":
		c.do(u, askCancel, order, observation{})
	case roll < 28 && held != "":
		c.do(u, []question{askBuy, askRequest}[rng.IntN(2)], held, observation{stranger: true})
	case roll < 30 && reservation != "":
		c.do(u, askReservation, reservation, observation{stranger: true})
	case roll < 33:
		c.do(u, []question{askBuy, askRequest}[rng.IntN(2)], u.a, observation{badToken: true})
	case roll < 41:
		c.do(u, askBuy, u.b, observation{})
	case roll < 60:
		c.do(u, askRequest, []string{u.a, u.a, u.b}[rng.IntN(3)], observation{})
	default:
		c.do(u, askBuy, u.a, observation{})
	}
}

// do asks once and remembers the answer.
func (c *crowd) do(u *buyer, ask question, about string, o observation) observation {
	o.ask, o.about = ask, about
	c.mu.Lock()
	at := c.orders
	if ask == askBuy {
		at = c.access
	}
	base := "http://" + at[rand.IntN(len(at))].Listen + "/v1/seckill/"
	c.mu.Unlock()
	user, method, body := u.user, http.MethodGet, ""
	if o.stranger {
		user += 1 << 40
	}
	sku := fmt.Sprintf("?activity_id=%d&sku_id=%d", c.sku.ActivityID, c.sku.SKUID)
	url := map[question]string{askBuy: "orders", askRequest: "requests/" + about + sku, askReservation: "reservations/" + about + sku,
		askOrder: "orders/" + about, askPay: "orders/" + about + "/pay", askCancel: "orders/" + about + "/cancel"}[ask]
	switch ask {
	case askBuy:
		method, body = http.MethodPost, fmt.Sprintf(`{"activity_id":%d,"sku_id":%d,"request_id":%q,"quantity":1}`, c.sku.ActivityID, c.sku.SKUID, about)
	case askPay, askCancel:
		method = http.MethodPost
	}
	o.sent = int64(time.Since(c.began))
	o.status, o.answer = c.send(user, method, base+url, body, o.badToken)
	o.done = int64(time.Since(c.began))
	u.mu.Lock()
	u.seen = append(u.seen, o)
	if !o.stranger && !o.ofOrder() && o.says() != saysNothing {
		if o.answer.ReservationID != "" && o.says() != saysNever {
			u.reservation = o.answer.ReservationID
		}
		if o.ask == askBuy && o.answer.Code.Accepted() {
			u.held = about
		}
		if o.answer.OrderID != "" {
			u.order = o.answer.OrderID
		}
	}
	u.mu.Unlock()
	c.mu.Lock()
	c.codes[o.answer.Code]++
	c.mu.Unlock()
	return o
}

// send asks once. No answer is none: the process may have died.
func (c *crowd) send(user int64, method, url, body string, badToken bool) (int, seckill.Answer) {
	codec, err := seckill.NewTokenCodec(key)
	if err != nil {
		c.t.Error(err)
	}
	ends := time.Now().Add(time.Hour)
	if badToken {
		ends = time.Now().Add(-time.Hour)
	}
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		c.t.Error(err)
		return 0, seckill.Answer{}
	}
	req.GetBody = nil // the client library must not repeat it
	req.Header.Set("Authorization", "Bearer "+string(codec.AppendSigned(nil, user, c.sku.ActivityID, ends.Unix())))
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, seckill.Answer{}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, seckill.Answer{}
	}
	a, err := seckill.ParseAnswer(text)
	if err != nil {
		c.t.Errorf("%s %s: %d %s", method, url, resp.StatusCode, text)
	}
	return resp.StatusCode, a
}

// until waits for answers with a code beyond those there are.
func (c *crowd) until(what string, codes ...seckill.Code) {
	c.t.Helper()
	count := func() (n int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, code := range codes {
			n += c.codes[code]
		}
		return n
	}
	before := count()
	eventually(c.t, what, 60*time.Second, func() bool { return count() >= before+3 })
	c.t.Logf("%v: %s", time.Since(c.began).Round(time.Millisecond), what)
}

// serve adds a process that clients may ask.
func (c *crowd) serve(list *[]*process, role app.Role) {
	c.t.Helper()
	p := c.start(role)
	c.mu.Lock()
	defer c.mu.Unlock()
	*list = append(*list, p)
}

// lose kills the first process of a list under its clients' hands, who stop
// asking it once they have met that.
func (c *crowd) lose(list *[]*process) {
	c.t.Helper()
	c.mu.Lock()
	p := (*list)[0]
	c.mu.Unlock()
	p.killed()
	c.until("nobody at "+p.Listen, seckill.CodeNone)
	c.mu.Lock()
	*list = (*list)[1:]
	c.mu.Unlock()
}

// resolve asks for a buyer until he knows where he stands, as a patient user
// does.
func (c *crowd) resolve(u *buyer) {
	c.t.Helper()
	defer func() {
		if c.t.Failed() {
			for _, o := range u.seen[max(0, len(u.seen)-40):] {
				c.t.Logf("user %d was told %s", u.user, &o)
			}
		}
	}()
	eventually(c.t, fmt.Sprintf("user %d knows", u.user), 60*time.Second, func() bool {
		switch o := c.do(u, askBuy, u.a, observation{}); o.says() {
		case saysNothing:
			return false
		case saysRefused:
			return true
		}
		o := c.do(u, askReservation, u.reservation, observation{})
		end := o.says()
		return end >= saysOrdered && end < saysNever
	})
}

// R15.11 R7.9.1 R7.9.2 R7.9.3 R16.11: clients ask again after every kind of answer,
// before, during and after the loss of each store and each kind of process.
// Nobody is ever told two things that cannot both be true, and everybody who
// was accepted gets to know how it ended.
func TestWhoeverRetriesIsNeverContradicted(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	stores := ownServers(t)
	const stock, tokens = 220, 216
	w := setupSale(t, stock, tokens, time.Now().UTC().Add(10*time.Minute))
	w.cfg.Valves.Limits.DatabaseDown = 3 * time.Second
	w.cfg.Scanner.Backoff.Max = 2 * time.Second
	w.cfg.Access.Limits.User = admission.Limit{PerSecond: 5, Burst: 8}
	c := newCrowd(w)
	consumer := w.start(app.RoleConsumer)
	outbox := w.start(app.RoleOutbox)
	scanner := w.start(app.RoleScanner)
	for range 2 {
		c.serve(&c.access, app.RoleAccess)
		c.serve(&c.orders, app.RoleOrders)
	}
	c.limit.Store(120)
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for i := range 6 {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		clients.Go(func() {
			for tick := time.Tick(10 * time.Millisecond); ; <-tick {
				select {
				case <-stop:
					return
				default:
					c.step(rng)
				}
			}
		})
	}
	stopClients := sync.OnceFunc(func() { close(stop); clients.Wait(); c.client.CloseIdleConnections() })
	defer stopClients()

	c.until("before the start", seckill.CodeActivityInvalid)
	c.openSale()
	c.until("the sale is open", seckill.CodeQueued)
	c.until("orders are there", seckill.CodeFound)
	c.lose(&c.access)
	c.serve(&c.access, app.RoleAccess)
	stores.kill("redis")
	c.until("without Redis", seckill.CodeUnavailable)
	c.until("the query asks PostgreSQL", seckill.CodeFound)
	stores.restart()
	c.until("Redis is back", seckill.CodeQueued)
	c.limit.Add(40)
	stores.kill("broker")
	c.until("the broker is gone", seckill.CodeQueuedPending)
	scanner.killed()
	stores.restart() // no role starts without its stores
	w.start(app.RoleScanner)
	c.until("the broker is back", seckill.CodeFound)
	c.limit.Add(40)
	consumer.killed()
	stores.kill("postgres")
	c.until("nothing is decided", seckill.CodeProcessing)
	c.lose(&c.orders)
	stores.restart()
	c.serve(&c.orders, app.RoleOrders)
	w.start(app.RoleConsumer)
	outbox.killed()
	w.start(app.RoleOutbox)
	c.until("PostgreSQL is back", seckill.CodeFound)
	c.limit.Store(stock + 80)
	c.until("sold out", seckill.CodeSoldOut)
	stopClients()

	for _, u := range c.buyers {
		c.resolve(u)
	}
	c.closeSale()
	for _, u := range c.buyers {
		for _, ask := range []question{askRequest, askBuy} {
			c.do(u, ask, u.a, observation{})
		}
	}
	ordered := 0
	for _, u := range c.buyers {
		if broken := contradictions(u.seen); len(broken) > 0 {
			t.Errorf("user %d:\n%s", u.user, told(broken))
		}
		if u.order != "" {
			ordered++
		}
	}
	var orders int
	if err := systest.Pool(t, postgres.Config{URL: w.cfg.Postgres}).QueryRow(t.Context(), `SELECT count(*) FROM orders`).Scan(&orders); err != nil || orders != ordered {
		t.Errorf("%d orders, and %d users were told of one, %v", orders, ordered, err)
	}
	t.Logf("%d users, answers %v", len(c.buyers), c.codes)
	for _, code := range []seckill.Code{seckill.CodeQueued, seckill.CodeQueuedPending, seckill.CodeSoldOut, seckill.CodeDuplicateUser,
		seckill.CodeIdempotencyConflict, seckill.CodeActivityInvalid, seckill.CodeRateLimited, seckill.CodeUnauthenticated, seckill.CodeForbidden,
		seckill.CodeUnavailable, seckill.CodeProcessing, seckill.CodeNotAccepted, seckill.CodeFound, seckill.CodeOrderEnded} {
		if c.codes[code] == 0 {
			t.Errorf("nobody was answered %s: nothing is proved of what follows it", code)
		}
	}
}

// openSale has the sale start now.
func (c *crowd) openSale() {
	c.t.Helper()
	starts := time.Now().UTC().Truncate(time.Microsecond)
	if _, err := systest.Pool(c.t, postgres.Config{URL: c.cfg.Postgres}).Exec(c.t.Context(), `UPDATE activity SET starts_at = $1`, starts); err != nil {
		c.t.Fatal(err)
	}
	raw := goredis.NewClient(&goredis.Options{Addr: c.cfg.Redis.Addr})
	defer raw.Close()
	if err := raw.HSet(c.t.Context(), c.keys().Meta(), "starts_at", starts.UnixMicro()).Err(); err != nil {
		c.t.Fatal(err)
	}
}

// closeSale ends the sale so long ago that it is settled.
func (c *crowd) closeSale() {
	c.t.Helper()
	if err := c.redis.SetStatus(c.t.Context(), c.sku.ActivityID, c.sku.SKUID, seckill.ActivityClosed); err != nil {
		c.t.Fatal(err)
	}
	pool := systest.Pool(c.t, postgres.Config{URL: c.cfg.Postgres})
	store, err := activity.New(pool, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		c.t.Fatal(err)
	}
	if err := store.Close(c.t.Context(), c.sku.ActivityID); err != nil {
		c.t.Fatal(err)
	}
	if _, err := pool.Exec(c.t.Context(), `UPDATE activity SET updated_at = now() - interval '1 hour'`); err != nil {
		c.t.Fatal(err)
	}
}
