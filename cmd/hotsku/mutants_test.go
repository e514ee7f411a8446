package main

import (
	"strings"
	"testing"

	"github.com/hotsku/hotsku/scenarios/mutants"
)

// The list has a line a design, with what must find it out.
func TestWrongDesignsAreListed(t *testing.T) {
	code, out, errs := hotsku(t.Context(), "mutants", "--list")
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	all := mutants.All()
	if len(lines) != len(all) {
		t.Fatalf("%d lines for %d designs", len(lines), len(all))
	}
	for i, m := range all {
		if !strings.HasPrefix(lines[i], m.Name+" ") || !strings.Contains(lines[i], m.Scenario) || !strings.Contains(lines[i], m.KilledBy[0]) {
			t.Errorf("line %q is not about %+v", lines[i], m)
		}
	}
}

func TestWrongDesignsAreChosenByName(t *testing.T) {
	all, err := chooseMutants(nil)
	if err != nil || len(all) != len(mutants.All()) {
		t.Errorf("without names: %d, %v", len(all), err)
	}
	some, err := chooseMutants([]string{"gate-forgets-winners", "get-then-decr"})
	if err != nil || len(some) != 2 || some[0].Name != "gate-forgets-winners" || some[1].Name != "get-then-decr" {
		t.Errorf("got %+v, %v", some, err)
	}
}
