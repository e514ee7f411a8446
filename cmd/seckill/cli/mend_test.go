package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/lua"
	"github.com/hotsku/hotsku/system/activity"
	"github.com/hotsku/hotsku/system/dlq"
	"github.com/hotsku/hotsku/system/order"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/reconcile"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

func TestMendingByCommandLinesThatCannotBeObeyed(t *testing.T) {
	const none = " --postgres postgres://nobody@127.0.0.1:1/none"
	for line, hint := range map[string]string{
		"reconcile --dry-run":                         "belong to --once",
		"reconcile --json":                            "belong to --once",
		"reconcile --once":                            "--redis",
		"reconcile --once --lost-after 0s":            "--redis",
		"dlq surplus":                                 "--help lists the commands",
		"dlq list 1":                                  "takes no argument",
		"dlq list":                                    "--postgres",
		"dlq list --class posion" + none:              "must be one of",
		"dlq list --limit 0" + none:                   "--limit 0",
		"dlq show":                                    "takes the id of one",
		"dlq show 1 2":                                "takes the id of one",
		"dlq show first":                              `"first" is no id`,
		"dlq replay":                                  "takes ids",
		"dlq replay 0":                                `"0" is no id`,
		"dlq replay 1" + none:                         "--name-server",
		"dlq replay 1 --name-server x" + none:         "IP:port",
		"dlq set-aside 1" + none:                      "--note",
		"dlq set-aside --note x 99999999999999999999": "is no id",
	} {
		t.Run(line, func(t *testing.T) {
			code, out, errs := seckillRun(t, strings.Fields(line)...)
			if code != exitUsage || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, hint) {
				t.Errorf("code %d, printed %q and %q; want %d and one line with %q", code, out, errs, exitUsage, hint)
			}
		})
	}
}

