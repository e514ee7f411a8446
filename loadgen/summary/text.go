package summary

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hotsku/hotsku/loadgen/hdr"
)

// Text writes the summary for people.
func (s *Summary) Text(w io.Writer) error {
	var b strings.Builder
	p := s.Plan
	fmt.Fprintf(&b, "%s\n", p.Request)
	fmt.Fprintf(&b, "%s, seed %d; %d connections with %d in flight each, timeout %s", s.shape(), p.Seed, p.Conns, p.Depth, p.Timeout)
	switch {
	case len(s.Shards) > 1:
		fmt.Fprintf(&b, "; %d shards merged", len(s.Shards))
	case p.Shards > 1:
		fmt.Fprintf(&b, "; shard %d of %d", s.Shards[0].Index, p.Shards)
	}
	fmt.Fprintf(&b, "\n\n%s\n", s.Account)
	fmt.Fprintf(&b, "answers    %s\n", s.answers())
	if s.refusedAll() {
		b.WriteString("           not one is 2xx or 3xx: see whether URL, method and headers are what you mean; --slo '4xx<1%,5xx<1%' fails such a run\n")
	}
	if len(s.Failures) > 0 {
		fmt.Fprintf(&b, "failed by  %s\n", counts(s.Failures))
	}
	if len(s.Connections) > 1 {
		fmt.Fprintf(&b, "connections %s\n", counts(s.Connections))
	}
	fmt.Fprintf(&b, "\n%-11s%10s%10s%10s%10s%10s\n", "", "P50", "P90", "P99", "P99.9", "max")
	for _, row := range []struct {
		name string
		h    hdr.Summary
		what string
	}{{"latency", s.LatencyMS, "from the intended time"}, {"service", s.ServiceMS, "from the write"}, {"send lag", s.SendLagMS, "the difference"}} {
		fmt.Fprintf(&b, "%-11s%10s%10s%10s%10s%10s  %s\n", row.name, millis(row.h.P50), millis(row.h.P90), millis(row.h.P99), millis(row.h.P999), millis(row.h.Max), row.what)
	}
	b.WriteByte('\n')
	for _, r := range s.SLO {
		fmt.Fprintf(&b, "SLO %s %s\n", r.Text, r.Status)
	}
	fmt.Fprintf(&b, "verdict: %s\n", s.Verdict)
	for _, r := range s.Reasons {
		fmt.Fprintf(&b, "  %s\n", r)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("print the summary: %w", err)
	}
	return nil
}

// shape says the shape, with the figures a bare one was made of.
func (s *Summary) shape() string {
	if strings.Contains(s.Plan.Shape, ":") {
		return s.Plan.Shape
	}
	return fmt.Sprintf("%s %g/s for %s", s.Plan.Shape, s.Plan.RatePerS, s.Plan.Duration)
}

func (s *Summary) answers() string {
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(s.Statuses)) {
		parts = append(parts, fmt.Sprintf("%d: %s", status, thousands(s.Statuses[status])))
	}
	if len(parts) == 0 {
		return "none"
	}
	return fmt.Sprintf("%s; %.4g/s", strings.Join(parts, ", "), s.RatePerS)
}

// refusedAll says that there were answers, and none of success.
func (s *Summary) refusedAll() bool {
	for status := range s.Statuses {
		if status < 400 {
			return false
		}
	}
	return len(s.Statuses) > 0
}

func counts(m map[string]uint64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s: %s", name, thousands(m[name])))
	}
	return strings.Join(parts, ", ")
}

// millis writes a latency with three significant digits.
func millis(v float64) string {
	if v >= 9999.5 {
		return decimal(v/1000) + " s"
	}
	return decimal(v) + " ms"
}

func seconds(v float64) string {
	if v < 1 {
		return decimal(v*1000) + " ms"
	}
	return decimal(v) + " s"
}

func decimal(v float64) string {
	places := 0
	if v > 0 && v < 100 {
		places = min(max(2-int(math.Floor(math.Log10(v))), 0), 3)
	}
	return strconv.FormatFloat(v, 'f', places, 64)
}

// thousands writes 1234567 as 1,234,567.
func thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
