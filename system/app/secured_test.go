package app_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/hotsku/hotsku/lua"
	"github.com/hotsku/hotsku/system/activity"
	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/mq/backlog"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

// secured is a sale of one unit on servers of its own that speak TLS and let
// in nobody without a password.
func secured(t *testing.T) *world {
	t.Helper()
	a := systest.NewAuthority(t)
	w := &world{t: t, cfg: app.ConfigDefault(), sku: reservation.SKU{ActivityID: 7, SKUID: 8}}
	w.cfg.Redis = reservation.Config{Addr: "rediss://" + systest.SecuredRedis(t, a), Username: systest.SecuredUser, Password: systest.SecuredPassword,
		TLS: reservation.TLS{CA: a.CA, Cert: a.Cert, Key: a.Key}}
	w.cfg.Postgres, w.cfg.PostgresPassword = systest.SecuredURL(systest.SecuredPostgres(t, a), "verify-full", a.CA, ""), systest.SecuredPassword
	names, broker := systest.SecuredRocketMQ(t, a)
	w.cfg.MQ = mq.Config{NameServer: names, AccessKey: systest.SecuredUser, SecretKey: systest.SecuredPassword, TLS: true}
	w.cfg.TokenKeys, w.cfg.Listen, w.cfg.OrdersListen = []seckill.TokenKey{key}, "127.0.0.1:0", "127.0.0.1:0"

	for what, c := range map[string]struct {
		mend func(*mq.Config)
		hint string
	}{
		"a wrong secret": {func(c *mq.Config) { c.SecretKey = "geheim2" }, "check --mq-access-key and --mq-secret-key"},
		"another key":    {func(c *mq.Config) { c.AccessKey = "nobody" }, "check --mq-access-key and --mq-secret-key"},
		"no key":         {func(c *mq.Config) { c.AccessKey, c.SecretKey = "", "" }, "give --mq-access-key and --mq-secret-key"},
		"no TLS":         {func(c *mq.Config) { c.TLS = false }, "give --mq-tls"},
	} {
		bad := w.cfg.MQ
		c.mend(&bad)
		err := mq.EnsureTopics(t.Context(), bad, broker)
		if err == nil || !strings.Contains(err.Error(), c.hint) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "geheim") {
			t.Errorf("topics with %s: %v, want one line with %q", what, err, c.hint)
		}
	}
	if err := mq.CheckTopics(t.Context(), w.cfg.MQ, seckill.TopicOrderCreate); err == nil || !strings.Contains(err.Error(), "does not know topic") {
		t.Errorf("topics were made: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := mq.EnsureTopics(ctx, w.cfg.MQ, broker); err != nil {
		t.Fatal(err)
	}
	pool := systest.Pool(t, w.cfg.Database("test"))
	if _, err := postgres.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	store, err := activity.New(pool, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	starts := time.Now().UTC().Add(-time.Minute).Truncate(time.Microsecond)
	if err := store.Create(t.Context(), activity.Params{ActivityID: 7, SKUID: 8, Stock: 1, Tokens: 1, PriceCents: 9900, StartsAt: starts, EndsAt: starts.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if w.redis, err = reservation.New(w.cfg.Redis, lua.FS); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.redis.Close() })
	if err := w.redis.Warm(t.Context(), reservation.Activity{ActivityID: 7, SKUID: 8, Stock: 1, Version: 1, StartsAt: starts, EndsAt: starts.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	return w
}

// R7.4.1 R7.4.2: every client of every role reaches servers that want TLS and
// a password; with a wrong one a role does not start, says which option to
// check, and changes nothing.
func TestRolesReachSecuredServers(t *testing.T) {
	w := secured(t)
	for what, c := range map[string]struct {
		mend func(*app.Config)
		role app.Role
		hint string
	}{
		"Redis, a wrong password":      {func(c *app.Config) { c.Redis.Password = "geheim2" }, app.RoleAccess, "--redis-password"},
		"Redis, another authority":     {func(c *app.Config) { c.Redis.TLS.CA = systest.NewAuthority(t).CA }, app.RoleScanner, "--redis-ca"},
		"PostgreSQL, a wrong password": {func(c *app.Config) { c.PostgresPassword = "geheim2" }, app.RoleConsumer, "--postgres-password"},
		"RocketMQ, a wrong secret":     {func(c *app.Config) { c.MQ.SecretKey = "geheim2" }, app.RoleAccess, "--mq-secret-key"},
		"RocketMQ, no key, a consumer": {func(c *app.Config) { c.MQ.AccessKey, c.MQ.SecretKey = "", "" }, app.RoleConsumer, "--mq-access-key"},
		"RocketMQ, no TLS":             {func(c *app.Config) { c.MQ.TLS = false }, app.RoleAccess, "--mq-tls"},
	} {
		cfg := w.cfg
		c.mend(&cfg)
		pr := launch(t, part{Role: c.role, Config: cfg, SKU: w.sku, Seed: 1})
		select {
		case <-pr.started:
			t.Errorf("%s: %s is ready", what, c.role)
			continue
		case <-pr.done:
		}
		lines := strings.Split(strings.TrimSpace(pr.logs.String()), "\n")
		if last := lines[len(lines)-1]; pr.err == nil || len(lines) != 1 || !strings.Contains(last, c.hint) || strings.Contains(pr.logs.String(), "geheim") {
			t.Errorf("%s: %v, said %q, want one line with %q", what, pr.err, pr.logs.String(), c.hint)
		}
	}
	if stock, err := w.redis.Stock(t.Context(), 7, 8); err != nil || stock != 1 {
		t.Errorf("stock %d, %v", stock, err)
	}
	all := start(t, part{Role: roleAll, Config: w.cfg, SKU: w.sku, Seed: 5, Debug: true})
	w.access, w.orders = "http://"+all.ready["access"].Listen, "http://"+all.ready["orders"].Listen
	w.ordered(300012345)
	all.projected(1)
	observer, err := backlog.New(w.cfg.MQ, seckill.TopicOrderCreate, seckill.GroupOrder, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer observer.Close()
	eventually(t, "the observer sees that all is consumed", 30*time.Second, func() bool {
		behind, err := observer.Measure(t.Context())
		return err == nil && behind.Messages == 0
	})
	all.drain()
	if strings.Contains(all.logs.String(), systest.SecuredPassword) {
		t.Error("the logs hold the password")
	}
}
