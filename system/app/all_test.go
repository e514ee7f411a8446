package app_test

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hotsku/hotsku/system/app"
)

// One small machine: every role in one process, on one admin address, each
// with metrics of its own; a sale goes all the way through, and SIGTERM ends
// them all.
func TestAllRolesInOneProcess(t *testing.T) {
	w := setup(t, 3, 2)
	w.cfg.OrdersListen = "127.0.0.1:0"
	all := w.start(roleAll)
	access, orders := all.ready[app.RoleAccess], all.ready[app.RoleOrders]
	if len(all.ready) != len(app.Roles()) || access.Admin != orders.Admin || access.Listen == orders.Listen {
		t.Fatalf("ready lines: %+v", all.ready)
	}
	if status := readiness(t, all.Admin); status != http.StatusOK {
		t.Errorf("/readyz is %d", status)
	}
	w.access, w.orders = "http://"+access.Listen, "http://"+orders.Listen
	ends := map[string]int{}
	for user := int64(1); user <= 3; user++ {
		w.bought(user, requestOf(user))
	}
	for user := int64(1); user <= 3; user++ {
		eventually(t, "an end", 30*time.Second, func() bool {
			_, a := w.ask(user, requestOf(user))
			if a.Status == "ORDER_CREATED" || a.Status == "COMPENSATED" {
				ends[a.Status]++
				return true
			}
			return false
		})
	}
	if ends["ORDER_CREATED"] != 2 || ends["COMPENSATED"] != 1 {
		t.Errorf("ends are %v", ends)
	}
	if n := all.metric("order_created_total", `role="consumer"`); n != 2 {
		t.Errorf("the consumer counts %v orders", n)
	}
	all.metric("seckill_requests_total", `role="access"`)
	all.metric("go_goroutines", `role="all"`)
	all.drain()
	for _, addr := range []string{access.Listen, orders.Listen, all.Admin} {
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			t.Errorf("%s is still taken: %v", addr, err)
			continue
		}
		ln.Close()
	}
}

// A role that cannot start takes the others with it, and is named.
func TestAllEndWithOne(t *testing.T) {
	w := setup(t, 1, 1)
	cfg := w.cfg
	cfg.OrdersListen = occupy(t)
	p := launch(t, part{Role: roleAll, Config: cfg, SKU: w.sku, Seed: 1})
	select {
	case <-p.done:
	case <-time.After(30 * time.Second):
		t.Fatal("still running")
	}
	if p.err == nil || !strings.Contains(p.logs.String(), "orders: listen on "+cfg.OrdersListen) {
		t.Errorf("ended by %v, saying\n%s", p.err, p.logs)
	}
}

// The role that failed first is named, and nobody else: what the others say
// of being cut short would hide it.
func TestAllSayOneCause(t *testing.T) {
	err := run(t, unreachable(), app.Roles()...)
	if err == nil || strings.Contains(err.Error(), "\n") {
		t.Fatalf("error is %v, want one line", err)
	}
	named := 0
	for _, role := range app.Roles() {
		named += strings.Count(err.Error(), string(role)+": ")
	}
	if named != 1 {
		t.Errorf("%d roles are named, want the one that failed first: %v", named, err)
	}
}

// What one of them lacks is known before any is started.
func TestAllAreJudgedBeforeOneStarts(t *testing.T) {
	cfg := unreachable()
	cfg.OrdersListen = "8081"
	if err := cfg.Validate(app.Roles()...); !errors.Is(err, app.ErrConfig) || !strings.Contains(err.Error(), "8081") {
		t.Errorf("error is %v", err)
	}
	if err := cfg.Validate(app.RoleAccess); err != nil {
		t.Errorf("access alone: %v", err)
	}
	if err := cfg.Validate(); !errors.Is(err, app.ErrConfig) {
		t.Errorf("no role: %v", err)
	}
}

func readiness(t *testing.T, admin string) int {
	t.Helper()
	resp, err := http.Get("http://" + admin + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}
