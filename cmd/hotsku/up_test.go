package main

import (
	"strings"
	"testing"

	"github.com/hotsku/hotsku/stack"
)

func TestCommandLinesThatAreRefused(t *testing.T) {
	t.Setenv("HOTSKU_STATE", t.TempDir())
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"up --nope", exitUsage, "unknown flag: --nope"},
		{"up extra", exitUsage, `got "extra"`},
		{"up --stack ../x", exitUsage, `name "../x"`},
		{"up --port-base 80", exitUsage, "port base 80: want 1024"},
		{"up --env --json", exitUsage, "exclude each other"},
		{"down --stack ../x", exitUsage, `name "../x"`},
		{"down --stack absent", exitEnvironment, "no such stack: absent"},
		{"status extra", exitUsage, `got "extra"`},
		{"frobnicate", exitUsage, `unknown command "frobnicate"`},
	} {
		t.Run(c.args, func(t *testing.T) {
			code, stdout, stderr := hotsku(t.Context(), strings.Fields(c.args)...)
			if code != c.code || !strings.Contains(stderr, c.says) || strings.Count(stderr, "\n") != 1 || stdout != "" {
				t.Errorf("exit code %d, stdout %q, stderr %q; want %d and one line with %q", code, stdout, stderr, c.code, c.says)
			}
		})
	}
}

// --env serves the tests and the product alike.
func TestAddressesAsExports(t *testing.T) {
	var out strings.Builder
	a := stack.Addresses{Redis: "127.0.0.1:1", Postgres: "postgres://u:p'q@h/d", NameServer: "127.0.0.1:3", Broker: "127.0.0.1:4", BrokerMetrics: "http://127.0.0.1:5"}
	if err := printAddresses(&out, a, true, false); err != nil {
		t.Fatal(err)
	}
	want := `export HOTSKU_TEST_REDIS='127.0.0.1:1'
export SECKILL_REDIS='127.0.0.1:1'
export HOTSKU_TEST_POSTGRES='postgres://u:p'\''q@h/d'
export SECKILL_POSTGRES='postgres://u:p'\''q@h/d'
export HOTSKU_TEST_NAMESRV='127.0.0.1:3'
export SECKILL_NAME_SERVER='127.0.0.1:3'
export HOTSKU_TEST_BROKER='127.0.0.1:4'
export SECKILL_BROKER='127.0.0.1:4'
export HOTSKU_TEST_BROKER_METRICS='http://127.0.0.1:5'
`
	if out.String() != want {
		t.Errorf("exports are\n%s\nwant\n%s", out.String(), want)
	}
}

func TestStatusOfNoStacks(t *testing.T) {
	t.Setenv("HOTSKU_STATE", t.TempDir())
	for args, want := range map[string]string{"status": "no stacks\n", "status --json": "[]\n"} {
		if code, stdout, stderr := hotsku(t.Context(), strings.Fields(args)...); code != 0 || stdout != want {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}
