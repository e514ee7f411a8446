package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/migrations"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

func env(t *testing.T, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Fatalf("%s is not set: run `make test`", name)
	}
	return v
}

// live is real servers with a database, topics and an activity of its own.
type live struct {
	*Stores
	redis    *redis.Client
	pg       *pgx.Conn
	activity rundir.Activity
	keys     seckill.Keys
	prefix   string
}

func start(t *testing.T) *live {
	t.Helper()
	rlog.SetLogLevel("error")
	l := &live{activity: rundir.Activity{ActivityID: 1_000_000 + rand.Int64N(1<<50), SKUID: 11}, prefix: fmt.Sprintf("t%x_", rand.Uint64())}
	l.keys = seckill.KeysOf(l.activity.ActivityID, l.activity.SKUID)
	l.redis = redis.NewClient(&redis.Options{Addr: env(t, "HOTSKU_TEST_REDIS")})
	t.Cleanup(func() { l.redis.Close() })
	dsn := database(t)
	pg, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	l.pg = pg
	t.Cleanup(func() { pg.Close(context.Background()) })
	l.topics(t)
	l.Stores, err = Open(Config{Redis: env(t, "HOTSKU_TEST_REDIS"), Postgres: dsn, NameServer: env(t, "HOTSKU_TEST_NAMESRV"),
		Activities: []rundir.Activity{l.activity}, TopicPrefix: l.prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Stores.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// database makes a migrated database, dropped at the test's end.
func database(t *testing.T) string {
	t.Helper()
	base := env(t, "HOTSKU_TEST_POSTGRES")
	name := fmt.Sprintf("snapshot_test_%x", rand.Uint64())
	exec := func(dsn string, sql string) {
		conn, err := pgx.Connect(context.Background(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			t.Fatalf("%.80s: %v", sql, err)
		}
	}
	exec(base, "CREATE DATABASE "+name)
	t.Cleanup(func() { exec(base, "DROP DATABASE "+name+" WITH (FORCE)") })
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	files, err := migrations.FS.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		body, err := migrations.FS.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		up, _, _ := strings.Cut(string(body), "-- +goose Down")
		exec(u.String(), up)
	}
	return u.String()
}

// topics makes this test's topics and waits until their routes are known.
func (l *live) topics(t *testing.T) {
	t.Helper()
	a, err := admin.NewAdmin(admin.WithResolver(primitive.NewPassthroughResolver([]string{env(t, "HOTSKU_TEST_NAMESRV")})))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, name := range []string{l.prefix + seckill.TopicOrderCreate, l.prefix + seckill.TopicEvent, l.prefix + seckill.TopicExpiry, l.retryTopic(), l.deadTopic()} {
		if err := a.CreateTopic(ctx, admin.WithTopicCreate(name), admin.WithBrokerAddrCreate(env(t, "HOTSKU_TEST_BROKER")),
			admin.WithReadQueueNums(2), admin.WithWriteQueueNums(2)); err != nil {
			t.Fatal(err)
		}
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			if found, err := a.FetchPublishMessageQueues(ctx, name); err == nil && len(found) == 2 {
				break
			}
			select {
			case <-ctx.Done():
				t.Fatalf("no route for %s", name)
			case <-tick.C:
			}
		}
	}
}

func (l *live) retryTopic() string { return "%RETRY%" + l.prefix + seckill.GroupOrder }

func (l *live) deadTopic() string { return "%DLQ%" + l.prefix + seckill.GroupOrder }

// send stores the bodies in queue 1 of the topic.
func (l *live) send(t *testing.T, topic string, bodies ...string) {
	t.Helper()
	p, err := rocketmq.NewProducer(producer.WithNsResolver(primitive.NewPassthroughResolver([]string{env(t, "HOTSKU_TEST_NAMESRV")})),
		producer.WithGroupName(l.prefix+"producer"), producer.WithInstanceName(l.prefix), producer.WithQueueSelector(producer.NewManualQueueSelector()))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	defer p.Shutdown()
	queues, err := l.broker.queues(t.Context(), topic)
	if err != nil || len(queues) != 2 {
		t.Fatalf("%v %v", queues, err)
	}
	for from := 0; from < len(bodies); from += 500 {
		var batch []*primitive.Message
		for _, body := range bodies[from:min(from+500, len(bodies))] {
			m := primitive.NewMessage(topic, []byte(body)).WithKeys([]string{"key"})
			m.Queue = &primitive.MessageQueue{Topic: topic, BrokerName: queues[1].name, QueueId: 1}
			batch = append(batch, m)
		}
		if _, err := p.SendSync(t.Context(), batch...); err != nil {
			t.Fatal(err)
		}
	}
}

// consume commits an offset as a group's client would.
func (l *live) consume(t *testing.T, group, topic string, id int, offset int64) {
	t.Helper()
	const requestUpdateConsumerOffset = 15
	queues, err := l.broker.queues(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	// A broker makes a group when it first pulls.
	if _, _, err := l.broker.call(t.Context(), queues[id].addr, requestPullMessage, queues[id].fields(map[string]string{
		"consumerGroup": l.prefix + group, "queueOffset": "0", "maxMsgNums": "1", "sysFlag": strconv.Itoa(pullSubscriptionFlag), "commitOffset": "0",
		"suspendTimeoutMillis": "0", "subscription": "*", "subVersion": "0", "expressionType": "TAG"})); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.broker.call(t.Context(), queues[id].addr, requestUpdateConsumerOffset, queues[id].fields(map[string]string{
		"consumerGroup": l.prefix + group, "commitOffset": strconv.FormatInt(offset, 10)})); err != nil {
		t.Fatal(err)
	}
}

func (l *live) must(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := l.pg.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func rowsOf[T any](t *testing.T, path string) []T {
	t.Helper()
	var out []T
	for row, err := range rundir.Rows[T](path) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
	return out
}

func TestSnapshotCopiesAllThreeStores(t *testing.T) {
	l := start(t)
	ctx := t.Context()
	base, err := l.Counters(ctx)
	if err != nil {
		t.Fatal(err)
	}
	a, reservation := l.activity.ActivityID, "resv_01HZZZZZZZZZZZZZZZZZZZZZZZ"
	end := time.Now().Add(time.Hour).Truncate(time.Second)

	// Redis: every type, an expiry, a change log over more than one page, and
	// a neighbour's key that must stay out.
	l.redis.Set(ctx, l.keys.Stock(), 5, 0)
	l.redis.ExpireAt(ctx, l.keys.Stock(), end)
	l.redis.HSet(ctx, l.keys.Reservation(reservation), "reservation_id", reservation, "status", "ORDER_CREATED")
	l.redis.ZAdd(ctx, l.keys.Pending(), redis.Z{Score: 1772357400123456, Member: "resv_A"})
	for i := range 1500 {
		l.redis.Set(ctx, l.keys.User(int64(i+1)), reservation, 0)
	}
	pipe := l.redis.Pipeline()
	for i := range logPage + 5 {
		pipe.XAdd(ctx, &redis.XAddArgs{Stream: l.keys.Log(), Values: []string{"op", "reserve", "resv", reservation, "user", "1",
			"stock", strconv.Itoa(2000 - i), "at", strconv.Itoa(1_000_000 + i)}})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	neighbour := seckill.KeysOf(a+1, l.activity.SKUID).Stock()
	l.redis.Set(ctx, neighbour, 1, time.Minute)

	// PostgreSQL: a commit time later than now() inside the transaction.
	l.must(t, "INSERT INTO activity (activity_id, status, starts_at, ends_at) VALUES ($1, 'RUNNING', now(), now() + interval '1 hour')", a)
	l.must(t, "INSERT INTO sku_inventory (activity_id, sku_id, total_stock, available_stock, price_cents) VALUES ($1, 11, 5, 5, 999)", a)
	const token = int64(1)<<62 + 1 // beyond a float's precision
	l.must(t, "INSERT INTO inventory_token (token_id, activity_id, sku_id, seq) VALUES ($1, $2, 11, 1)", token, a)
	l.must(t, "INSERT INTO inventory_ledger (activity_id, sku_id, entry_type, delta) VALUES ($1, 11, 'ISSUE', 5)", a)
	l.must(t, "INSERT INTO event_outbox (event_type, aggregate_id, payload) VALUES ('ORDER_CREATED', $1, '{\"status\": \"ORDER_CREATED\"}')", reservation)
	l.must(t, "INSERT INTO dead_letter (topic, queue_id, queue_offset, message_id, reservation_id, class, reason, body) VALUES ('t', 0, 0, 'm', 'r', 'poison', 'x', 'y')")

	// Another sale in the same database stays out, all of it.
	l.must(t, "INSERT INTO activity (activity_id, status, starts_at, ends_at) VALUES (5, 'RUNNING', now(), now() + interval '1 hour')")
	l.must(t, "INSERT INTO inventory_reservation (reservation_id, message_id, activity_id, sku_id, user_id, request_id, status, order_id, reserved_at) VALUES ('resv_5', 'msg_5', 5, 1, 1, 'r5', 'ORDER_CREATED', 'ord_5', now())")
	l.must(t, "INSERT INTO orders (order_id, activity_id, sku_id, user_id, request_id, reservation_id, inventory_token_id, amount_cents, status) VALUES ('ord_5', 5, 1, 1, 'r5', 'resv_5', 5, 0, 'CREATED')")
	l.must(t, "INSERT INTO order_items (order_id, line_no, sku_id, quantity, price_cents) VALUES ('ord_5', 1, 1, 1, 0), ('ord_of_nobody', 1, 1, 1, 0)")
	l.must(t, "INSERT INTO consumer_inbox (consumer_group, message_id, topic, reservation_id) VALUES ('g', 'msg_5', 't', 'resv_5'), ('g', 'msg_of_nobody', 't', 'resv_of_nobody')")
	l.must(t, "INSERT INTO event_outbox (event_type, aggregate_id, payload, published_at) VALUES ('ORDER_CREATED', 'resv_5', '{}', now())")

	// Broker: JSON and what is none, more than one pull, one group behind.
	bodies := []string{"no json"}
	for i := range 1300 {
		bodies = append(bodies, fmt.Sprintf(`{"n":%d}`, i))
	}
	l.send(t, l.prefix+seckill.TopicOrderCreate, bodies...)
	l.consume(t, seckill.GroupOrder, l.prefix+seckill.TopicOrderCreate, 1, 1299)
	l.send(t, l.retryTopic(), `{"n":7}`) // sent back, and decided since
	l.consume(t, seckill.GroupOrder, l.retryTopic(), 1, 1)
	l.send(t, l.deadTopic(), `{"n":8}`)

	backlog, err := l.Backlog(ctx)
	if want := (Backlog{Pending: 1, Lag: 2, Outbox: 1}); err != nil || backlog != want {
		t.Errorf("backlog %+v, %v, want %+v", backlog, err, want)
	}
	dir := rundir.Dir(t.TempDir())
	if err := l.Take(ctx, dir, Quiescence{Quiescent: false, Waited: 1500 * time.Millisecond, Last: backlog}, base); err != nil {
		t.Fatal(err)
	}

	shot, err := dir.ReadSnapshot()
	if err != nil {
		t.Fatal(err)
	}
	if shot.Quiescent || shot.WaitedMS != 1500 || shot.Pending != 1 || shot.Lag != 2 || shot.Outbox != 1 || shot.WALBytes <= 0 {
		t.Errorf("%+v", shot)
	}
	for _, v := range []string{shot.Versions.Redis, shot.Versions.Postgres, shot.Versions.RocketMQ} {
		if strings.Count(v, ".") < 1 || strings.ContainsAny(v, " V_") {
			t.Errorf("versions %+v", shot.Versions)
		}
	}
	keys := map[string]rundir.RedisKey{}
	for _, k := range rowsOf[rundir.RedisKey](t, dir.RedisKeys()) {
		if _, dup := keys[k.Key]; dup {
			t.Errorf("%s twice", k.Key)
		}
		keys[k.Key] = k
	}
	want := map[string]rundir.RedisKey{
		l.keys.Stock():                  {Key: l.keys.Stock(), Type: "string", ExpireAt: end.Unix(), String: "5"},
		l.keys.Pending():                {Key: l.keys.Pending(), Type: "zset", ExpireAt: -1, ZSet: map[string]float64{"resv_A": 1772357400123456}},
		l.keys.Reservation(reservation): {Key: l.keys.Reservation(reservation), Type: "hash", ExpireAt: -1, Hash: map[string]string{"reservation_id": reservation, "status": "ORDER_CREATED"}},
	}
	for name, k := range want {
		if diff := cmp.Diff(k, keys[name]); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	if len(keys) != len(want)+1500 {
		t.Errorf("%d keys, want %d", len(keys), len(want)+1500)
	}
	log := rowsOf[rundir.LogEntry](t, dir.RedisLog())
	if len(log) != logPage+5 || log[logPage].Stock != 2000-logPage || log[0].Reservations[0] != reservation || log[0].Users[0] != 1 {
		t.Errorf("%d log entries", len(log))
	}
	tokens := rowsOf[rundir.TokenRow](t, dir.Table("inventory_token"))
	if len(tokens) != 1 || tokens[0].TokenID != token || tokens[0].OrderID != nil || tokens[0].Status != "AVAILABLE" {
		t.Errorf("%+v", tokens)
	}
	ledger := rowsOf[rundir.LedgerRow](t, dir.Table("inventory_ledger"))
	if len(ledger) != 1 || time.Since(ledger[0].CommittedAt).Abs() > time.Hour {
		t.Errorf("%+v", ledger)
	}
	for _, table := range rundir.Tables() {
		want := map[string]int{"activity": 1, "sku_inventory": 1, "inventory_token": 1, "inventory_ledger": 1, "order_items": 1,
			"consumer_inbox": 1, "event_outbox": 1, "dead_letter": 1}[table]
		if n := len(rowsOf[json.RawMessage](t, dir.Table(table))); n != want {
			t.Errorf("%s: %d rows, want %d", table, n, want)
		}
		for _, row := range rowsOf[map[string]json.RawMessage](t, dir.Table(table)) {
			if len(row) < 4 || string(row["committed_at"]) == "null" || row["committed_at"] == nil {
				t.Errorf("%s: %s", table, row)
			}
		}
	}
	messages := rowsOf[rundir.Message](t, dir.Messages())
	if len(messages) != 1303 {
		t.Fatalf("%d messages", len(messages))
	}
	for i, topic := range []string{rundir.RetryPrefix + seckill.GroupOrder, rundir.DeadLetterPrefix + seckill.GroupOrder} { // R7.4.8
		if m := messages[1301+i]; m.Topic != topic || m.Queue != 1 || m.Offset != 0 || string(m.Body) != fmt.Sprintf(`{"n":%d}`, 7+i) {
			t.Errorf("%+v", m)
		}
	}
	for i, m := range messages[:1301] {
		body := string(m.Body)
		if i == 0 {
			body = string(m.BodyBytes)
		}
		if m.Offset != int64(i) || m.Queue != 1 || m.Topic != seckill.TopicOrderCreate || m.Keys != "key" || body != bodies[i] || m.StoredAtMS == 0 {
			t.Fatalf("message %d: %+v", i, m)
		}
	}
	offsets := rowsOf[rundir.Offset](t, dir.Offsets())
	found := false
	for _, o := range offsets {
		found = found || o == rundir.Offset{Group: seckill.GroupOrder, Topic: seckill.TopicOrderCreate, Queue: 1, Min: 0, Max: 1301, Consumed: 1299}
	}
	if !found || len(offsets) != 8 {
		t.Errorf("%+v", offsets)
	}
}

// Quiescence on real servers: it comes when the last thing pending is gone.
func TestQuiesceSeesTheLastThingGo(t *testing.T) {
	l := start(t)
	ctx := t.Context()
	l.redis.ZAdd(ctx, l.keys.Pending(), redis.Z{Score: 1, Member: "resv_A"})
	l.send(t, l.prefix+seckill.TopicOrderCreate, `{"n":1}`)
	l.send(t, l.retryTopic(), `{"n":2}`) // a retry topic takes no batch
	l.send(t, l.retryTopic(), `{"n":3}`)
	l.must(t, "INSERT INTO event_outbox (event_type, aggregate_id, payload) VALUES ('ORDER_CREATED', 'x', '{}')")
	l.send(t, l.prefix+seckill.TopicExpiry, `{"n":4}`)
	l.must(t, `INSERT INTO orders (order_id, activity_id, sku_id, user_id, request_id, reservation_id, inventory_token_id, amount_cents, status, payment_due_at)
		VALUES ('ord_late', 5, 1, 1, 'r1', 'resv_1', 1, 0, 'CREATED', now()), ('ord_open', 5, 1, 2, 'r2', 'resv_2', 2, 0, 'CREATED', now() + interval '1 hour'),
			('ord_paid', 5, 1, 3, 'r3', 'resv_3', 3, 0, 'PAID', now())`)
	var seen []Backlog
	q, err := l.Quiesce(ctx, time.Now(), time.Minute, func(b Backlog) {
		seen = append(seen, b)
		switch len(seen) { // each look but one later finds one thing less
		case 1:
			l.redis.ZRem(ctx, l.keys.Pending(), "resv_A")
		case 2:
			l.consume(t, seckill.GroupOrder, l.prefix+seckill.TopicOrderCreate, 1, 1)
		case 3:
			l.consume(t, seckill.GroupOrder, l.retryTopic(), 1, 2)
		case 4:
			l.must(t, "UPDATE event_outbox SET published_at = now()")
		case 5: // a check that is due may still end an order
			l.consume(t, seckill.GroupExpiry, l.prefix+seckill.TopicExpiry, 1, 1)
		case 6:
			l.must(t, "UPDATE orders SET status = 'EXPIRED' WHERE order_id = 'ord_late'")
		}
	})
	if err != nil || !q.Quiescent || q.Last != (Backlog{}) {
		t.Fatalf("%+v, %v", q, err)
	}
	want := []Backlog{{1, 4, 1, 1}, {0, 4, 1, 1}, {0, 3, 1, 1}, {0, 1, 1, 1}, {0, 1, 0, 1}, {0, 0, 0, 1}, {}, {}, {}}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
}

// A store that is gone is a finding, not a crash, and the snapshot that then
// fails leaves no snapshot.json.
func TestAStoreThatIsGoneIsNamed(t *testing.T) {
	l := start(t)
	gone := *l.Stores
	gone.redis = redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	defer gone.redis.Close()
	q, err := gone.Quiesce(t.Context(), time.Now(), 0, nil)
	if err != nil || q.Quiescent || q.Err == nil {
		t.Errorf("%+v, %v", q, err)
	}
	dir := rundir.Dir(t.TempDir())
	if err := gone.Take(t.Context(), dir, q, Counters{}); err == nil || !strings.Contains(err.Error(), "Redis") {
		t.Errorf("%v", err)
	}
	var ev *rundir.EvidenceError
	if _, err := dir.ReadSnapshot(); !errors.As(err, &ev) {
		t.Errorf("%v", err)
	}
	l.pg = nil
}
