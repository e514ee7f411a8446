package app_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

// payments is a sale whose orders must be paid within seconds, with the
// roles an order needs. The sweeper looks away: only the broker's delayed
// message reminds of an order.
func payments(t *testing.T, stock int, policy string, roles ...app.Role) (*world, *pgxpool.Pool, map[app.Role]*process) {
	t.Helper()
	w := setup(t, stock, stock)
	w.cfg.Payment.Window = 8 * time.Second // two users must have ended their orders in it
	w.cfg.Payment.Sweeper.Grace = time.Hour
	pool := systest.Pool(t, postgres.Config{URL: w.cfg.Postgres})
	if _, err := pool.Exec(t.Context(), `UPDATE activity SET resale_policy = $1`, policy); err != nil {
		t.Fatal(err)
	}
	running := map[app.Role]*process{}
	for _, r := range roles {
		running[r] = w.start(r)
	}
	w.access, w.orders = "http://"+running[app.RoleAccess].Listen, "http://"+running[app.RoleOrders].Listen
	return w, pool, running
}

// told buys as a client does: an answer that decides nothing, as a busy
// machine gives, is followed by the same request.
func (w *world) told(user int64, requestID string) (status int, a seckill.Answer) {
	w.t.Helper()
	eventually(w.t, fmt.Sprintf("user %d is told", user), 30*time.Second, func() bool {
		status, a = w.buy(user, requestID)
		return a.Code != seckill.CodeUnavailable && a.Code != seckill.CodeRateLimited
	})
	return status, a
}

// bought buys what is to be had.
func (w *world) bought(user int64, requestID string) seckill.Answer {
	w.t.Helper()
	status, a := w.told(user, requestID)
	if status != 202 || !a.Code.Accepted() || a.ReservationID == "" {
		w.t.Fatalf("user %d: %d %+v", user, status, a)
	}
	return a
}

// ordered buys and waits for the order's id.
func (w *world) ordered(user int64) string {
	w.t.Helper()
	w.bought(user, requestOf(user))
	return w.await(user, "ORDER_CREATED").OrderID
}

// await waits until the user is shown the status.
func (w *world) await(user int64, want string) (a seckill.Answer) {
	w.t.Helper()
	eventually(w.t, fmt.Sprintf("user %d is shown %s", user, want), 30*time.Second, func() bool {
		_, a = w.ask(user, requestOf(user))
		return a.Status == want
	})
	return a
}

func (w *world) end(user int64, orderID, how string) (int, seckill.Answer) {
	w.t.Helper()
	return w.call(user, "POST", w.orders+"/v1/seckill/orders/"+orderID+"/"+how, "")
}

func (w *world) orderStatus(user int64, orderID string) string {
	w.t.Helper()
	_, a := w.call(user, "GET", w.orders+"/v1/seckill/orders/"+orderID, "")
	return a.Status
}

