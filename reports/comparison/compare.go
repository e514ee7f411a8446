package comparison

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"

	"github.com/hotsku/hotsku/verify"
	"github.com/hotsku/hotsku/verify/rundir"
)

// Statuses of a figure.
const (
	Better  = "better"
	Worse   = "worse"
	Same    = "same"    // no change beyond the tolerance, or not beyond chance
	Unknown = "unknown" // no number of samples as small as this could show a change
)

// Metric is a figure to compare.
type Metric struct {
	Path   string `json:"metric"`
	Unit   string `json:"unit"`
	Higher bool   `json:"higher_is_better"`
	Judged bool   `json:"judged"` // counts for the verdict; others are shown
}

// cpuPerRequest is a figure beside verify's: CPU time of all processes, the
// generator's and the servers' too, a request.
const cpuPerRequest = "cpu_us_per_request"

// Metrics are what is compared unless told otherwise. Few are judged: each
// more makes a change harder to tell from chance.
func Metrics() []Metric {
	return []Metric{
		{Path: "latency_ms.all.p99", Unit: "ms", Judged: true},
		{Path: "latency_ms.accepted.p99", Unit: "ms", Judged: true},
		{Path: "orders.latency_ms.p99", Unit: "ms", Judged: true},
		{Path: "orders.hand_out_ms", Unit: "ms", Judged: true},
		{Path: cpuPerRequest, Unit: "µs", Judged: true},
		{Path: "latency_ms.all.p50", Unit: "ms"},
		{Path: "latency_ms.accepted.p50", Unit: "ms"},
		{Path: "load.send_lag_ms.p99", Unit: "ms"},
		{Path: "load.decided_ratio", Higher: true},
		{Path: "orders.within_3s_ratio", Higher: true},
		{Path: "orders.valid", Higher: true},
	}
}

// Options of Compare.
type Options struct {
	Metrics   []Metric
	Tolerance float64 // medians that differ by less are the same, e.g. 0.1
	Alpha     float64 // how likely chance alone may call a change, over all judged figures
}

// Validate says in one line what is wrong, or nil.
func (o Options) Validate() error {
	switch {
	case !(o.Tolerance >= 0 && o.Tolerance < 10):
		return fmt.Errorf("tolerance %v: must be 0 or more, as a share of the first side's median", o.Tolerance)
	case !(o.Alpha > 0 && o.Alpha < 0.5):
		return fmt.Errorf("alpha %v: must be above 0 and below 0.5", o.Alpha)
	case len(o.Metrics) == 0:
		return errors.New("no figure to compare")
	}
	for _, m := range o.Metrics {
		if _, _, err := sample(&rundir.Run{}, m.Path); err != nil {
			return err
		}
	}
	return nil
}

