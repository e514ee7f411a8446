package reservation

import (
	"strings"
	"testing"
)

func TestAddressesOfRedis(t *testing.T) {
	for text, want := range map[string]struct {
		addr, user, password string
		tls                  bool
	}{
		"h:1":                         {"h:1", "", "", false},
		"[::1]:1":                     {"[::1]:1", "", "", false},
		"redis://h:1":                 {"h:1", "", "", false},
		"redis://h":                   {"h:6379", "", "", false},
		"redis://u:p%40ss@h:1/":       {"h:1", "u", "p@ss", false},
		"rediss://:geheim@[::1]:2/0":  {"[::1]:2", "", "geheim", true},
		"rediss://u:geheim@redis.x:3": {"redis.x:3", "u", "geheim", true},
	} {
		o, err := Config{Addr: text}.options()
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if o.Addr != want.addr || o.Username != want.user || o.Password != want.password || (o.TLSConfig != nil) != want.tls {
			t.Errorf("%s: %s %q %q TLS %v", text, o.Addr, o.Username, o.Password, o.TLSConfig != nil)
		}
		if want.tls && (o.TLSConfig.InsecureSkipVerify || o.TLSConfig.ServerName != strings.Trim(o.Addr[:len(o.Addr)-2], "[]")) {
			t.Errorf("%s: verified for %q", text, o.TLSConfig.ServerName)
		}
	}
	o, err := Config{Addr: "redis://u:p@h:1", Username: "v", Password: "q"}.options()
	if err != nil || o.Username != "v" || o.Password != "q" {
		t.Errorf("the options do not win: %+v, %v", o, err)
	}
}

// What is no address is refused in one line, and none of it is repeated: it
// may hold a password.
func TestAnAddressThatIsNoneIsNotRepeated(t *testing.T) {
	for what, c := range map[string]struct {
		cfg  Config
		hint string
	}{
		"another scheme":        {Config{Addr: "http://u:geheim@h:1"}, "host:port"},
		"no host":               {Config{Addr: "rediss://u:geheim@"}, "host:port"},
		"a port that is none":   {Config{Addr: "rediss://u:geheim@h:x"}, "host:port"},
		"a broken escape":       {Config{Addr: "redis://u:geheim%zz@h:1"}, "host:port"},
		"a line break":          {Config{Addr: "redis://u:geheim@h:1\n"}, "host:port"},
		"options in the query":  {Config{Addr: "redis://h:1?password=geheim"}, "host:port"},
		"a database":            {Config{Addr: "redis://u:geheim@h:1/2"}, "database 0"},
		"a user without scheme": {Config{Addr: "u:geheim@h:1"}, "host:port"},
		"a password, an at":     {Config{Addr: "geheim@h:1"}, "host:port"},
		"no port":               {Config{Addr: "geheim"}, "host:port"},
		"a user alone":          {Config{Addr: "h:1", Username: "u"}, "--redis-password"},
		"a CA without TLS":      {Config{Addr: "h:1", TLS: TLS{CA: "x"}}, "rediss://"},
		"a CA that is absent":   {Config{Addr: "rediss://h:1", TLS: TLS{CA: "/absent"}}, "--redis-ca"},
		"a CA that is none":     {Config{Addr: "rediss://h:1", TLS: TLS{CA: "/dev/null"}}, "no certificate"},
		"a certificate alone":   {Config{Addr: "rediss://h:1", TLS: TLS{Cert: "c"}}, "--redis-key"},
		"a key that is absent":  {Config{Addr: "rediss://h:1", TLS: TLS{Cert: "/absent", Key: "/absent"}}, "--redis-cert"},
	} {
		err := c.cfg.Validate()
		if err == nil || !strings.Contains(err.Error(), c.hint) || strings.Contains(err.Error(), "geheim") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with %q", what, err, c.hint)
		}
	}
}
