package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/lua"
	"github.com/hotsku/hotsku/system/activity"
	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

// world is a database, topics and one sale of this test's own.
type world struct {
	t      *testing.T
	cfg    app.Config
	sku    reservation.SKU
	redis  *reservation.Store
	access string // base URLs
	orders string
}

var key = seckill.TokenKey{ID: "k1", Secret: []byte("0123456789abcdef0123456789abcdef")}

func broker(t *testing.T) string {
	t.Helper()
	addr := os.Getenv("HOTSKU_TEST_BROKER")
	if addr == "" {
		t.Fatal("HOTSKU_TEST_BROKER is not set: run `make test`, or `eval \"$(bin/hotsku up --stack dev --env)\"`")
	}
	return addr
}

func setup(t *testing.T, stock, tokens int) *world {
	t.Helper()
	return setupSale(t, stock, tokens, time.Now().UTC().Add(-time.Minute))
}

// setupSale is setup of a sale that starts then, for an hour.
func setupSale(t *testing.T, stock, tokens int, starts time.Time) *world {
	t.Helper()
	w := &world{t: t, cfg: app.ConfigDefault(), sku: reservation.SKU{ActivityID: systest.ActivityID(), SKUID: 20001}}
	w.cfg.Redis.Addr = systest.Redis(t)
	w.cfg.Postgres = systest.Database(t)
	w.cfg.MQ = mq.Config{NameServer: systest.NameServer(t), TopicPrefix: fmt.Sprintf("app%08x_", rand.Uint32())}
	w.cfg.TokenKeys = []seckill.TokenKey{key}
	w.cfg.Listen, w.cfg.OrdersListen = "127.0.0.1:0", "127.0.0.1:0"
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := mq.EnsureTopics(ctx, w.cfg.MQ, broker(t)); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.redis, err = reservation.New(w.cfg.Redis, lua.FS); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the keys would outlive the test by a week
		ctx := context.Background()
		raw := goredis.NewClient(&goredis.Options{Addr: w.cfg.Redis.Addr})
		if keys, err := raw.Keys(ctx, w.keys().Prefix()+"*").Result(); err == nil && len(keys) > 0 {
			raw.Del(ctx, keys...)
		}
		raw.SRem(ctx, seckill.ActivityIndexKey, fmt.Sprintf("%d:%d", w.sku.ActivityID, w.sku.SKUID))
		raw.Close()
		w.redis.Close()
	})
	pool := systest.Pool(t, postgres.Config{URL: w.cfg.Postgres})
	store, err := activity.New(pool, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	starts = starts.Truncate(time.Microsecond)
	sale := activity.Params{ActivityID: w.sku.ActivityID, SKUID: w.sku.SKUID, Stock: stock, Tokens: tokens, PriceCents: 9900,
		StartsAt: starts, EndsAt: starts.Add(time.Hour)}
	if err := store.Create(t.Context(), sale); err != nil {
		t.Fatal(err)
	}
	if err := w.redis.Warm(t.Context(), reservation.Activity{ActivityID: sale.ActivityID, SKUID: sale.SKUID, Stock: int64(stock), Version: 1,
		StartsAt: sale.StartsAt, EndsAt: sale.EndsAt}); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) keys() seckill.Keys { return seckill.KeysOf(w.sku.ActivityID, w.sku.SKUID) }

func (w *world) start(role app.Role) *process {
	w.t.Helper()
	return start(w.t, part{Role: role, Config: w.cfg, SKU: w.sku, Seed: byte(rand.Uint32())})
}

// call sends a user's request and returns the answer.
func (w *world) call(user int64, method, url, body string) (int, seckill.Answer) {
	w.t.Helper()
	codec, err := seckill.NewTokenCodec(key)
	if err != nil {
		w.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+string(codec.AppendSigned(nil, user, w.sku.ActivityID, time.Now().Add(time.Hour).Unix())))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := seckill.ParseAnswer(text)
	if err != nil {
		w.t.Fatalf("%s %s: %d %s", method, url, resp.StatusCode, text)
	}
	return resp.StatusCode, a
}