// The life of orders over HTTP, on real servers: one is paid, one cancelled,
// one expires by its delayed message, and the units of the last two are sold
// again.
func TestOrdersArePaidCancelledOrExpireAndTheirUnitsAreSoldAgain(t *testing.T) { // R6.7b R1.8
	w, pool, roles := payments(t, 3, "resell", app.RoleConsumer, app.RoleOutbox, app.RoleOrders, app.RoleAccess)
	paid := w.ordered(1)
	if status, a := w.end(1, paid, "pay"); status != 200 || a.Status != "PAID" || a.Replayed {
		t.Fatalf("pay: %d %+v", status, a)
	}
	cancelled := w.ordered(2)
	if status, a := w.end(2, cancelled, "cancel"); status != 200 || a.Status != "CANCELLED" {
		t.Fatalf("cancel: %d %+v", status, a)
	}
	expired := w.ordered(3)
	w.await(2, seckill.StatusCompensated)
	w.await(3, seckill.StatusCompensated)
	for user, order := range map[int64][2]string{1: {paid, "PAID"}, 2: {cancelled, "CANCELLED"}, 3: {expired, "EXPIRED"}} {
		if got := w.orderStatus(user, order[0]); got != order[1] {
			t.Errorf("order of user %d is %s, want %s", user, got, order[1])
		}
	}
	if status, a := w.end(3, expired, "pay"); status != 409 || a.Code != seckill.CodeOrderEnded || a.Status != "EXPIRED" {
		t.Errorf("pay after expiry: %d %+v", status, a)
	}
	if n := roles[app.RoleConsumer].metric("order_expired_total", ""); n != 1 {
		t.Errorf("%v orders expired in the consumer", n)
	}
	if n := roles[app.RoleConsumer].metric("expiry_swept_total", ""); n != 0 {
		t.Errorf("the sweeper expired %v orders", n)
	}
	// Their users hold what they held: no second try. Two others may buy.
	if status, a := w.told(2, "another"); status != 409 || a.Code != seckill.CodeDuplicateUser {
		t.Errorf("user 2 tries again: %d %+v", status, a)
	}
	for user := int64(4); user <= 5; user++ {
		if status, a := w.end(user, w.ordered(user), "pay"); status != 200 || a.Status != "PAID" {
			t.Errorf("user %d pays a returned unit: %d %+v", user, status, a)
		}
	}
	eventually(t, "sold out again", 10*time.Second, func() bool {
		_, a := w.buy(6, "late") // until then it may be answered as a returned unit that waits
		return a.Code == seckill.CodeSoldOut
	})
	var books string
	if err := pool.QueryRow(t.Context(), `SELECT
		(SELECT string_agg(status, ',') FROM inventory_token) || ' ' ||
		(SELECT string_agg(entry_type || n::text, ',' ORDER BY entry_type) FROM (SELECT entry_type, count(*) n FROM inventory_ledger GROUP BY 1) l)`).Scan(&books); err != nil ||
		books != "SOLD,SOLD,SOLD CANCEL1,EXPIRE1,ISSUE1,PAY3,SALE5" {
		t.Errorf("the books are %q, %v", books, err)
	}
}

// Checks that are lost with the broker's topic are no loss: the sweeper
// finds their orders. Two consumers share the work, and one is killed. R6.7b
func TestTheSweeperExpiresWhatNoMessageRemindedOf(t *testing.T) {
	w, pool, roles := payments(t, 20, "retire", app.RoleOutbox, app.RoleOrders, app.RoleAccess)
	w.cfg.Payment.Sweeper.Grace = 200 * time.Millisecond
	w.cfg.Payment.Sweeper.Every = 50 * time.Millisecond
	w.cfg.Payment.Sweeper.Lease = 2 * time.Second
	w.cfg.Payment.Window = 15 * time.Minute // the messages come then
	first, second := w.start(app.RoleConsumer), w.start(app.RoleConsumer)
	for user := int64(1); user <= 20; user++ {
		w.ordered(user)
	}
	if _, err := pool.Exec(t.Context(), `UPDATE orders SET payment_due_at = now()`); err != nil {
		t.Fatal(err)
	}
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for user := int64(1); user <= 20; user++ {
		w.await(user, seckill.StatusCompensated)
	}
	var released, stock int64
	if err := pool.QueryRow(context.Background(), `SELECT count(*) FROM inventory_token WHERE status = 'RELEASED'`).Scan(&released); err != nil || released != 20 {
		t.Errorf("%d tokens retired, %v", released, err)
	}
	if stock, _ = w.redis.Stock(t.Context(), w.sku.ActivityID, w.sku.SKUID); stock != 0 {
		t.Errorf("Redis offers %d retired units", stock)
	}
	if n := roles[app.RoleOutbox].metric("expiry_scheduled_total", ""); n < 20 {
		t.Errorf("checks of %v orders were scheduled", n)
	}
	second.drain()
	if strings.Contains(second.logs.String(), "panic") {
		t.Error("the consumer panicked")
	}
}
