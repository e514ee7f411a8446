package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics is one scrape of a process.
type Metrics map[string]*dto.MetricFamily

// scrapeTimeout bounds one visit: a process may be frozen.
const scrapeTimeout = 5 * time.Second

// Scrape reads the member's metrics.
func (m *Member) Scrape(ctx context.Context) (Metrics, error) {
	var families Metrics
	err := m.get(ctx, "/metrics", func(body io.Reader) (err error) {
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err = parser.TextToMetricFamilies(body)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("scrape %s: %w", m.role.Name, err)
	}
	return families, nil
}

// Works is nil if the member says that it is ready.
func (m *Member) Works(ctx context.Context) error {
	if err := m.get(ctx, "/readyz", func(io.Reader) error { return nil }); err != nil {
		return fmt.Errorf("ask %s: %w", m.role.Name, err)
	}
	return nil
}

// get reads a page of the member's admin address.
func (m *Member) get(ctx context.Context, page string, read func(io.Reader) error) error {
	admin := m.Admin()
	if admin == "" {
		return errors.New("it is not ready")
	}
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+page, nil)
	if err != nil {
		return err
	}
	req.Close = true // visits are rare
	resp, err := http.DefaultClient.Do(req)
	if p := m.current(); err != nil && ended(p) {
		state, _ := p.ExitState()
		return fmt.Errorf("it has ended (%v): see its log %s", state, p.LogPath())
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return read(io.LimitReader(resp.Body, 16<<20))
}

// Count is the value of a counter or gauge, over all its labels; 0 if absent.
func (m Metrics) Count(name string) int64 {
	total := 0.0
	for _, metric := range m[name].GetMetric() {
		total += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
	}
	return int64(total)
}

// QuantileSince estimates a quantile (0 to 1) of a histogram's samples since
// an earlier scrape, over all its labels, in the histogram's unit: linear
// within a bucket, as Prometheus does. A histogram that is not in before, or
// that began anew since, counts whole. NaN if there were no samples.
func (m Metrics) QuantileSince(before Metrics, name string, q float64) float64 {
	now, was := cumulative(m[name]), cumulative(before[name])
	if now[math.Inf(1)] < was[math.Inf(1)] {
		was = nil // the process was started again
	}
	total := now[math.Inf(1)] - was[math.Inf(1)]
	if total <= 0 {
		return math.NaN()
	}
	rank, lower, below := q*total, 0.0, 0.0
	for _, upper := range slices.Sorted(maps.Keys(now)) {
		count := now[upper] - was[upper]
		if count >= rank && count > below {
			if math.IsInf(upper, 1) {
				return lower
			}
			return lower + (upper-lower)*(rank-below)/(count-below)
		}
		lower, below = upper, count
	}
	return lower
}

// cumulative sums the counts of a histogram's buckets over all labels, by
// upper bound; that of +Inf is all samples.
func cumulative(f *dto.MetricFamily) map[float64]float64 {
	out := map[float64]float64{}
	for _, metric := range f.GetMetric() {
		h := metric.GetHistogram()
		for _, b := range h.GetBucket() {
			if !math.IsInf(b.GetUpperBound(), 1) {
				out[b.GetUpperBound()] += float64(b.GetCumulativeCount())
			}
		}
		out[math.Inf(1)] += float64(h.GetSampleCount())
	}
	return out
}
