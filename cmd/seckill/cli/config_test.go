package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "seckill.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const complete = `
redis: 127.0.0.1:6379
name-server: 127.0.0.1:9876
postgres: postgres://seckill:geheim@127.0.0.1:5432/seckill
token-key: ["` + tokenKey + `"]
orders:
  listen: 127.0.0.1:8083
all:
  drain-delay: 5s
`

// One file is enough for all roles; each prints what it would run with.
func TestOneFileConfiguresEveryRole(t *testing.T) {
	file := configFile(t, complete)
	for _, role := range append(rolesOf(commandAll), commandAll) {
		code, out, errs := seckillRun(t, "config", string(role), "--config", file)
		if code != 0 || errs != "" {
			t.Errorf("%s: exit %d: %s", role, code, errs)
		}
		if strings.Contains(out, "geheim") || strings.Contains(out, "00112233") {
			t.Errorf("%s prints a secret:\n%s", role, out)
		}
	}
	t.Setenv("SECKILL_DRAIN", "7s")
	_, out, _ := seckillRun(t, "config", "orders", "--config", file, "--zone", "z2")
	for _, want := range []string{"listen: 127.0.0.1:8083 # file\n", "drain: 7s # environment\n", "zone: z2 # flag\n", "log-level: info # default\n",
		"token-key: ['k1:***'] # file\n", "postgres: postgres://seckill:***@127.0.0.1:5432/seckill # file\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if _, out, _ := seckillRun(t, "config", "access", "--config", file); !strings.Contains(out, "listen: 127.0.0.1:8080 # default\n") {
		t.Errorf("the section of orders reached access:\n%s", out)
	}
	if _, out, _ := seckillRun(t, "config", "all", "--config", file); !strings.Contains(out, "drain-delay: 5s # file\n") {
		t.Errorf("the section of all is not read:\n%s", out)
	}
}

func TestTheFileCanBeNamedByTheEnvironment(t *testing.T) {
	t.Setenv("SECKILL_CONFIG", configFile(t, "user: 30001\nactivity: 7\ntoken-key: "+tokenKey))
	if code, out, errs := seckillRun(t, "token"); code != 0 || out == "" {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// A configuration that cannot be obeyed is one line and exit 64, for the role
// and for config alike, and nothing is started.
func TestConfigurationsThatCannotBeObeyed(t *testing.T) {
	for name, c := range map[string]struct{ file, hint string }{
		"unknown key":            {"redis-pasword: x", `:1: unknown key "redis-pasword"; nearest is "redis-password"`},
		"another command's key":  {"scanner:\n  listen: 127.0.0.1:1", `:2: unknown key "listen" of scanner`},
		"a value that is none":   {"drain: soon", ":1: drain"},
		"a value out of bounds":  {complete + "drain: 1h", "at most 10m"},
		"negative drain delay":   {complete + "drain-delay: -1s", "drain delay"},
		"a level that is none":   {complete + "log-level: loud", "--log-level"},
		"a seed that is none":    {complete + "id-seed: xx", "--id-seed"},
		"no name server":         {"redis: 127.0.0.1:1", "--name-server"},
		"a key that is no key":   {complete[:strings.Index(complete, "token-key")] + "token-key: geheim", "ID:SECRET"},
		"nothing to read (YAML)": {"redis: [", "seckill.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			file := configFile(t, c.file)
			for _, line := range [][]string{{"access", "--config", file}, {"config", "access", "--config", file}} {
				code, out, errs := seckillRun(t, line...)
				if code != 64 || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, c.hint) || strings.Contains(errs, "geheim") {
					t.Errorf("%v: exit %d\nout %q\nerr %q\nwant exit 64 and one line with %q", line[:1], code, out, errs, c.hint)
				}
			}
		})
	}
	if code, _, errs := seckillRun(t, "access", "--config", "/nowhere/seckill.yaml"); code != 64 || !strings.Contains(errs, "/nowhere/seckill.yaml") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// A misspelt variable does nothing, which is said; others of the prefix, such
// as an orchestrator's for a service called seckill, are left alone.
func TestMisspeltVariables(t *testing.T) {
	got := misspelt(reference(), []string{"SECKILL_REDIS=x", "SECKILL_REDIS_PASWORD=geheim", "SECKILL_REDIS_PASSWORD_FILE=f", "SECKILL_SERVICE_HOST=h", "SECKILL_PORT_8080_TCP_ADDR=a", "SECKILL_CONFIG=f", "HOME=/"})
	if len(got) != 1 || got[0] != "SECKILL_REDIS_PASWORD is not known; nearest is SECKILL_REDIS_PASSWORD" {
		t.Errorf("got %q", got)
	}
}

// Secrets are masked wherever they may stand, and a configuration that is
// refused repeats none.
func TestNoServersPasswordIsPrinted(t *testing.T) {
	file := configFile(t, complete)
	t.Setenv("SECKILL_REDIS", "rediss://seckill:geheim1@127.0.0.1:6379")
	t.Setenv("SECKILL_POSTGRES_PASSWORD", "geheim2")
	t.Setenv("SECKILL_MQ_ACCESS_KEY", "ak")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("geheim3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SECKILL_MQ_SECRET_KEY_FILE", secret)
	code, out, errs := seckillRun(t, "config", "all", "--config", file, "--mq-tls")
	if code != 0 || errs != "" || strings.Contains(out, "geheim") {
		t.Errorf("exit %d %s\n%s", code, errs, out)
	}
	for _, want := range []string{"redis: rediss://seckill:***@127.0.0.1:6379 # environment\n", "postgres-password: '***' # environment\n",
		"mq-secret-key: '***' # file named by the environment\n", "mq-access-key: ak # environment\n", "mq-tls: true # flag\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for _, bad := range []string{"rediss://seckill:geheim1@127.0.0.1:x", "http://seckill:geheim1@127.0.0.1:6379", "seckill:geheim1@127.0.0.1:6379", "redis://geheim1"} {
		t.Setenv("SECKILL_REDIS", bad)
		code, out, errs := seckillRun(t, "config", "access", "--config", file, "--redis-ca", "x")
		if code != 64 || strings.Contains(out+errs, "geheim") || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit %d\n%s%s", bad, code, out, errs)
		}
	}
}
