package loadgen

import (
	"fmt"
	"io"

	"github.com/hotsku/hotsku/loadgen/hdr"
)

// Names of Histograms; the histogram of code N is HistogramCode + N.
const (
	HistogramLatency  = "latency"
	HistogramAccepted = "accepted"
	HistogramService  = "service"
	HistogramSendLag  = "send_lag"
	HistogramCode     = "code_"
)

// Histograms are the run's histograms by name.
func (r *Result) Histograms() hdr.Set {
	s := hdr.Set{HistogramLatency: r.Latency, HistogramAccepted: r.Accepted, HistogramService: r.Service, HistogramSendLag: r.SendLag}
	for code, h := range r.ByCode {
		s[fmt.Sprint(HistogramCode, code)] = h
	}
	return s
}

// WriteHistogramLog writes the run's histograms in HdrHistogram's log format.
func (r *Result) WriteHistogramLog(w io.Writer) error {
	return hdr.Log{Start: r.Started, Elapsed: r.Elapsed, Set: r.Histograms()}.Write(w)
}
