package summary

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/hotsku/hotsku/loadgen"
	"github.com/hotsku/hotsku/loadgen/hdr"
	"github.com/hotsku/hotsku/loadgen/plot"
)

// Files of a run's folder.
const (
	fileJSON    = "load.json"
	fileLog     = "latency.hlog"
	fileText    = "latency.hgrm"
	fileSeries  = "series.csv"
	fileMetrics = "metrics.prom"
	fileTime    = "latency-over-time.svg"
	fileCurve   = "latency-percentiles.svg"
	dirHistory  = "history"
)

// ErrDir is in the chain of errors about a folder that cannot be used.
var ErrDir = errors.New("run folder")

// HistoryDir is where the history of the run in dir is.
func HistoryDir(dir string) string { return filepath.Join(dir, dirHistory) }

// Prepare makes the folder of a run, or takes an empty one.
func Prepare(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) > 0:
		return fmt.Errorf("%w: %s is not empty: give a new or empty one", ErrDir, dir)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w: %s is a file, or below one: give a new or empty folder", ErrDir, dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w: give one that you may read and write", ErrDir, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("%w: %w: give one that you may write", ErrDir, err)
	}
	return nil
}

// Save writes every file but the history into dir.
func (s *Summary) Save(dir string) error {
	curves := []plot.Curve{{Name: "latency", Histogram: s.Histograms[loadgen.HistogramLatency]},
		{Name: "service", Histogram: s.Histograms[loadgen.HistogramService]}, {Name: "send lag", Histogram: s.Histograms[loadgen.HistogramSendLag]}}
	var steps []plot.Step
	for _, p := range s.Series {
		steps = append(steps, plot.Step{AtMS: p.AtMS, Scheduled: p.Scheduled, Completed: p.Completed, Lost: p.Lost, P50: p.P50, P99: p.P99, Max: p.Max})
	}
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{fileLog, hdr.Log{Start: s.StartedAt, Elapsed: secondsDuration(s.ElapsedS), Set: s.Histograms}.Write},
		{fileText, func(w io.Writer) error { return hdr.WriteText(w, s.Histograms[loadgen.HistogramLatency]) }},
		{fileSeries, s.CSV},
		{fileMetrics, s.Prometheus},
		{fileTime, func(w io.Writer) error { return plot.OverTime(w, steps, s.StepMS) }},
		{fileCurve, func(w io.Writer) error { return plot.Percentiles(w, curves) }},
		{fileJSON, s.JSON}, // last: what it is in is whole
	} {
		if err := write(filepath.Join(dir, f.name), f.write); err != nil {
			return err
		}
	}
	return nil
}

func write(path string, to func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("save the run: %w", err)
	}
	if err := errors.Join(to(f), f.Close()); err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	return nil
}

// Load reads the folder of a run, all but the history.
func Load(dir string) (*Summary, error) {
	path := filepath.Join(dir, fileJSON)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w: give a folder that hotsku load --out left", ErrDir, err)
	}
	var s Summary
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDir, path, err)
	}
	if s.Schema != Schema {
		return nil, fmt.Errorf("%w: %s: schema %d, this build reads %d", ErrDir, path, s.Schema, Schema)
	}
	f, err := os.Open(filepath.Join(dir, fileLog))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDir, err)
	}
	defer f.Close()
	log, err := hdr.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDir, f.Name(), err)
	}
	s.Histograms = log.Set
	return &s, s.whole()
}

// whole checks that the histograms are those of the counts.
func (s *Summary) whole() error {
	if err := s.Account.Balanced(); err != nil {
		return fmt.Errorf("%w: %w", ErrDir, err)
	}
	for name, want := range map[string]uint64{
		loadgen.HistogramLatency: s.Account.Completed + s.Account.TimedOut + s.Account.Unfinished,
		loadgen.HistogramSendLag: s.Account.Sent,
	} {
		if h := s.Histograms[name]; h == nil || uint64(h.TotalCount()) != want {
			return fmt.Errorf("%w: the histogram %s does not hold the %d requests that were counted", ErrDir, name, want)
		}
	}
	return nil
}
