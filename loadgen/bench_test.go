package loadgen_test

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/hotsku/hotsku/loadgen"
)

var (
	measuredRate  = flag.Float64("measure.rate", 300_000, "requests per second of BenchmarkOffer")
	measuredSpan  = flag.Duration("measure.duration", 2*time.Second, "duration of BenchmarkOffer")
	measuredConns = flag.Int("measure.conns", loadgen.ConnsDefault, "connections of BenchmarkOffer")
	measuredDepth = flag.Int("measure.depth", loadgen.DepthDefault, "depth of BenchmarkOffer")
)

// BenchmarkOffer offers a rate to a bare server in a process of its own on the
// same cores, history on, and reports what the generator cost. Run it with
// -benchtime=1x.
func BenchmarkOffer(b *testing.B) {
	addr, _ := startBareServer(b)
	for b.Loop() {
		b.StopTimer()
		dir := b.TempDir()
		b.StartTimer()
		res, err := loadgen.Run(context.Background(), loadgen.Config{
			Addrs:      []string{addr},
			Schedule:   constant(b, *measuredRate, *measuredSpan),
			NewSource:  newPosts,
			Conns:      *measuredConns,
			Depth:      *measuredDepth,
			HistoryDir: dir,
		})
		if err != nil {
			b.Fatal(err)
		}
		if res.Completed != res.Scheduled {
			b.Errorf("%d of %d completed", res.Completed, res.Scheduled)
		}
		ms := func(d time.Duration) float64 { return float64(d) / 1e6 }
		lag, all, service := loadgen.Summarize(res.SendLag), loadgen.Summarize(res.Latency), loadgen.Summarize(res.Service)
		b.ReportMetric(res.CPU.Seconds()/float64(res.Sent)*1e6, "cpu-µs/request")
		b.ReportMetric(res.CPU.Seconds()/res.Span.Seconds(), "cores")
		b.ReportMetric(ms(lag.P99), "lag-p99-ms")
		b.ReportMetric(ms(lag.Max), "lag-max-ms")
		b.ReportMetric(ms(all.P50), "p50-ms")
		b.ReportMetric(ms(all.P99), "p99-ms")
		b.ReportMetric(ms(service.P99), "service-p99-ms")
		b.ReportMetric(ms(res.ConnsFull), "conns-full-ms")
		b.ReportMetric(float64(res.HistoryStalls), "history-stalls")
		b.ReportMetric(float64(res.InFlightMax), "in-flight-max")
	}
}
