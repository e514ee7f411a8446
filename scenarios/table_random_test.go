package scenarios

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The same seed draws the same faults, and all of them come up.
func TestTheSeedDrawsTheFaults(t *testing.T) {
	drawn := map[string]bool{}
	for seed := range uint64(300) {
		s := random()[0]
		if diff := cmp.Diff(s.Drawn(seed).Faults, s.Drawn(seed).Faults); diff != "" {
			t.Fatalf("seed %d draws twice (-first +again):\n%s", seed, diff)
		}
		for _, f := range s.Drawn(seed).Faults {
			drawn[f.Kind.name()] = true
		}
	}
	const servers, roles, others = 3 * 3, 2 * 5, 4
	if len(drawn) != servers+roles+others {
		t.Errorf("%d kinds were drawn: %v", len(drawn), drawn)
	}
}
