package settings

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

type target struct {
	redis, postgres, password string
	drain                     time.Duration
	keys                      []string
	workers                   int
}

func flags(dst *target) *pflag.FlagSet {
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.StringVar(&dst.redis, "redis", "default:1", "")
	f.StringVar(&dst.postgres, "postgres", "", "")
	f.StringVar(&dst.password, "redis-password", "", "")
	f.DurationVar(&dst.drain, "drain", 10*time.Second, "")
	f.StringSliceVar(&dst.keys, "token-key", nil, "")
	f.IntVar(&dst.workers, "workers", 2, "")
	Secret(f, "redis-password", Whole)
	Secret(f, "token-key", AfterColon)
	Secret(f, "postgres", InURL)
	return f
}

var known = Known{"access": {"redis", "drain", "token-key"}, "orders": {"redis", "postgres", "redis-password", "drain", "token-key"}, "consumer": {"workers", "redis"}}

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "seckill.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const sample = `
# all commands
redis: top:1
drain: 3s
token-key: [k2:bb, k1:aa]
orders:
  redis: section:1
  postgres: postgres://u:secret@h:1/db?sslmode=disable
consumer:
  workers: 7
`

func TestTheStrongestSourceWins(t *testing.T) {
	for name, c := range map[string]struct {
		section string
		args    []string
		env     map[string]string
		want    target
		sources map[string]Source
	}{
		"file, its top and its section": {section: "orders",
			want: target{redis: "section:1", drain: 3 * time.Second, keys: []string{"k2:bb", "k1:aa"}, workers: 2, postgres: "postgres://u:secret@h:1/db?sslmode=disable"},
			sources: map[string]Source{"redis": FromFile, "postgres": FromFile, "redis-password": FromDefault, "drain": FromFile, "token-key": FromFile,
				"workers": FromDefault}},
		"another's section is not read": {section: "access",
			want:    target{redis: "top:1", drain: 3 * time.Second, keys: []string{"k2:bb", "k1:aa"}, workers: 2},
			sources: map[string]Source{"redis": FromFile, "postgres": FromDefault, "redis-password": FromDefault, "drain": FromFile, "token-key": FromFile, "workers": FromDefault}},
		"the environment over the file": {section: "orders", env: map[string]string{"SECKILL_REDIS": "env:1", "SECKILL_TOKEN_KEY": "k3:cc"},
			want: target{redis: "env:1", drain: 3 * time.Second, keys: []string{"k3:cc"}, workers: 2, postgres: "postgres://u:secret@h:1/db?sslmode=disable"},
			sources: map[string]Source{"redis": FromEnvironment, "postgres": FromFile, "redis-password": FromDefault, "drain": FromFile, "token-key": FromEnvironment,
				"workers": FromDefault}},
		"a flag over the environment": {section: "access", args: []string{"--redis", "flag:1", "--workers", "0"},
			env: map[string]string{"SECKILL_REDIS": "env:1", "SECKILL_WORKERS": "9"}, want: target{redis: "flag:1", drain: 3 * time.Second, keys: []string{"k2:bb", "k1:aa"}},
			sources: map[string]Source{"redis": FromFlag, "postgres": FromDefault, "redis-password": FromDefault, "drain": FromFile, "token-key": FromFile, "workers": FromFlag}},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := Read(write(t, sample), known)
			if err != nil {
				t.Fatal(err)
			}
			var got target
			f := flags(&got)
			if err := f.Parse(c.args); err != nil {
				t.Fatal(err)
			}
			sources, err := Fill(f, c.section, lookup(c.env), file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(target{})); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.sources, sources); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWithoutAFileOnlyTheEnvironmentFills(t *testing.T) {
	var got target
	if _, err := Fill(flags(&got), "orders", lookup(map[string]string{"SECKILL_DRAIN": "1s"}), nil); err != nil || got.drain != time.Second || got.redis != "default:1" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Each is one line with the file's name, the line, and what was meant.
func TestFilesThatCannotBeObeyed(t *testing.T) {
	for text, hint := range map[string]string{
		"drain: 1s\nreddis: x":            `:2: unknown key "reddis"; nearest is "redis"`,
		"accsess:\n  redis: x":            `:1: unknown key "accsess"; nearest is "access"`,
		"orders:\n  workers: 3":           `:2: unknown key "workers" of orders`,
		"xylophone: 1":                    `:1: unknown key "xylophone"`,
		"redis: a\nredis: b":              `:2: "redis" is there twice`,
		"orders:\n  redis: a\n  redis: b": `:3: "redis" is there twice`,
		"redis:":                          `"redis" has no value`,
		"redis: [a, [b]]":                 "plain value",
		"redis: {a: b}":                   "plain value",
		"token-key: []":                   "empty list",
		"orders: yes":                     "its keys belong below it",
		"- redis":                         "key: value",
		"redis: a: b":                     "seckill.yaml",
		"? [a]\n: b":                      "must be a word",
		"redis: x #" + strings.Repeat("x", 1<<20): "longer than",
	} {
		_, err := Read(write(t, text), known)
		if err == nil || !strings.Contains(err.Error(), hint) || !strings.Contains(err.Error(), "seckill.yaml") {
			t.Errorf("%.40q: error is %v, want %q", text, err, hint)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none.yaml"), known); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for _, text := range []string{"", "# nothing\n"} {
		if _, err := Read(write(t, text), known); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestValuesThatAreNone(t *testing.T) {
	for text, hint := range map[string]string{
		"drain: soon":           `seckill.yaml:1: drain: "soon": must be a length of time`,
		"\nredis: [a, b]":       "seckill.yaml:2: redis: takes one value",
		"drain: 1s\nworkers: x": `seckill.yaml:2: workers: "x": must be a whole number`,
	} {
		file, err := Read(write(t, text), known)
		if err != nil {
			t.Fatal(err)
		}
		var got target
		if _, err = Fill(flags(&got), "", lookup(nil), file); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%q: error is %v, want %q", text, err, hint)
		}
	}
	var got target
	if _, err := Fill(flags(&got), "", lookup(map[string]string{"SECKILL_DRAIN": "soon"}), nil); err == nil || err.Error() != `SECKILL_DRAIN: "soon": must be a length of time such as 500ms, 10s or 2m` {
		t.Errorf("error is %v", err)
	}
}

// What is printed is a configuration file: read back it gives the same,
// except for secrets, of which nothing is printed.
func TestWhatIsPrintedCanBeRead(t *testing.T) {
	var got target
	f := flags(&got)
	sources, err := Fill(f, "", lookup(map[string]string{"SECKILL_REDIS": "true", "SECKILL_POSTGRES": "postgres://u:secret@h:1/db?password=secret&sslmode=disable",
		"SECKILL_REDIS_PASSWORD": "secret", "SECKILL_TOKEN_KEY": "k1:secret,secret"}), nil)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := Print(&out, f, sources); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "secret") {
		t.Errorf("a secret is printed:\n%s", out.String())
	}
	var again target
	f = flags(&again)
	file, err := Read(write(t, strings.ReplaceAll(out.String(), `redis-password: '***'`, "redis-password: x")), Known{"x": {"redis", "postgres", "redis-password", "drain", "token-key", "workers"}})
	if err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	if _, err := Fill(f, "", lookup(nil), file); err != nil {
		t.Fatal(err)
	}
	want := target{redis: "true", postgres: "postgres://u:***@h:1/db?password=***&sslmode=disable", password: "x", drain: 10 * time.Second, keys: []string{"k1:***", "***"}, workers: 2}
	if diff := cmp.Diff(want, again, cmp.AllowUnexported(target{})); diff != "" {
		t.Error(diff)
	}
}

func TestSecretsAreMaskedWhereverTheyStand(t *testing.T) {
	for value, want := range map[string]string{
		"postgres://h/db":                          "postgres://h/db",
		"postgres://u@h/db":                        "postgres://u@h/db",
		"postgres://u:p%40w@h/db":                  "postgres://u:***@h/db",
		"host=h user=u password=geheim dbname=d":   "host=h user=u password=*** dbname=d",
		`password = 'ge\'h eim' user=u`:            `password = *** user=u`,
		"host=h sslpassword=geheim":                "host=h sslpassword=***",
		"postgres://u:geheim@h:port/db":            "***",
		"postgres://u@h/db?sslpassword=geheim&a=b": "postgres://u@h/db?sslpassword=***&a=b",
	} {
		if got := mask(InURL, value); got != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	words := []string{"redis", "redis-password", "name-server", "drain"}
	for word, want := range map[string]string{"redsi": "redis", "name_server": "name-server", "drian": "drain", "zebra": "", "redis-pasword": "redis-password"} {
		if got := Nearest(word, words); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}

// A secret may stand in a file of its own; nothing else may, and no error
// repeats it.
func TestSecretsFromFiles(t *testing.T) {
	secret := write(t, "geheim\r\n")
	fill := func(env map[string]string) (target, map[string]Source, error) {
		var got target
		sources, err := Fill(flags(&got), "orders", lookup(env), nil)
		return got, sources, err
	}
	got, sources, err := fill(map[string]string{"SECKILL_REDIS_PASSWORD_FILE": secret, "SECKILL_DRAIN_FILE": secret})
	if err != nil || got.password != "geheim" || sources["redis-password"] != FromSecretFile || got.drain != 10*time.Second {
		t.Errorf("%+v %v, %v", got, sources, err)
	}
	got, _, err = fill(map[string]string{"SECKILL_TOKEN_KEY_FILE": write(t, "k2:bb,k1:aa\n")})
	if err != nil || len(got.keys) != 2 || got.keys[0] != "k2:bb" {
		t.Errorf("%+v, %v", got, err)
	}
	for hint, env := range map[string]map[string]string{
		"exclude each other": {"SECKILL_REDIS_PASSWORD_FILE": secret, "SECKILL_REDIS_PASSWORD": "geheim"},
		"no such file":       {"SECKILL_REDIS_PASSWORD_FILE": secret + ".absent"},
		"must hold":          {"SECKILL_REDIS_PASSWORD_FILE": write(t, "\n")},
		"it has 65":          {"SECKILL_REDIS_PASSWORD_FILE": write(t, strings.Repeat("geheim", 20_000))},
	} {
		if _, _, err := fill(env); err == nil || !strings.Contains(err.Error(), hint) || !strings.HasPrefix(err.Error(), "SECKILL_REDIS_PASSWORD") || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%v: %v, want %q", env, err, hint)
		}
	}
}