// Spread is a side's samples of a figure.
type Spread struct {
	N      int     `json:"n"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// Figure is one comparison. Ratio is B's median by A's, 0 if A's is 0. P is how
// likely chance alone makes such a difference, corrected for the number of
// figures where it is judged.
type Figure struct {
	Metric
	A      Spread  `json:"a"`
	B      Spread  `json:"b"`
	Ratio  float64 `json:"ratio"`
	P      float64 `json:"p"`
	Status string  `json:"status"`
}

// Comparison is what was found.
type Comparison struct {
	A       string   `json:"a"`
	B       string   `json:"b"`
	Figures []Figure `json:"figures"`
	Worse   []string `json:"worse"` // judged figures that are
	Notes   []string `json:"notes"`
	// Conclusive is false if there are so few runs that no judged figure could
	// have been found to differ.
	Conclusive bool `json:"conclusive"`
}

// Compare compares b with a. An error says why they cannot be.
func Compare(a, b Side, o Options) (*Comparison, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := sameLoad(a.Runs[0], b.Runs[0]); err != nil {
		return nil, fmt.Errorf("%s: %w", b.Path, err)
	}
	c := &Comparison{A: a.Path, B: b.Path, Notes: slices.Concat(a.LeftOut, b.LeftOut), Worse: []string{}}
	if note := elsewhere(a.Runs[0], b.Runs[0]); note != "" {
		c.Notes = append(c.Notes, note)
	}
	var judged []*Figure
	for _, m := range o.Metrics {
		x, y := samples(a.Runs, m.Path), samples(b.Runs, m.Path)
		if len(x) == 0 || len(y) == 0 {
			c.Notes = append(c.Notes, m.Path+" was not measured on both sides")
			continue
		}
		f := Figure{Metric: m, A: spread(x), B: spread(y), P: chance(x, y)}
		if f.A.Median != 0 {
			f.Ratio = f.B.Median / f.A.Median
		}
		c.Figures = append(c.Figures, f)
	}
	for i := range c.Figures {
		if c.Figures[i].Judged {
			judged = append(judged, &c.Figures[i])
		}
	}
	correct(judged)
	for i := range c.Figures {
		f := &c.Figures[i]
		f.Status = f.judge(o, len(judged))
		if f.Judged && f.Status != Unknown {
			c.Conclusive = true
		}
		if f.Judged && f.Status == Worse {
			c.Worse = append(c.Worse, f.Path)
		}
	}
	if !c.Conclusive {
		c.Notes = append(c.Notes, fmt.Sprintf("%d and %d runs: so few cannot show a change in one of %d figures; give %d a side", len(a.Runs), len(b.Runs), len(judged), enough(len(judged), o.Alpha)))
	}
	return c, nil
}

// judge says what became of a figure.
func (f *Figure) judge(o Options, judged int) string {
	figures := 1
	if f.Judged {
		figures = judged
	}
	if leastChance(f.A.N, f.B.N)*float64(figures) > o.Alpha {
		return Unknown
	}
	change := f.B.Median - f.A.Median
	if f.P > o.Alpha || math.Abs(change) <= o.Tolerance*math.Abs(f.A.Median) {
		return Same
	}
	if change > 0 == f.Higher {
		return Better
	}
	return Worse
}

// correct makes the chances of figures judged together those of judging all
// of them, after Holm (1979): the smallest by their number, the next by one
// less, and none below one before it.
func correct(figures []*Figure) {
	slices.SortStableFunc(figures, func(x, y *Figure) int { return cmp.Compare(x.P, y.P) })
	least := 0.0
	for i, f := range figures {
		least = max(least, min(1, f.P*float64(len(figures)-i)))
		f.P = least
	}
}

// chance is the p-value of the Mann-Whitney U test, two-sided.
func chance(x, y []float64) float64 {
	t := benchmath.DefaultThresholds
	return benchmath.AssumeNothing.Compare(benchmath.NewSample(slices.Clone(x), &t), benchmath.NewSample(slices.Clone(y), &t)).P
}

// leastChance is the smallest p-value that so many samples can give: every
// value of one side above every one of the other.
func leastChance(n, m int) float64 {
	ways := 1.0
	for i := 1; i <= min(n, m); i++ {
		ways *= float64(max(n, m)+i) / float64(i)
	}
	return min(1, 2/ways)
}

// enough is how many runs a side can show a change in one of so many figures.
func enough(figures int, alpha float64) int {
	for n := 2; ; n++ {
		if leastChance(n, n)*float64(max(figures, 1)) <= alpha {
			return n
		}
	}
}

func spread(samples []float64) Spread {
	t := benchmath.DefaultThresholds
	s := benchmath.NewSample(slices.Clone(samples), &t)
	return Spread{N: len(samples), Median: benchmath.AssumeNothing.Summary(s, 0.95).Center, Min: slices.Min(samples), Max: slices.Max(samples)}
}

func samples(runs []*rundir.Run, path string) (values []float64) {
	for _, run := range runs {
		if v, measured, err := sample(run, path); err == nil && measured {
			values = append(values, v)
		}
	}
	return values
}

func sample(run *rundir.Run, path string) (value float64, measured bool, err error) {
	if path != cpuPerRequest {
		return verify.Figure(run, path)
	}
	seconds := 0.0
	for _, s := range run.CPUSeconds {
		seconds += s
	}
	if run.Load.Completed == 0 {
		return 0, false, nil
	}
	return seconds * 1e6 / float64(run.Load.Completed), seconds > 0, nil
}
