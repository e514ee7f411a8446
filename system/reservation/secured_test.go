package reservation

import (
	"strings"
	"testing"

	"github.com/hotsku/hotsku/lua"
	"github.com/hotsku/hotsku/system/systest"
)

// R7.4.1: a Redis that wants TLS, a certificate and an ACL user lets nobody
// else in, and whoever is not let in is told which option to check, in one
// line without the password; nothing was changed.
func TestASecuredRedis(t *testing.T) {
	a, other := systest.NewAuthority(t), systest.NewAuthority(t)
	addr := systest.SecuredRedis(t, a)
	good := Config{Addr: "rediss://" + addr, Username: systest.SecuredUser, Password: systest.SecuredPassword, TLS: TLS{CA: a.CA, Cert: a.Cert, Key: a.Key}}
	check := func(c Config) error {
		t.Helper()
		s, err := New(c, lua.FS)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		return s.Check(t.Context())
	}
	for what, c := range map[string]struct {
		mend func(*Config)
		hint string
	}{
		"another authority":   {func(c *Config) { c.TLS.CA = other.CA }, "--redis-ca"},
		"the machine's list":  {func(c *Config) { c.TLS.CA = "" }, "--redis-ca"},
		"another host":        {func(c *Config) { c.Addr = strings.Replace(c.Addr, "127.0.0.1", "localhost", 1) }, "--redis-ca, and the host"},
		"no certificate":      {func(c *Config) { c.TLS.Cert, c.TLS.Key = "", "" }, "--redis-cert"},
		"another certificate": {func(c *Config) { c.TLS.Cert, c.TLS.Key = other.Cert, other.Key }, "--redis-cert"},
		"a wrong password":    {func(c *Config) { c.Password = "geheim2" }, "--redis-user and --redis-password"},
		"no password":         {func(c *Config) { c.Username, c.Password = "", "" }, "--redis-user and --redis-password"},
		"another user":        {func(c *Config) { c.Username = "default" }, "--redis-user and --redis-password"},
		"no TLS":              {func(c *Config) { c.Addr, c.TLS = addr, TLS{} }, "rediss://"},
		"TLS with one that has none": {func(c *Config) { c.Addr = "rediss://" + systest.Redis(t) },
			"speaks no TLS"},
	} {
		t.Run(what, func(t *testing.T) {
			cfg := good
			c.mend(&cfg)
			err := check(cfg)
			if err == nil || !strings.Contains(err.Error(), c.hint) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "geheim") {
				t.Errorf("got %v, want one line with %q", err, c.hint)
			}
		})
	}
	s, err := New(good, lua.FS)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n, err := s.rdb.DBSize(t.Context()).Result(); err != nil || n != 0 {
		t.Errorf("%d keys, %v", n, err)
	}
	if known, err := s.rdb.ScriptExists(t.Context(), s.reserve.Hash()).Result(); err != nil || known[0] {
		t.Errorf("script known: %v, %v", known, err)
	}
	if err := check(good); err != nil {
		t.Error(err)
	}
	inURL := good
	inURL.Addr, inURL.Username, inURL.Password = "rediss://"+systest.SecuredUser+":"+systest.SecuredPassword+"@"+addr, "", ""
	if err := check(inURL); err != nil {
		t.Errorf("user and password in the URL: %v", err)
	}
}
