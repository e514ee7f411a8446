package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/system/activity"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

func brokerAddr(t *testing.T) string {
	t.Helper()
	addr := os.Getenv("HOTSKU_TEST_BROKER")
	if addr == "" {
		t.Fatal("HOTSKU_TEST_BROKER is not set: run `make test`, or `eval \"$(bin/hotsku up --stack dev --env)\"`")
	}
	return addr
}

// placed sends an order as a client does: UNAVAILABLE and RATE_LIMITED, as a
// busy machine answers, decide nothing and are followed by the same request.
func placed(t *testing.T, url, token, body string) (status int, answer []byte) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer, err = io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if status = resp.StatusCode; status != http.StatusServiceUnavailable && status != http.StatusTooManyRequests || time.Now().After(deadline) {
			return status, answer
		}
	}
}

// A sale is prepared by commands alone, sold from over HTTP with a minted
// token, shown and closed.
func TestASaleByCommands(t *testing.T) {
	db := "SECKILL_POSTGRES=" + systest.Database(t)
	id := systest.ActivityID()
	act := fmt.Sprint(id)
	t.Cleanup(func() { // the keys would outlive the test by a week
		ctx := context.Background()
		raw := goredis.NewClient(&goredis.Options{Addr: systest.Redis(t)})
		if keys, err := raw.Keys(ctx, seckill.KeysOf(id, 8).Prefix()+"*").Result(); err == nil && len(keys) > 0 {
			raw.Del(ctx, keys...)
		}
		raw.SRem(ctx, seckill.ActivityIndexKey, act+":8")
		raw.Close()
	})
	with := func(args ...string) *exec.Cmd {
		cmd := command(t, args...)
		cmd.Env = append(cmd.Env, db)
		return cmd
	}
	for range 2 { // running it again changes nothing
		if out := done(t, with("migrate", "--broker", brokerAddr(t))); !strings.Contains(out, "0 migrations applied") || !strings.Contains(out, "topics: ready") {
			t.Errorf("migrate says %q", out)
		}
	}
	create := []string{"activity", "create", "--activity", act, "--sku", "8", "--stock", "2", "--price-cents", "9900", "--for", "1h"}
	if out := done(t, with(create...)); !strings.Contains(out, "2 units on sale") {
		t.Errorf("create says %q", out)
	}
	for _, again := range [][]string{create, {"activity", "create", "--warm-only", "--activity", act, "--sku", "8"}} {
		fails(t, with(again...), 2, "")
	}

	access := with("access", "--listen", "127.0.0.1:0")
	stdout, err := access.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var logs strings.Builder
	access.Stderr = &logs
	if err := access.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = access.Process.Kill() })
	lines := bufio.NewReader(stdout)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		t.Fatalf("access said nothing: %v", err)
	}
	var ready seckill.Ready
	if err := json.Unmarshal(line, &ready); err != nil || ready.Role != "access" || ready.PID != access.Process.Pid || ready.Admin == "" {
		t.Fatalf("ready line is %s, %v", line, err)
	}
	token := strings.TrimSpace(done(t, with("token", "--user", "5", "--activity", act)))
	if status, body := placed(t, "http://"+ready.Listen+"/v1/seckill/orders", token,
		fmt.Sprintf(`{"activity_id":%s,"sku_id":8,"request_id":"r","quantity":1}`, act)); status != 202 {
		t.Errorf("bought: %d %s", status, body)
	}
	fails(t, with("orders", "--listen", ready.Listen), 2, "choose another with --listen")

	if out := done(t, with("activity", "close", "--activity", act, "--sku", "8")); out != "activity "+act+" SKU 8: closed; what is under way ends as REJECTED_CLOSED\n" {
		t.Errorf("close says %q", out)
	}
	var sum activity.Summary
	if err := json.Unmarshal([]byte(done(t, with("activity", "show", "--activity", act))), &sum); err != nil || sum.Status != seckill.ActivityClosed ||
		sum.SKUs[0].Tokens[seckill.TokenAvailable] != 2 {
		t.Errorf("show says %+v, %v", sum, err)
	}
	fails(t, with("activity", "show", "--activity", "1"), 2, "1")
	fails(t, with("activity", "close", "--activity", act, "--sku", "9"), 2, "activity is not in redis; activity "+act+" has no SKU 9")

	if err := access.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil || len(rest) > 0 {
		t.Errorf("after its ready line access printed %q, %v", rest, err)
	}
	if err := access.Wait(); err != nil {
		t.Errorf("access ended by %v\n%s", err, logs.String())
	}
	if _, err := net.DialTimeout("tcp", ready.Listen, time.Second); err == nil {
		t.Error("something still listens")
	}
	for _, said := range []string{`"msg":"told to end: draining, no longer ready"`, `"why":"terminated signal received"`, `"msg":"ended"`} {
		if strings.Count(logs.String(), said) != 1 {
			t.Errorf("after SIGTERM access does not log %s:\n%s", said, logs.String())
		}
	}
	for l := range strings.Lines(logs.String()) {
		if !json.Valid([]byte(l)) {
			t.Errorf("a log line that is no JSON: %s", l)
		}
	}
}

