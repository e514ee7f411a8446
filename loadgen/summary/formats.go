package summary

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hotsku/hotsku/loadgen/hdr"
)

// JSON writes the summary with its series.
func (s *Summary) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// CSV writes the series, one line an interval.
func (s *Summary) CSV(w io.Writer) error {
	classes := map[string]bool{}
	for _, p := range s.Series {
		for c := range p.Codes {
			classes[c] = true
		}
	}
	names := slices.Sorted(maps.Keys(classes))
	c := csv.NewWriter(w)
	_ = c.Write(append([]string{"at_ms", "step_ms", "scheduled", "completed", "lost", "p50_ms", "p99_ms", "max_ms"}, names...)) // errors stay until Flush
	n := func(v uint64) string { return strconv.FormatUint(v, 10) }
	f := func(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }
	for _, p := range s.Series {
		row := []string{strconv.FormatInt(p.AtMS, 10), strconv.FormatInt(s.StepMS, 10), n(p.Scheduled), n(p.Completed), n(p.Lost), f(p.P50), f(p.P99), f(p.Max)}
		for _, name := range names {
			row = append(row, n(p.Codes[name]))
		}
		_ = c.Write(row)
	}
	if c.Flush(); c.Error() != nil {
		return fmt.Errorf("write CSV: %w", c.Error())
	}
	return nil
}

// Prometheus writes the figures in Prometheus' text format, for a text-file
// collector or a push gateway. Times are in seconds.
func (s *Summary) Prometheus(w io.Writer) error {
	var b strings.Builder
	family := func(name, kind, help string) { fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind) }
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

	family("hotsku_load_requests_total", "counter", "Requests by how they ended; their sum is what was scheduled.")
	a := s.Account
	for _, o := range []struct {
		name string
		n    uint64
	}{{"completed", a.Completed}, {"failed", a.Failed}, {"timed_out", a.TimedOut}, {"dropped", a.Dropped}, {"unfinished", a.Unfinished}} {
		fmt.Fprintf(&b, "hotsku_load_requests_total{outcome=%q} %d\n", o.name, o.n)
	}
	family("hotsku_load_answers_total", "counter", "Completed requests by HTTP status.")
	for _, status := range slices.Sorted(maps.Keys(s.Statuses)) {
		fmt.Fprintf(&b, "hotsku_load_answers_total{status=\"%d\"} %d\n", status, s.Statuses[status])
	}
	family("hotsku_load_failures_total", "counter", "Failed requests by cause.")
	for _, cause := range slices.Sorted(maps.Keys(s.Failures)) {
		fmt.Fprintf(&b, "hotsku_load_failures_total{cause=%q} %d\n", cause, s.Failures[cause])
	}
	for _, q := range []struct {
		name, help string
		h          hdr.Summary
	}{
		{"hotsku_load_latency_seconds", "From the intended time to the answer.", s.LatencyMS},
		{"hotsku_load_service_seconds", "From the write to the answer.", s.ServiceMS},
		{"hotsku_load_send_lag_seconds", "From the intended time to the write.", s.SendLagMS},
	} {
		family(q.name, "summary", q.help)
		for _, v := range []struct {
			quantile string
			ms       float64
		}{{"0.5", q.h.P50}, {"0.9", q.h.P90}, {"0.99", q.h.P99}, {"0.999", q.h.P999}, {"1", q.h.Max}} {
			fmt.Fprintf(&b, "%s{quantile=%q} %s\n", q.name, v.quantile, number(v.ms/1000))
		}
		fmt.Fprintf(&b, "%s_sum %s\n%s_count %d\n", q.name, number(q.h.Mean/1000*float64(q.h.Count)), q.name, q.h.Count)
	}
	family("hotsku_load_answers_per_second", "gauge", "Completed requests over the whole run's time.")
	fmt.Fprintf(&b, "hotsku_load_answers_per_second %s\n", number(s.RatePerS))
	family("hotsku_load_verdict", "gauge", "1 for the run's verdict.")
	for _, v := range []string{Pass, Fail, Inconclusive} {
		n := 0
		if v == s.Verdict {
			n = 1
		}
		fmt.Fprintf(&b, "hotsku_load_verdict{verdict=%q} %d\n", v, n)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write metrics: %w", err)
	}
	return nil
}