// R7.4.8 R16.12: what the runbook tells a person to type works.
func TestDeadLettersByCommands(t *testing.T) {
	url := systest.Database(t)
	pool := systest.Pool(t, postgres.Config{URL: url})
	id := systest.ActivityID()
	processor, ids := sale(t, pool, id, 5)
	message := func(user int64) seckill.OrderCreateMessage {
		now := time.Now().UTC()
		rid := ids.NewReservationID()
		c := seckill.SubmitCommand{ActivityID: id, SKUID: 8, UserID: user, Quantity: 1}
		return seckill.OrderCreateMessage{SchemaVersion: seckill.MessageSchemaVersion, EventType: seckill.EventTypeOrderCreateRequested,
			MessageID: seckill.MessageIDOf(rid), MessageKey: rid, RequestID: "r1", ReservationID: rid, ActivityID: id, SKUID: 8, UserID: user,
			ActivityVersion: 1, ReservedAt: now, ReservationExpiresAt: now.Add(time.Minute), CreatedAt: now,
			PayloadHash: seckill.PayloadHashPrefix + c.PayloadHash()}
	}
	with := func(args ...string) *exec.Cmd {
		cmd := command(t, args...)
		cmd.Env = append(cmd.Env, "SECKILL_POSTGRES="+url)
		return cmd
	}
	done(t, with("migrate", "--broker", brokerAddr(t)))
	if out := done(t, with("dlq", "list")); !strings.Contains(out, "no dead letter") {
		t.Errorf("an empty list says %q", out)
	}
	fails(t, with("dlq", "show", "1"), 2, "no such dead letter")

	good, newer := message(1), message(2)
	newerBody := []byte(strings.Replace(encoded(t, newer), `"schema_version":1`, `"schema_version":2`, 1))
	if err := processor.Process(t.Context(), []order.Delivery{{Topic: "t", Offset: 1, Body: newerBody}, {Topic: "t", Offset: 2, Body: []byte("\x00\xff")}}); err != nil {
		t.Fatal(err)
	}
	collector, err := dlq.NewCollector(dlq.CollectorConfig{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	if err := collector.Handle(t.Context(), []dlq.Delivery{{Topic: "%DLQ%" + seckill.GroupOrder, Offset: 1, Body: []byte(encoded(t, good))}}); err != nil {
		t.Fatal(err)
	}

	var letters []dlq.Letter
	for line := range strings.Lines(done(t, with("dlq", "list", "--json"))) {
		var l dlq.Letter
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		letters = append(letters, l)
	}
	if len(letters) != 3 {
		t.Fatalf("%d letters: %+v", len(letters), letters)
	}
	of := map[dlq.Class]string{}
	for _, l := range letters {
		of[l.Class] = fmt.Sprint(l.ID)
	}
	table := done(t, with("dlq", "list", "--class", "newer_schema"))
	if !strings.Contains(table, newer.ReservationID) || strings.Count(table, "\n") != 2 {
		t.Errorf("the table is\n%s", table)
	}
	if out := done(t, with("dlq", "show", of[dlq.ClassHandedBack])); !strings.Contains(out, `"message_id": "`+good.MessageID) || !strings.Contains(out, `"state": "open"`) {
		t.Errorf("show says %s", out)
	}
	if out := done(t, with("dlq", "show", of[dlq.ClassPoison])); !strings.Contains(out, `"bytes": "AP8="`) {
		t.Errorf("show says %s", out)
	}

	if out := done(t, with("dlq", "replay", of[dlq.ClassHandedBack])); !strings.Contains(out, "sent again") {
		t.Errorf("replay says %q", out)
	}
	fails(t, with("dlq", "replay", of[dlq.ClassPoison]), 2, "this build cannot read it")
	if out := done(t, with("dlq", "set-aside", of[dlq.ClassNewerSchema], of[dlq.ClassPoison], "--note", "ticket 12")); !strings.Contains(out, newer.ReservationID+" is set aside") ||
		!strings.Contains(out, "no reservation was ended") {
		t.Errorf("set-aside says %q", out)
	}
	if out := done(t, with("dlq", "list")); strings.Count(out, "\n") != 2 || !strings.Contains(out, "replayed") {
		t.Errorf("what is left is\n%s", out)
	}
	if out := done(t, with("dlq", "list", "--all")); strings.Count(out, "settled") != 2 {
		t.Errorf("all are\n%s", out)
	}
}

// R12.5 R16.12: one round by hand says what it would do, does it, and ends
// with 1 where units are not conserved.
func TestReconcileOnceByCommand(t *testing.T) {
	url := systest.Database(t)
	pool := systest.Pool(t, postgres.Config{URL: url})
	id := systest.ActivityID()
	_, ids := sale(t, pool, id, 5)
	redis, err := reservation.New(reservation.Config{Addr: systest.Redis(t)}, lua.FS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { redis.Close() })
	forget(t, id, 8)
	now := time.Now()
	if err := redis.Warm(t.Context(), reservation.Activity{ActivityID: id, SKUID: 8, Stock: 5, Version: 1, StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	rid := ids.NewReservationID()
	c := seckill.SubmitCommand{ActivityID: id, SKUID: 8, UserID: 1, Quantity: 1}
	if _, err := redis.Reserve(t.Context(), id, 8, []reservation.Candidate{{RequestID: "r", UserID: 1, PayloadHash: c.PayloadHash(),
		ReservationID: rid, MessageID: seckill.MessageIDOf(rid)}}); err != nil {
		t.Fatal(err)
	}
	if err := redis.MarkSent(t.Context(), id, 8, []string{rid}); err != nil {
		t.Fatal(err)
	}
	once := func(args ...string) *exec.Cmd {
		cmd := command(t, append([]string{"reconcile", "--once", "--lost-after", "1ns"}, args...)...)
		cmd.Env = append(cmd.Env, "SECKILL_POSTGRES="+url)
		return cmd
	}
	migrate := command(t, "migrate", "--broker", brokerAddr(t))
	migrate.Env = append(migrate.Env, "SECKILL_POSTGRES="+url)
	done(t, migrate)
	if out := done(t, once("--dry-run")); !strings.Contains(out, "conserved") || !strings.Contains(out, "would send again 1: "+rid) {
		t.Errorf("the dry run says\n%s", out)
	}
	var reports []reconcile.Report
	if err := json.Unmarshal([]byte(done(t, once("--json"))), &reports); err != nil || len(reports) != 1 || reports[0].Repair.Resent != 1 {
		t.Errorf("%+v, %v", reports, err)
	}
	if _, err := pool.Exec(t.Context(), `DELETE FROM inventory_token WHERE seq = 0`); err != nil {
		t.Fatal(err)
	}
	cmd := once()
	out, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != exitNotConserved || !strings.Contains(string(out), "NOT CONSERVED") {
		t.Errorf("with a token deleted: %v\n%s", err, out)
	}
}

// sale makes a sale of SKU 8 in PostgreSQL only.
func sale(t *testing.T, pool *pgxpool.Pool, activityID int64, stock int) (*order.Processor, *seckill.IDGenerator) {
	t.Helper()
	store, err := activity.New(pool, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Create(t.Context(), activity.Params{ActivityID: activityID, SKUID: 8, Stock: stock, PriceCents: 1,
		StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	ids := seckill.NewIDGenerator(time.Now, [32]byte{byte(activityID), byte(activityID >> 8), byte(activityID >> 16)})
	p, err := order.New(order.Config{Pool: pool, IDs: ids, Rand: rand.New(rand.NewPCG(2, 2))})
	if err != nil {
		t.Fatal(err)
	}
	return p, ids
}

func encoded(t *testing.T, m seckill.OrderCreateMessage) string {
	t.Helper()
	body, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// forget removes a sale from Redis when the test ends.
func forget(t *testing.T, activityID, skuID int64) {
	t.Cleanup(func() { // the keys would outlive the test by a week
		ctx := context.Background()
		raw := goredis.NewClient(&goredis.Options{Addr: systest.Redis(t)})
		defer raw.Close()
		if keys, err := raw.Keys(ctx, seckill.KeysOf(activityID, skuID).Prefix()+"*").Result(); err == nil && len(keys) > 0 {
			raw.Del(ctx, keys...)
		}
		raw.SRem(ctx, seckill.ActivityIndexKey, fmt.Sprintf("%d:%d", activityID, skuID))
	})
}
