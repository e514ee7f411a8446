package mutants

import (
	"os"
	"strings"
	"testing"

	"github.com/hotsku/hotsku/scenarios"
	"github.com/hotsku/hotsku/verify/rundir"
)

// Each wrong design names a scenario that there is, and an invariant.
func TestTheTableIsSound(t *testing.T) {
	known := map[string]bool{}
	for _, s := range scenarios.All() {
		known[s.Name] = true
	}
	seen := map[string]bool{ReferenceName: true}
	for _, m := range All() {
		if m.Name == "" || m.Doc == "" || len(m.KilledBy) == 0 || seen[m.Name] {
			t.Errorf("%+v: needs a name of its own, words, and an invariant", m)
		}
		if !known[m.Scenario] {
			t.Errorf("%s: there is no scenario %q", m.Name, m.Scenario)
		}
		seen[m.Name] = true
	}
}

func TestFiringsAreCountedBySale(t *testing.T) {
	dir := rundir.Dir(t.TempDir())
	if err := os.MkdirAll(dir.Logs(), 0o755); err != nil {
		t.Fatal(err)
	}
	count := func(text string) (int64, error) {
		if err := os.WriteFile(FiringFile(dir), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return CountFirings(dir, "m", 10)
	}
	if n, err := CountFirings(dir, "m", 10); n != 0 || err != nil {
		t.Errorf("no file: %d, %v", n, err)
	}
	const ours, warmUp = `{"mutant":"m","activity_id":10}` + "\n", `{"mutant":"m","activity_id":9}` + "\n"
	for text, want := range map[string]int64{"": 0, warmUp: 0, ours + warmUp + ours: 2, ours + `{"mutant":"m","activ`: 1} {
		if n, err := count(text); n != want || err != nil {
			t.Errorf("%q: %d, %v; want %d", text, n, err, want)
		}
	}
	for text, want := range map[string]string{`{"mutant":"m","activ` + "\n" + ours: "unexpected end", `{"mutant":"n","activity_id":10}`: `firing of "n"`} {
		if _, err := count(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
