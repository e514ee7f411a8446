package fleet

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics is one scrape of a process.
type Metrics map[string]*dto.MetricFamily

// Scrape reads the member's metrics.
func (m *Member) Scrape(ctx context.Context) (Metrics, error) {
	admin := m.Admin()
	if admin == "" {
		return nil, fmt.Errorf("scrape %s: it is not ready", m.role.Name)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("scrape %s: %w", m.role.Name, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("scrape %s: %w", m.role.Name, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("scrape %s: status %d", m.role.Name, resp.StatusCode)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return nil, fmt.Errorf("scrape %s: %w", m.role.Name, err)
	}
	return families, nil
}

// Count is the value of a counter or gauge, over all its labels; 0 if absent.
func (m Metrics) Count(name string) int64 {
	total := 0.0
	for _, metric := range m[name].GetMetric() {
		total += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
	}
	return int64(total)
}

// QuantileSince estimates a quantile of a histogram's samples since an
// earlier scrape, in the histogram's unit: linear within a bucket, as
// Prometheus does. NaN if there were none.
func (m Metrics) QuantileSince(before Metrics, name string, q float64) float64 {
	now, was := buckets(m[name]), buckets(before[name])
	total := 0.0
	for i := range now {
		if i < len(was) {
			now[i].count -= was[i].count
		}
		total = math.Max(total, now[i].count)
	}
	if total == 0 {
		return math.NaN()
	}
	rank, lower, below := q*total, 0.0, 0.0
	for _, b := range now {
		if b.count >= rank {
			if math.IsInf(b.upper, 1) {
				return lower
			}
			return lower + (b.upper-lower)*(rank-below)/(b.count-below)
		}
		lower, below = b.upper, b.count
	}
	return lower
}

type bucket struct{ upper, count float64 }

func buckets(f *dto.MetricFamily) []bucket {
	var out []bucket
	for _, metric := range f.GetMetric() {
		for _, b := range metric.GetHistogram().GetBucket() {
			out = append(out, bucket{b.GetUpperBound(), float64(b.GetCumulativeCount())})
		}
	}
	return out
}