func (w *world) buy(user int64, requestID string) (int, seckill.Answer) {
	w.t.Helper()
	return w.call(user, "POST", w.access+"/v1/seckill/orders",
		fmt.Sprintf(`{"activity_id":%d,"sku_id":%d,"request_id":%q,"quantity":1}`, w.sku.ActivityID, w.sku.SKUID, requestID))
}

// ask is what the orders role says of a request.
func (w *world) ask(user int64, requestID string) (int, seckill.Answer) {
	w.t.Helper()
	return w.call(user, "GET", fmt.Sprintf("%s/v1/seckill/requests/%s?activity_id=%d&sku_id=%d", w.orders, requestID, w.sku.ActivityID, w.sku.SKUID), "")
}

func requestOf(user int64) string { return fmt.Sprintf("req-%d", user) }

// R13.3.1-7: the whole pipeline on real servers, five roles as processes.
// Redis has six units and PostgreSQL four tokens, so that two reservations
// end as compensated rejections.
func TestTheWholePipeline(t *testing.T) { // R1.4, R1.8, R6.6a, R7.10.3, R11.6, R11.8
	const stock, tokens, orphan = 6, 4, 1
	w := setup(t, stock, tokens)
	roles := map[app.Role]*process{}
	for _, r := range []app.Role{app.RoleAccess, app.RoleConsumer, app.RoleScanner, app.RoleOutbox, app.RoleOrders} {
		roles[r] = w.start(r)
	}
	w.access, w.orders = "http://"+roles[app.RoleAccess].Listen, "http://"+roles[app.RoleOrders].Listen

	// An access process that died after the script: reserved, never sent
	// (R7.10.2). Nobody but the scanner knows of it.
	id := seckill.NewIDGenerator(time.Now, [32]byte{byte(rand.Uint32()), 1}).NewReservationID()
	cmd := seckill.SubmitCommand{ActivityID: w.sku.ActivityID, SKUID: w.sku.SKUID, UserID: orphan, RequestID: requestOf(orphan), Quantity: 1}
	if b, err := w.redis.Reserve(t.Context(), w.sku.ActivityID, w.sku.SKUID, []reservation.Candidate{{RequestID: cmd.RequestID, UserID: orphan,
		PayloadHash: cmd.PayloadHash(), ReservationID: id, MessageID: seckill.MessageIDOf(id)}}); err != nil || b.Outcomes[0].Verdict != reservation.VerdictCreated {
		t.Fatalf("%+v, %v", b, err)
	}

	// R13.3.1 R13.3.2: reservations and sends.
	reservations := map[int64]string{orphan: id}
	for user := int64(2); user <= stock; user++ {
		reservations[user] = w.bought(user, requestOf(user)).ReservationID
	}
	// R13.3.5: the same request is the same reservation; another is refused.
	for user := int64(1); user <= stock; user++ {
		if status, a := w.told(user, requestOf(user)); status != 202 || !a.Replayed || a.ReservationID != reservations[user] {
			t.Errorf("user %d repeats: %d %+v", user, status, a)
		}
	}
	if status, a := w.told(2, "another"); status != 409 || a.Code != seckill.CodeDuplicateUser || a.ReservationID != reservations[2] {
		t.Errorf("user 2 tries again: %d %+v", status, a)
	}
	if status, a := w.told(3, requestOf(2)); status != 422 || a.Code != seckill.CodeIdempotencyConflict {
		t.Errorf("user 3 with the request of user 2: %d %+v", status, a)
	}
	if status, a := w.told(99, "late"); status != 410 || a.Code != seckill.CodeSoldOut {
		t.Errorf("after the last unit: %d %+v", status, a)
	}

	// R13.3.3 R13.3.4 R13.3.7: every reservation ends, and its owner sees how.
	ends := map[string]int{}
	var ordered int64
	for user := int64(1); user <= stock; user++ {
		var a seckill.Answer
		eventually(t, fmt.Sprintf("user %d", user), 30*time.Second, func() bool {
			var status int
			if status, a = w.ask(user, requestOf(user)); status != 200 {
				t.Fatalf("user %d asks: %d %+v", user, status, a)
			}
			return a.Status == "ORDER_CREATED" || a.Status == seckill.StatusCompensated
		})
		if a.ReservationID != reservations[user] || (a.Status == "ORDER_CREATED") != (a.OrderID != "") {
			t.Errorf("user %d: %+v", user, a)
		}
		if a.OrderID != "" {
			ordered = user
			if status, o := w.call(user, "GET", w.orders+"/v1/seckill/orders/"+a.OrderID, ""); status != 200 || o.Status != "CREATED" {
				t.Errorf("order of user %d: %d %+v", user, status, o)
			}
		}
		ends[a.Status]++
		if status, _ := w.ask(user+100, requestOf(user)); status != 403 {
			t.Errorf("user %d is told of the request of user %d: %d", user+100, user, status)
		}
	}
	if ends["ORDER_CREATED"] != tokens || ends[seckill.StatusCompensated] != stock-tokens {
		t.Errorf("ends are %v, want %d orders and %d compensated", ends, tokens, stock-tokens)
	}
	if n := roles[app.RoleScanner].metric("scanner_resent_total", ""); n < 1 {
		t.Errorf("the scanner resent %v", n)
	}

	// R13.3.6: the same message again changes nothing.
	again, found, err := w.redis.LookupReservation(t.Context(), w.sku.ActivityID, w.sku.SKUID, reservations[ordered])
	if err != nil || !found {
		t.Fatalf("%v, %v", found, err)
	}
	producer, err := mq.NewProducer(w.cfg.MQ, 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	before := roles[app.RoleConsumer].metric("inbox_conflict_total", "")
	if err := producer.SendOrderCreates([]seckill.OrderCreateMessage{again.Message(time.Now())}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the inbox knows the message", 30*time.Second, func() bool {
		return roles[app.RoleConsumer].metric("inbox_conflict_total", "") > before
	})

	for _, r := range []app.Role{app.RoleAccess, app.RoleScanner, app.RoleConsumer, app.RoleOutbox, app.RoleOrders} {
		roles[r].drain()
	}
	w.conserved(stock, tokens, slices.Collect(maps.Values(reservations)))
}

