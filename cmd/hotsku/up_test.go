package main

import (
	"strings"
	"testing"
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

func TestStatusOfNoStacks(t *testing.T) {
	t.Setenv("HOTSKU_STATE", t.TempDir())
	for args, want := range map[string]string{"status": "no stacks\n", "status --json": "[]\n"} {
		if code, stdout, stderr := hotsku(t.Context(), strings.Fields(args)...); code != 0 || stdout != want {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}
