// Package systest gives the system's tests real servers. It finds them by
// environment variables and fails, never skips, when they are missing: a
// green run must mean that the servers were there.
package systest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hotsku/hotsku/system/postgres"
)

// The environment variables. Redis and name server are host:port, PostgreSQL
// is the URL of a superuser on any database of the server.
const (
	EnvRedis      = "HOTSKU_TEST_REDIS"
	EnvPostgres   = "HOTSKU_TEST_POSTGRES"
	EnvNameServer = "HOTSKU_TEST_NAMESRV"
)

// Redis returns the address of the test Redis. It is shared: keep to the
// keys of a fresh ActivityID.
func Redis(t testing.TB) string { return server(t, EnvRedis) }

// NameServer returns the address of the test RocketMQ's name server. It is
// shared: use topics and groups of your own, or fresh activities.
func NameServer(t testing.TB) string { return server(t, EnvNameServer) }

// ActivityID returns an activity id that no other test uses, in this process
// or another one beside it.
func ActivityID() int64 { return 1_000_000 + rand.Int64N(1<<50) }

// Database creates a private, migrated database, dropped when the test ends,
// and returns its URL.
func Database(t testing.TB) string {
	t.Helper()
	base := server(t, EnvPostgres)
	u, err := url.Parse(base)
	if err != nil {
		t.Fatalf("%s is no URL: %v", EnvPostgres, err)
	}
	name := fmt.Sprintf("hotsku_test_%016x", rand.Uint64())
	administer(t, base, "CREATE DATABASE "+name)
	t.Cleanup(func() { administer(t, base, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	u.Path = "/" + name
	pool := Pool(t, postgres.Config{URL: u.String(), MaxConns: 2})
	defer pool.Close()
	if _, err := postgres.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	return u.String()
}

// Pool opens a pool, closed when the test ends.
func Pool(t testing.TB, c postgres.Config) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func server(t testing.TB, name string) string {
	t.Helper()
	value := strings.TrimSpace(os.Getenv(name))
	if value == "" {
		t.Fatalf("%s is not set: run `make test`, or `eval \"$(bin/hotsku up --stack dev --env)\"`", name)
	}
	return value
}

// administer runs one statement that no transaction may hold, on a
// connection of its own: a test's context is over when its clean-up runs.
func administer(t testing.TB, url, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatalf("%s: %v", EnvPostgres, err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
