package postgres_test

import (
	"strings"
	"testing"

	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/systest"
)

// R7.4.1: a PostgreSQL that takes TLS connections only lets in who verifies it
// and knows the password, wherever that is given; whoever is not let in is
// told which option to check, in one line without a password.
func TestASecuredPostgres(t *testing.T) {
	a, other := systest.NewAuthority(t), systest.NewAuthority(t)
	addr := systest.SecuredPostgres(t, a)
	localhost := strings.Replace(addr, "127.0.0.1", "localhost", 1)
	const password = systest.SecuredPassword
	bare := systest.SecuredURL(addr, "verify-full", a.CA, "")
	for what, c := range map[string]struct {
		cfg  postgres.Config
		hint string
	}{
		"another authority": {postgres.Config{URL: systest.SecuredURL(addr, "verify-full", other.CA, password)}, "check sslrootcert"},
		"another host":      {postgres.Config{URL: systest.SecuredURL(localhost, "verify-full", a.CA, password)}, "and its host"},
		"a wrong password":  {postgres.Config{URL: bare, Password: "geheim2"}, "--postgres-password"},
		"no TLS":            {postgres.Config{URL: systest.SecuredURL(addr, "disable", "", password)}, "sslmode"},
		"a server without":  {postgres.Config{URL: plain(t) + "&sslmode=verify-full&sslrootcert=" + a.CA}, "speaks no TLS: check sslmode"},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := postgres.Open(t.Context(), c.cfg)
			if err == nil || !strings.Contains(err.Error(), c.hint) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "geheim") {
				t.Errorf("got %v, want one line with %q", err, c.hint)
			}
		})
	}
	for what, cfg := range map[string]postgres.Config{
		"in the URL":          {URL: systest.SecuredURL(addr, "verify-full", a.CA, password)},
		"beside it":           {URL: bare, Password: password},
		"the option wins":     {URL: systest.SecuredURL(addr, "verify-full", a.CA, "another"), Password: password},
		"whatever host it is": {URL: systest.SecuredURL(localhost, "verify-ca", a.CA, password)},
	} {
		t.Run("password "+what, func(t *testing.T) {
			pool := systest.Pool(t, cfg)
			var secure bool
			if err := pool.QueryRow(t.Context(), "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").Scan(&secure); err != nil || !secure {
				t.Errorf("TLS: %v, %v", secure, err)
			}
		})
	}
	t.Setenv("PGPASSWORD", password)
	if _, err := postgres.Open(t.Context(), postgres.Config{URL: bare}); err != nil {
		t.Errorf("password in the environment: %v", err)
	}
}

// plain is a server that speaks no TLS, without its sslmode.
func plain(t *testing.T) string {
	t.Helper()
	url := systest.Database(t)
	if !strings.Contains(url, "sslmode=disable") {
		t.Fatalf("unexpected URL")
	}
	return strings.Replace(url, "sslmode=disable", "connect_timeout=5", 1)
}
