// Package hdr keeps a run's latencies: histograms of nanoseconds by name, read
// and written in the formats that HdrHistogram's own tools use. It imports
// nothing of the generator.
package hdr

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histograms hold nanoseconds with three significant digits, at a resolution
// of a microsecond; longer than Max counts as Max.
const (
	Max    = int64(24 * time.Hour)
	unit   = 1000
	digits = 3
)

// ErrLog is in the chain of errors about what a histogram log holds.
var ErrLog = errors.New("bad histogram log")

// New makes an empty histogram.
func New() *hdrhistogram.Histogram { return hdrhistogram.New(unit, Max, digits) }

// Observe adds a latency; it cannot fail.
func Observe(h *hdrhistogram.Histogram, ns int64) { _ = h.RecordValue(min(max(ns, 0), Max)) }

// Set is histograms by name.
type Set map[string]*hdrhistogram.Histogram

// Merge adds the counts of o.
func (s Set) Merge(o Set) {
	for name, h := range o {
		if s[name] == nil {
			s[name] = New()
		}
		s[name].Merge(h)
	}
}

// Log is a run's histograms and when it took place.
type Log struct {
	Start   time.Time
	Elapsed time.Duration
	Set     Set
}

// Write writes HdrHistogram's log format, one tagged interval for each
// histogram, covering the whole run.
func (l Log) Write(w io.Writer) error {
	lw := hdrhistogram.NewHistogramLogWriter(w)
	start := l.Start.UnixMilli()
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
	for _, name := range slices.Sorted(maps.Keys(l.Set)) {
		h := hdrhistogram.Import(l.Set[name].Export())
		h.SetTag(name)
		h.SetStartTimeMs(start)
		h.SetEndTimeMs(start + l.Elapsed.Milliseconds())
		if err := lw.OutputIntervalHistogram(h); err != nil {
			return fmt.Errorf("write histogram %s: %w", name, err)
		}
	}
	return nil
}

// Read reads what Write wrote. A name that comes twice, or an interval without
// one, is ErrLog.
func Read(r io.Reader) (Log, error) {
	l := Log{Set: Set{}}
	lr := hdrhistogram.NewHistogramLogReader(r)
	for {
		h, err := lr.NextIntervalHistogram()
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return l, fmt.Errorf("%w: %w", ErrLog, err)
		case h == nil:
			return l, nil
		case h.Tag() == "" || l.Set[h.Tag()] != nil:
			return l, fmt.Errorf("%w: the histogram %q comes without a name or twice", ErrLog, h.Tag())
		}
		l.Set[h.Tag()] = h
		l.Start = time.UnixMilli(h.StartTimeMs())
		l.Elapsed = time.Duration(h.EndTimeMs()-h.StartTimeMs()) * time.Millisecond
	}
}

// ticksPerHalf is how finely WriteText goes on between a percentile and 100.
const ticksPerHalf = 5

// WriteText writes one histogram as HdrHistogram's percentile text (.hgrm), in
// milliseconds.
func WriteText(w io.Writer, h *hdrhistogram.Histogram) error {
	if _, err := h.PercentilesPrint(w, ticksPerHalf, float64(time.Millisecond)); err != nil {
		return fmt.Errorf("write percentiles: %w", err)
	}
	return nil
}

// Summary are the usual figures of a histogram, in milliseconds.
type Summary struct {
	Count uint64  `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
}

// Summarize reads them off h; nil has none.
func Summarize(h *hdrhistogram.Histogram) Summary {
	if h == nil || h.TotalCount() == 0 {
		return Summary{}
	}
	return Summary{Count: uint64(h.TotalCount()), Mean: h.Mean() / 1e6, P50: AtMS(h, 50), P90: AtMS(h, 90), P99: AtMS(h, 99), P999: AtMS(h, 99.9), Max: AtMS(h, 100)}
}

// AtMS is the value at a percentile, in milliseconds.
func AtMS(h *hdrhistogram.Histogram, percent float64) float64 {
	return float64(h.ValueAtPercentile(percent)) / 1e6
}