// conserved checks what the stores hold in the end, by PostgreSQL's own words.
func (w *world) conserved(stock, tokens int, reservations []string) {
	w.t.Helper()
	pool := systest.Pool(w.t, postgres.Config{URL: w.cfg.Postgres})
	store, err := activity.New(pool, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		w.t.Fatal(err)
	}
	sum, err := store.Show(w.t.Context(), w.sku.ActivityID)
	if err != nil {
		w.t.Fatal(err)
	}
	sku := sum.SKUs[0]
	if sku.Orders[seckill.OrderCreated] != int64(tokens) || sku.Tokens[seckill.TokenClaimed] != int64(tokens) || sku.Tokens[seckill.TokenAvailable] != 0 ||
		sku.Reservations[seckill.StatusOrderCreated] != int64(tokens) || sku.Reservations[seckill.StatusRejectedNoFinalStock] != int64(stock-tokens) {
		text, _ := json.Marshal(sku)
		w.t.Errorf("PostgreSQL ends with %s", text)
	}
	var messages []string // R7.7.3: each under the id it was born with
	for _, r := range reservations {
		messages = append(messages, seckill.MessageIDOf(r))
	}
	var known, all int
	if err := pool.QueryRow(w.t.Context(), `SELECT count(*) FILTER (WHERE message_id = ANY($1)), count(*) FROM consumer_inbox`, messages).Scan(&known, &all); err != nil || known != stock || all != stock {
		w.t.Errorf("the inbox knows %d messages, %d of them the reservations', %v", all, known, err)
	}
	if n, err := w.redis.Stock(w.t.Context(), w.sku.ActivityID, w.sku.SKUID); err != nil || n != 0 {
		w.t.Errorf("Redis ends with stock %d, %v: a phantom unit must not come back", n, err)
	}
	if n, err := w.redis.PendingCount(w.t.Context(), w.sku.ActivityID, w.sku.SKUID); err != nil || n != 0 {
		w.t.Errorf("%d pending, %v", n, err)
	}
	var unpublished int
	if err := pool.QueryRow(w.t.Context(), `SELECT count(*) FROM event_outbox WHERE published_at IS NULL`).Scan(&unpublished); err != nil || unpublished != 0 {
		w.t.Errorf("%d events unpublished, %v", unpublished, err)
	}
}
