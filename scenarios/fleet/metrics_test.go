package fleet

import (
	"math"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func parse(t *testing.T, text string) Metrics {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	m, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestCount(t *testing.T) {
	m := parse(t, `# TYPE sends counter
sends{outcome="ok"} 40
sends{outcome="unknown"} 2
# TYPE reserved gauge
reserved 7
# TYPE empty counter
`)
	for name, want := range map[string]int64{"sends": 42, "reserved": 7, "empty": 0, "absent": 0} {
		if got := m.Count(name); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	if Metrics(nil).Count("sends") != 0 {
		t.Error("no metrics count something")
	}
}

func TestQuantileSince(t *testing.T) {
	const head = "# TYPE h histogram\n"
	first := head + `h_bucket{le="0.01"} 10
h_bucket{le="0.1"} 10
h_bucket{le="+Inf"} 10
h_count 10
`
	then := head + `h_bucket{le="0.01"} 10
h_bucket{le="0.1"} 110
h_bucket{le="+Inf"} 110
h_count 110
`
	twoLabels := head + `h_bucket{q="0",le="0.01"} 50
h_bucket{q="0",le="0.1"} 50
h_bucket{q="0",le="+Inf"} 50
h_count{q="0"} 50
h_bucket{q="1",le="0.01"} 0
h_bucket{q="1",le="0.1"} 50
h_bucket{q="1",le="+Inf"} 50
h_count{q="1"} 50
`
	overflow := head + `h_bucket{le="0.01"} 0
h_bucket{le="0.1"} 50
h_bucket{le="+Inf"} 100
h_count 100
`
	noInf := head + "h_bucket{le=\"0.01\"} 0\nh_bucket{le=\"0.1\"} 100\nh_count 100\n"
	for _, c := range []struct {
		rule          string
		before, after string
		q, want       float64 // want NaN: no samples
	}{
		{"a quarter up the second bucket", "", then, 0.3181818181818182, 0.01 + 0.09*25/100},
		{"what was there before does not count", first, then, 0.5, 0.055},
		{"the first bucket begins at zero", "", first, 0.5, 0.005},
		{"the lowest sample is in a bucket that has some", first, then, 0, 0.01},
		{"the highest, too", "", first, 1, 0.01},
		{"no sample since", first, first, 0.99, math.NaN()},
		{"no such histogram", "", "", 0.99, math.NaN()},
		{"over all labels", "", twoLabels, 0.75, 0.055},
		{"a label that is new counts whole", head + `h_bucket{q="0",le="0.01"} 50
h_bucket{q="0",le="0.1"} 50
h_bucket{q="0",le="+Inf"} 50
h_count{q="0"} 50
`, twoLabels, 0.5, 0.055},
		{"beyond the last bound: at least that", "", overflow, 0.99, 0.1},
		{"without a bucket of all samples", "", noInf, 0.5, 0.055},
		{"a histogram that began anew counts whole", then, first, 0.5, 0.005},
	} {
		t.Run(c.rule, func(t *testing.T) {
			got := parse(t, c.after).QuantileSince(parse(t, c.before), "h", c.q)
			if math.IsNaN(c.want) != math.IsNaN(got) || math.Abs(got-c.want) > 1e-9 {
				t.Errorf("quantile %v is %v, want %v", c.q, got, c.want)
			}
		})
	}
}
