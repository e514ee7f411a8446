// Package slo reads objectives such as "p99<100ms,errors<0.1%" and holds
// figures against them. It knows no run: figures come from a function. It
// imports nothing of the generator.
package slo

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrSLO is in the chain of every error of Parse.
var ErrSLO = errors.New("bad SLO")

// Forms describes what Parse reads.
const Forms = `METRIC OP VALUE, separated by commas; OP is < <= > or >=
latencies  p50 p99 p99.9 … mean max, from the intended time; service.p99 …, from the write; lag.p99 …, the generator's own
           VALUE is a duration: 100ms, 1.5s
shares     errors (no answer, or 5xx) failed timed_out dropped unfinished 4xx 5xx, of all requests
           VALUE is a share: 0.1%, 0.001
rate       answers per second; VALUE is a number`

// Kind is what a metric measures.
type Kind int

// Kinds, and the unit of their figures.
const (
	Latency Kind = iota // milliseconds
	Share               // 0 to 1
	Rate                // per second
)

// Objective is one condition.
type Objective struct {
	Text   string // as it was given
	Metric string
	Kind   Kind
	Op     string
	Target float64 // in the kind's unit
}

// Status says how an objective fared.
type Status string

// Statuses. Unmeasured is none of the other two: nothing of the kind was seen.
const (
	Met        Status = "met"
	Missed     Status = "missed"
	Unmeasured Status = "unmeasured"
)

// Result is an objective and its figure.
type Result struct {
	Text     string  `json:"text"`
	Metric   string  `json:"metric"`
	Target   float64 `json:"target"`
	Measured float64 `json:"measured"` // ms, share or per second; 0 if unmeasured
	Status   Status  `json:"status"`
}

var (
	condition = regexp.MustCompile(`^([a-z0-9_.]+)\s*(<=|>=|<|>)\s*(\S+)$`)
	latency   = regexp.MustCompile(`^((service|lag)\.)?(p(\d{1,2}(\.\d+)?|100)|mean|max)$`)
	shares    = []string{"errors", "failed", "timed_out", "dropped", "unfinished", "4xx", "5xx"}
)

// Parse reads objectives separated by commas; see Forms.
func Parse(text string) ([]Objective, error) {
	var out []Objective
	for _, part := range strings.Split(text, ",") {
		o, err := parseOne(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

func parseOne(text string) (Objective, error) {
	m := condition.FindStringSubmatch(text)
	if m == nil {
		return Objective{}, fmt.Errorf("%w %q: give METRIC OP VALUE such as p99<100ms", ErrSLO, text)
	}
	o := Objective{Text: text, Metric: m[1], Op: m[2]}
	var err error
	switch {
	case latency.MatchString(o.Metric):
		var d time.Duration
		if d, err = time.ParseDuration(m[3]); err != nil || d < 0 {
			return o, fmt.Errorf("%w %q: %q is no duration such as 100ms", ErrSLO, text, m[3])
		}
		o.Kind, o.Target = Latency, float64(d)/1e6
	case slices.Contains(shares, o.Metric):
		number, percent := strings.CutSuffix(m[3], "%")
		if o.Target, err = strconv.ParseFloat(number, 64); percent {
			o.Target /= 100
		}
		if err != nil || !(o.Target >= 0 && o.Target <= 1) {
			return o, fmt.Errorf("%w %q: %q is no share such as 0.1%% or 0.001", ErrSLO, text, m[3])
		}
		o.Kind = Share
	case o.Metric == "rate":
		if o.Target, err = strconv.ParseFloat(m[3], 64); err != nil || !(o.Target >= 0) {
			return o, fmt.Errorf("%w %q: %q is no number of answers per second", ErrSLO, text, m[3])
		}
		o.Kind = Rate
	default:
		return o, fmt.Errorf("%w %q: there is no metric %q; give p50, p99, p99.9, mean, max, service.p99, lag.p99, rate or one of %s",
			ErrSLO, text, o.Metric, strings.Join(shares, ", "))
	}
	return o, nil
}

// Quantile splits a latency metric into what it is of ("", service or lag) and
// its quantile in percent; mean is -1, max 100.
func (o Objective) Quantile() (of string, percent float64) {
	of, name, found := strings.Cut(o.Metric, ".")
	if !found || strings.HasPrefix(of, "p") {
		of, name = "", o.Metric
	}
	switch name {
	case "mean":
		return of, -1
	case "max":
		return of, 100
	}
	percent, _ = strconv.ParseFloat(name[1:], 64) // checked by Parse
	return of, percent
}

// Judge holds the figure of an objective against it; measured says that there
// is one.
func (o Objective) Judge(figure float64, measured bool) Result {
	r := Result{Text: o.Text, Metric: o.Metric, Target: o.Target, Status: Unmeasured}
	if !measured {
		return r
	}
	r.Measured, r.Status = figure, Missed
	if o.Op == "<" && figure < o.Target || o.Op == "<=" && figure <= o.Target || o.Op == ">" && figure > o.Target || o.Op == ">=" && figure >= o.Target {
		r.Status = Met
	}
	return r
}
