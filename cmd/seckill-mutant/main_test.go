package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// What cannot be obeyed is said in one line; what follows the design's own
// words is the product's.
func TestWhichDesignIsWired(t *testing.T) {
	file := filepath.Join(t.TempDir(), "firings")
	w, rest, err := wire([]string{"--mutant", "get-then-decr", "--mutant-file", file, "access", "--listen", "127.0.0.1:0"})
	if err != nil || strings.Join(rest, " ") != "access --listen 127.0.0.1:0" || w.Store == nil {
		t.Errorf("rest %q, %v", rest, err)
	}
	for hint, args := range map[string][]string{
		"--mutant and --mutant-file are required": {"access"},
		"did you mean get-then-decr?":             {"--mutant", "get-then-dcr", "--mutant-file", file, "access"},
		"not a directory":                         {"--mutant", "get-then-decr", "--mutant-file", filepath.Join(file, "below"), "access"},
	} {
		if _, _, err := wire(args); err == nil || !strings.Contains(err.Error(), hint) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v, want one line with %q", args, err, hint)
		}
	}
}
