package postgres_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/systest"
)

func TestSessionsHaveTheSettingsAskedFor(t *testing.T) {
	pool := systest.Pool(t, postgres.Config{
		URL: systest.Database(t), ApplicationName: "consumer", Settings: postgres.ConsumerSettings(), StatementTimeout: 7 * time.Second,
	})
	for name, want := range map[string]string{
		"application_name": "consumer", "enable_seqscan": "off", "jit": "off", "synchronous_commit": "on",
		"statement_timeout": "7s", "idle_in_transaction_session_timeout": "7s", "TimeZone": "UTC",
	} {
		var got string
		if err := pool.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, want %q (%v)", name, got, want, err)
		}
	}
}

func TestMigrateTwiceChangesNothingAndAMissingSchemaIsNamed(t *testing.T) { // R8.4
	url := systest.Database(t) // migrated
	pool := systest.Pool(t, postgres.Config{URL: url})
	if applied, err := postgres.Migrate(t.Context(), pool); err != nil || applied != 0 {
		t.Errorf("second migration applied %d: %v", applied, err)
	}
	if err := postgres.CheckSchema(t.Context(), pool); err != nil {
		t.Error(err)
	}
	if _, err := pool.Exec(t.Context(), "DROP SCHEMA public CASCADE; CREATE SCHEMA public"); err != nil {
		t.Fatal(err)
	}
	if err := postgres.CheckSchema(t.Context(), pool); !errors.Is(err, postgres.ErrSchemaOutdated) {
		t.Errorf("empty database: %v, want ErrSchemaOutdated", err)
	}
	if applied, err := postgres.Migrate(t.Context(), pool); err != nil || applied == 0 {
		t.Errorf("migration of an empty database applied %d: %v", applied, err)
	}
}

func TestOpenSaysInOneLineWhatIsWrong(t *testing.T) {
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := nobody.Addr().String() // accepts, never answers
	defer nobody.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := closed.Addr().String()
	closed.Close()
	for name, test := range map[string]struct {
		config postgres.Config
		want   string
	}{
		"no URL":           {postgres.Config{}, "no URL"},
		"no connection":    {postgres.Config{URL: "postgres://u@" + refused + "/d"}, refused},
		"no answer":        {postgres.Config{URL: "postgres://u@" + silent + "/d", ConnectTimeout: 50 * time.Millisecond, PingTimeout: 50 * time.Millisecond}, silent},
		"a pool too large": {postgres.Config{URL: "postgres://u@" + refused + "/d", MaxConns: 2000}, "max conns"},
		"nonsense":         {postgres.Config{URL: "postgres://%zz"}, "read URL"},
		"a broken port":    {postgres.Config{URL: "postgres://u:geheim@h:x/d"}, "read URL"},
		"a broken escape":  {postgres.Config{URL: "postgres://u:geheim%zz@h/d"}, "read URL"},
		"broken words":     {postgres.Config{URL: "host=h password=ist geheim port=x"}, "read URL"},
		"a missing CA":     {postgres.Config{URL: "postgres://u:geheim@h/d?sslmode=verify-full&sslrootcert=/absent"}, "/absent"},
		"a bad sslmode":    {postgres.Config{URL: "postgres://u:geheim@h/d?sslmode=perhaps"}, "sslmode"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := postgres.Open(t.Context(), test.config)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "geheim") {
				t.Errorf("got %v, want one line with %q and no password", err, test.want)
			}
		})
	}
}
