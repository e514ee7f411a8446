package app_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/seckill"
)

var roles = []app.Role{app.RoleAccess, app.RoleConsumer, app.RoleScanner, app.RoleOutbox, app.RoleOrders, app.RoleReconcile}

// unreachable is a configuration that is complete and leads nowhere.
func unreachable() app.Config {
	c := app.ConfigDefault()
	c.Redis.Addr, c.Postgres, c.MQ = "127.0.0.1:1", "postgres://nobody@127.0.0.1:1/none", mq.Config{NameServer: "127.0.0.1:1"}
	c.TokenKeys, c.Listen, c.OrdersListen = []seckill.TokenKey{key}, "127.0.0.1:0", "127.0.0.1:0"
	return c
}

func run(t *testing.T, c app.Config, roles ...app.Role) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return app.New(c, app.DefaultWiring(func(seckill.FaultPoint) {}), slog.New(slog.DiscardHandler), [32]byte{1},
		func(r seckill.Ready) { t.Errorf("ready: %+v", r) }).Run(ctx, roles...)
}

// What is wrong with a configuration is ErrConfig in one line, whatever the
// servers are like: nothing was started.
func TestConfigurationsThatAreNone(t *testing.T) {
	all := roles
	for rule, c := range map[string]struct {
		mend  func(*app.Config)
		roles []app.Role
		hint  string
	}{
		"no Redis":               {func(c *app.Config) { c.Redis.Addr = "" }, []app.Role{"access", "scanner", "outbox", "orders", "reconcile"}, "--redis"},
		"Redis without a port":   {func(c *app.Config) { c.Redis.Addr = "localhost" }, []app.Role{"access", "scanner", "outbox", "orders"}, "host:port"},
		"no PostgreSQL":          {func(c *app.Config) { c.Postgres = "" }, []app.Role{"consumer", "scanner", "outbox", "orders", "reconcile"}, "--postgres"},
		"no RocketMQ":            {func(c *app.Config) { c.MQ.NameServer = "" }, []app.Role{"access", "consumer", "scanner", "outbox", "reconcile"}, "--name-server"},
		"RocketMQ by host name":  {func(c *app.Config) { c.MQ.NameServer = "localhost:9876" }, []app.Role{"access", "consumer", "scanner", "outbox"}, "IP:port"},
		"no token key":           {func(c *app.Config) { c.TokenKeys = nil }, []app.Role{"access", "orders"}, "--token-key"},
		"no address to serve on": {func(c *app.Config) { c.Listen, c.OrdersListen = "8080", "8081" }, []app.Role{"access", "orders"}, "host:port"},
		"an open admin address":  {func(c *app.Config) { c.Admin = "0.0.0.0:9090" }, all, "loopback"},
		"no drain":               {func(c *app.Config) { c.Drain = 0 }, all, "drain"},
		"a drain without end":    {func(c *app.Config) { c.Drain = time.Hour }, all, "10m"},
		"no worker":              {func(c *app.Config) { c.Consumer.Workers = 0 }, []app.Role{"consumer", "outbox"}, "workers"},
		"a batch of nothing":     {func(c *app.Config) { c.Consumer.Batch = 0 }, []app.Role{"consumer", "outbox"}, "batch"},
		"no place in flight":     {func(c *app.Config) { c.Submit.InFlight = 0 }, []app.Role{"access"}, "in-flight"},
		"a breaker without time": {func(c *app.Config) { c.Breaker.Window = 0 }, []app.Role{"access"}, "window"},
		"valves read never":      {func(c *app.Config) { c.Valves.Poll = 0 }, []app.Role{"access"}, "poll"},
		"a lag limit of nothing": {func(c *app.Config) { c.Valves.Limits.Lag = 0 }, []app.Role{"access"}, "lag limit"},
		"rounds without a pause": {func(c *app.Config) { c.Reconcile.Every = 0 }, []app.Role{"reconcile"}, "every"},
		"replays without end":    {func(c *app.Config) { c.DeadLetters.Tries = 99 }, []app.Role{"reconcile"}, "tries"},
		"a scanner without poll": {func(c *app.Config) { c.Scanner.Poll = 0 }, []app.Role{"scanner"}, "poll"},
	} {
		for _, role := range c.roles {
			t.Run(rule+", "+string(role), func(t *testing.T) {
				cfg := unreachable()
				c.mend(&cfg)
				err := run(t, cfg, role)
				if !errors.Is(err, app.ErrConfig) || !strings.Contains(err.Error(), c.hint) || strings.Contains(err.Error(), "\n") {
					t.Errorf("error is %v, want ErrConfig in one line with %q", err, c.hint)
				}
			})
		}
	}
	if err := run(t, unreachable(), "cashier"); !errors.Is(err, app.ErrConfig) {
		t.Errorf("a role that is none: %v", err)
	}
	bad := unreachable()
	bad.Postgres = "nonsense"
	if err := run(t, bad, app.RoleConsumer); !errors.Is(err, app.ErrConfig) {
		t.Errorf("PostgreSQL by nonsense: %v", err)
	}
}

// R7.4.1: a role without its servers does not start, and says which it lacks.
func TestServersThatAreNotThere(t *testing.T) {
	for _, role := range roles {
		t.Run(string(role), func(t *testing.T) {
			t.Parallel()
			err := run(t, unreachable(), role)
			if err == nil || errors.Is(err, app.ErrConfig) || !strings.Contains(err.Error(), "127.0.0.1:1") {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestAnAdminPortInUse(t *testing.T) {
	ln := occupy(t)
	cfg := unreachable()
	cfg.Admin = ln
	if err := run(t, cfg, app.RoleScanner); err == nil || errors.Is(err, app.ErrConfig) || !strings.Contains(err.Error(), "--admin") {
		t.Errorf("error is %v", err)
	}
}

func occupy(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln.Addr().String()
}

func TestTokenKeys(t *testing.T) {
	k, err := app.ParseTokenKey("k1:00112233445566778899aabbccddeeff")
	if err != nil || k.ID != "k1" || len(k.Secret) != 16 || k.Secret[1] != 0x11 {
		t.Errorf("got %+v, %v", k, err)
	}
	for _, text := range []string{"", "k1", "k1:", ":0011", "k1:xyz", "k1:0011", "k.1:00112233445566778899aabbccddeeff"} {
		if k, err := app.ParseTokenKey(text); err == nil || strings.Contains(err.Error(), "00112233") {
			t.Errorf("%q is %+v, %v: want an error without the secret", text, k, err)
		}
	}
}

// A role is ready only with its servers, listens, tells readiness from
// health, and leaves its port when it is told to end.
func TestARolesLife(t *testing.T) {
	w := setup(t, 1, 1)
	access := w.start(app.RoleAccess)
	for path, want := range map[string]string{"/readyz": "ready\n", "/healthz": "ok\n"} {
		resp, err := http.Get("http://" + access.Admin + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != want {
			t.Errorf("%s says %q", path, body)
		}
	}
	if access.Role != "access" || access.PID != access.cmd.Process.Pid || access.Listen == "" {
		t.Errorf("ready line is %+v", access.Ready)
	}
	busy := w.cfg
	busy.OrdersListen = access.Listen
	if err := run(t, busy, app.RoleOrders); err == nil || errors.Is(err, app.ErrConfig) || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("a port in use: %v", err)
	}
	access.drain()
	ln, err := net.Listen("tcp", access.Listen)
	if err != nil {
		t.Fatalf("the port is still taken: %v", err)
	}
	ln.Close()
}
