package app

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hotsku/hotsku/system/access"
	"github.com/hotsku/hotsku/system/admission"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// edgeMetrics exports the entrance's counts under the names of 12.1. The
// labels activity_id and sku_id are those of SKUs on sale, up to a bound, and
// empty for everything else: no client can make labels.
type edgeMetrics struct {
	stats *access.Stats

	requests, accepted, rejected, rateLimited, soldOut *prometheus.Desc
	repeated, duplicateUser, duration, answers         *prometheus.Desc
	authenticated, pastGate, passed, rejectedBy        *prometheus.Desc
	connections                                        *prometheus.Desc
}

func newEdgeMetrics(stats *access.Stats) *edgeMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &edgeMetrics{
		stats:         stats,
		requests:      desc("seckill_requests_total", "Requests parsed or cut off.", "activity_id", "sku_id"),
		accepted:      desc("seckill_requests_accepted_total", "Requests answered as accepted for the first time.", "activity_id", "sku_id"),
		rejected:      desc("seckill_requests_rejected_total", "Requests answered otherwise.", "activity_id", "sku_id", "result_code"),
		rateLimited:   desc("seckill_rate_limited_total", "Requests answered RATE_LIMITED.", "activity_id", "sku_id"),
		soldOut:       desc("seckill_sold_out_total", "Requests answered SOLD_OUT.", "activity_id", "sku_id"),
		repeated:      desc("seckill_duplicate_request_total", "Accepted requests that were sent again.", "activity_id", "sku_id"),
		duplicateUser: desc("seckill_duplicate_user_total", "Requests of users who hold or held a reservation.", "activity_id", "sku_id"),
		duration:      desc("seckill_request_duration_seconds", "From the read of a request's last byte to the write of its answer.", "result_code"),
		answers:       desc("seckill_answers_total", "Answers by result code.", "result_code"),
		authenticated: desc("seckill_requests_authenticated_total", "Requests past the eligibility token."),
		pastGate:      desc("seckill_requests_past_gate_total", "Requests past the sold-out gate."),
		passed:        desc("seckill_stage_passed_total", "Requests a stage of the funnel let through.", "stage"),
		rejectedBy:    desc("seckill_stage_rejected_total", "Requests a stage of the funnel turned away.", "stage"),
		connections:   desc("seckill_connections", "Connections open."),
	}
}

// Describe implements prometheus.Collector.
func (m *edgeMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.requests, m.accepted, m.rejected, m.rateLimited, m.soldOut, m.repeated, m.duplicateUser,
		m.duration, m.answers, m.authenticated, m.pastGate, m.passed, m.rejectedBy, m.connections} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *edgeMetrics) Collect(ch chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, n int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	ch <- prometheus.MustNewConstMetric(m.connections, prometheus.GaugeValue, float64(m.stats.Connections.Load()))
	answers := map[seckill.Code]int64{}
	for sku, s := range m.stats.SKUs() {
		labels := skuLabels(sku)
		count(m.requests, s.Requests.Load(), labels...)
		count(m.accepted, s.Accepted.Load(), labels...)
		count(m.repeated, s.Repeated.Load(), labels...)
		count(m.rateLimited, s.Answers[seckill.CodeRateLimited].Load(), labels...)
		count(m.soldOut, s.Answers[seckill.CodeSoldOut].Load(), labels...)
		count(m.duplicateUser, s.Answers[seckill.CodeDuplicateUser].Load(), labels...)
		for _, code := range seckill.Codes() {
			n := s.Answers[code].Load()
			answers[code] += n
			if n > 0 && !code.Accepted() {
				count(m.rejected, n, append(labels, code.String())...)
			}
		}
	}
	for _, code := range seckill.Codes() {
		count(m.answers, answers[code], code.String())
		n, total, atMost := m.stats.Durations[code].Read()
		if n == 0 {
			continue
		}
		buckets := make(map[float64]uint64, len(atMost))
		for i, bound := range access.DurationBounds {
			buckets[bound.Seconds()] = uint64(atMost[i])
		}
		ch <- prometheus.MustNewConstHistogram(m.duration, uint64(n), total.Seconds(), buckets, code.String())
	}
	for _, stage := range admission.Stages() {
		count(m.passed, m.stats.Passed[stage].Load(), stage.String())
		count(m.rejectedBy, m.stats.Rejected[stage].Load(), stage.String())
	}
	count(m.authenticated, m.stats.Passed[admission.StageToken].Load())
	count(m.pastGate, m.stats.Passed[admission.StageGate].Load())
}

func skuLabels(sku reservation.SKU) []string {
	if sku == (reservation.SKU{}) {
		return []string{"", ""}
	}
	return []string{strconv.FormatInt(sku.ActivityID, 10), strconv.FormatInt(sku.SKUID, 10)}
}
