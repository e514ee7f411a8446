package loadgen

import (
	"fmt"
	"io"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// WriteHistogramLog writes the run's histograms in HdrHistogram's log format,
// one tagged interval each, covering the whole run: latency, accepted,
// service, send_lag and code_N for each code. Values are nanoseconds.
func (r *Result) WriteHistogramLog(w io.Writer) error {
	lw := hdrhistogram.NewHistogramLogWriter(w)
	start := r.Started.UnixMilli()
	for _, step := range []func() error{
		func() error { return lw.OutputComment("[latencies in nanoseconds, one tagged interval per histogram]") },
		lw.OutputLogFormatVersion,
		func() error { return lw.OutputStartTime(start) },
		lw.OutputLegend,
	} {
		if err := step(); err != nil {
			return fmt.Errorf("write histogram log: %w", err)
		}
	}
	interval := func(tag string, h *hdrhistogram.Histogram) error {
		tagged := hdrhistogram.Import(h.Export())
		tagged.SetTag(tag)
		tagged.SetStartTimeMs(start)
		tagged.SetEndTimeMs(start + r.Elapsed.Milliseconds())
		if err := lw.OutputIntervalHistogram(tagged); err != nil {
			return fmt.Errorf("write histogram %s: %w", tag, err)
		}
		return nil
	}
	for _, named := range []struct {
		tag string
		h   *hdrhistogram.Histogram
	}{
		{"latency", r.Latency}, {"accepted", r.Accepted}, {"service", r.Service}, {"send_lag", r.SendLag},
	} {
		if err := interval(named.tag, named.h); err != nil {
			return err
		}
	}
	for code := range 256 {
		if h := r.ByCode[uint8(code)]; h != nil {
			if err := interval(fmt.Sprintf("code_%d", code), h); err != nil {
				return err
			}
		}
	}
	return nil
}