// A crash between PostgreSQL and Redis is mended by --warm-only with what
// PostgreSQL has.
func TestWarmOnlyWarmsWhatPostgresHas(t *testing.T) {
	db := "SECKILL_POSTGRES=" + systest.Database(t)
	id := systest.ActivityID()
	raw := goredis.NewClient(&goredis.Options{Addr: systest.Redis(t)})
	lose := func() {
		ctx := context.Background()
		if keys, err := raw.Keys(ctx, seckill.KeysOf(id, 8).Prefix()+"*").Result(); err == nil && len(keys) > 0 {
			raw.Del(ctx, keys...)
		}
	}
	t.Cleanup(func() {
		lose()
		raw.SRem(context.Background(), seckill.ActivityIndexKey, fmt.Sprintf("%d:8", id))
		raw.Close()
	})
	with := func(args ...string) *exec.Cmd {
		cmd := command(t, append(args, "--activity", fmt.Sprint(id), "--sku", "8")...)
		cmd.Env = append(cmd.Env, db)
		return cmd
	}
	fails(t, with("activity", "create", "--warm-only"), 2, fmt.Sprint(id))
	first := done(t, with("activity", "create", "--stock", "17", "--tokens", "15", "--for", "2h"))
	lose()
	// How many units have a token is PostgreSQL's own affair, which is not touched.
	want := strings.Replace(first, ", 15 of them with an inventory token", "", 1)
	if again := done(t, with("activity", "create", "--warm-only")); again != want || want == first {
		t.Errorf("created %q, warmed %q", first, again)
	}
	if n, err := raw.Get(t.Context(), seckill.KeysOf(id, 8).Stock()).Int(); err != nil || n != 17 {
		t.Errorf("stock is %d, %v", n, err)
	}
	lose()
	// A stock of which something was sold is never warmed anew.
	pool := systest.Pool(t, postgres.Config{URL: strings.TrimPrefix(db, "SECKILL_POSTGRES=")})
	if _, err := pool.Exec(t.Context(), `INSERT INTO inventory_reservation (reservation_id, message_id, activity_id, sku_id, user_id, request_id, status, reserved_at)
		VALUES ('resv_x', 'msg_x', $1, 8, 1, 'r', 'REJECTED_LATE', now())`, id); err != nil {
		t.Fatal(err)
	}
	fails(t, with("activity", "create", "--warm-only"), 2, "has sold already")
	other := command(t, "activity", "close", "--activity", fmt.Sprint(id), "--sku", "9")
	other.Env = append(other.Env, db)
	fails(t, other, 2, "has no SKU 9")
	done(t, with("activity", "close")) // R11.15: also where Redis lost it
	fails(t, with("activity", "create", "--warm-only"), 2, "CLOSED")
}

// A database without the schema is said to be that, by every command.
func TestADatabaseThatWasNotMigrated(t *testing.T) {
	url := systest.Database(t)
	if _, err := systest.Pool(t, postgres.Config{URL: url}).Exec(t.Context(), "DROP SCHEMA public CASCADE; CREATE SCHEMA public"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"activity", "create", "--activity", "7", "--sku", "8", "--stock", "1"}, {"activity", "create", "--warm-only", "--activity", "7", "--sku", "8"},
		{"activity", "close", "--activity", "7", "--sku", "8"}, {"activity", "show", "--activity", "7"}, {"dlq", "list"},
	} {
		cmd := command(t, args...)
		cmd.Env = append(cmd.Env, "SECKILL_POSTGRES="+url)
		fails(t, cmd, 2, "the schema is not up to date: run `seckill migrate`")
	}
	migrate := command(t, "migrate", "--broker", brokerAddr(t))
	migrate.Env = append(migrate.Env, "SECKILL_POSTGRES="+url)
	if out := done(t, migrate); strings.Contains(out, "up to date") || !strings.Contains(out, " migrations applied\ntopics: ready\n") {
		t.Errorf("migrate says %q", out)
	}
}

// What the client libraries say by themselves is not another line.
func TestTroubleIsOneLineOfTheProcess(t *testing.T) {
	const none = "127.0.0.1:1"
	db := "postgres://x@" + none + "/y"
	fails(t, command(t, "scanner", "--redis", none, "--postgres", db), 2, none)
	fails(t, command(t, "scanner", "--name-server", none, "--postgres", db), 2, none)
	fails(t, command(t, "activity", "close", "--activity", "1", "--sku", "2", "--redis", none, "--postgres", db), 2, none)
}

// fails runs a command that must end with that code and one line.
func fails(t *testing.T, cmd *exec.Cmd, code int, hint string) {
	t.Helper()
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != code || out.String() != "" || strings.Count(errs.String(), "\n") != 1 || !strings.Contains(errs.String(), hint) {
		t.Errorf("%v: %v\nout %q\nerr %q\nwant exit %d and one line with %q", cmd.Args[1:], err, out.String(), errs.String(), code, hint)
	}
}
