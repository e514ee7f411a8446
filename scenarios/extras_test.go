package scenarios

import (
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/hotsku/hotsku/scenarios/fleet"
)

func scraped(t *testing.T, kind string, start int, text string) scrape {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return scrape{kind, fleet.Metrics(families), start}
}

// What a process that was killed had counted is not known, which is not 0; it
// says nothing about the processes of another kind.
func TestCountsOfAKilledProcessAreNotKnown(t *testing.T) {
	const was, now = "# TYPE sends counter\nsends 5\n", "# TYPE sends counter\nsends 12\n"
	before := scrapes{"access-1": scraped(t, "access", 1, was), "access-2": scraped(t, "access", 1, was), "consumer": scraped(t, "consumer", 1, was)}
	for name, c := range map[string]struct {
		start  int // of access-2 at the end
		sum    int64
		whole  bool
		kind   string
		stages int
	}{
		"all lived":             {start: 1, kind: "access", whole: true, sum: 14, stages: 5},
		"one was killed":        {start: 2, kind: "access", whole: false},
		"another kind's lived":  {start: 2, kind: "consumer", whole: true, sum: 7, stages: 5},
		"a kind that is not it": {start: 1, kind: "scanner", whole: false},
	} {
		t.Run(name, func(t *testing.T) {
			after := scrapes{"access-1": scraped(t, "access", 1, now), "access-2": scraped(t, "access", c.start, now), "consumer": scraped(t, "consumer", 1, now)}
			of := counted{c.kind, before, after}
			got := of.sum("sends")
			if of.whole() != c.whole || (got != nil) != c.whole || got != nil && *got != c.sum {
				t.Errorf("counted %v, whole %v; want %d, %v", got, of.whole(), c.sum, c.whole)
			}
			if stages := edgeFunnel(of); len(stages) != c.stages {
				t.Errorf("the funnel is %+v", stages)
			}
			if p99 := of.worst("sends", 0.99); p99 != nil {
				t.Errorf("a quantile of no samples is %v", *p99)
			}
		})
	}
}
