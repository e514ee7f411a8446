package loadgen_test

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/hotsku/hotsku/loadgen"
)

func TestConfigErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	good := loadgen.Config{Addrs: []string{"127.0.0.1:1"}, Schedule: constant(t, 1, time.Second), NewSource: newPosts}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		spoil func(*loadgen.Config)
		want  string
	}{
		{"no address", func(c *loadgen.Config) { c.Addrs = nil }, "load generator config: no address: give at least one host:port"},
		{"no port", func(c *loadgen.Config) { c.Addrs = []string{"x"} }, `load generator config: address "x": give host:port`},
		{"no schedule", func(c *loadgen.Config) { c.Schedule = nil }, "load generator config: the schedule offers no request: give a rate and a duration"},
		{"no source", func(c *loadgen.Config) { c.NewSource = nil }, "load generator config: no source of requests"},
		{"negative connections", func(c *loadgen.Config) { c.Conns = -1 }, "load generator config: -1 connections: give 1 to 10000"},
		{"absurd depth", func(c *loadgen.Config) { c.Depth = 1 << 20 }, "load generator config: depth 1048576: give 1 to 65536 requests in flight a connection"},
		{"negative timeout", func(c *loadgen.Config) { c.Timeout = -1 }, "load generator config: timeout -1ns: give at least 1ms"},
	} {
		cfg := good
		tc.spoil(&cfg)
		res, err := loadgen.Run(t.Context(), cfg)
		if res != nil || !errors.Is(err, loadgen.ErrConfig) || err.Error() != tc.want {
			t.Errorf("%s: result %v, error %v", tc.name, res, err)
		}
	}
}

func TestThirtyThousandASecondAreExact(t *testing.T) {
	addr, _ := startBareServer(t)
	last := loadgen.Live{}
	res, err := loadgen.Run(t.Context(), loadgen.Config{
		Addrs: []string{addr}, Schedule: constant(t, 30_000, time.Second), NewSource: newPosts,
		OnProgress: func(l loadgen.Live) { last = l },
	})
	if err != nil {
		t.Fatal(err)
	}
	if res.Completed != 30_000 || res.Scheduled != 30_000 {
		t.Errorf("completed %d of %d, want 30000", res.Completed, res.Scheduled)
	}
	if last.Completed != 30_000 || last.InFlight != 0 {
		t.Errorf("the last progress says %+v", last)
	}
}

func TestTheHotPathDoesNotAllocate(t *testing.T) {
	addr, _ := startBareServer(t)
	mallocs := func(requests float64) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := loadgen.Run(t.Context(), loadgen.Config{
			Addrs: []string{addr}, Schedule: constant(t, requests, time.Second), NewSource: newPosts, HistoryDir: t.TempDir(),
		})
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	few, many := mallocs(1000), mallocs(51_000)
	// The live line and the runtime allocate by time, not by request: on a busy
	// machine that is a hundredth of an allocation a request.
	if per := (float64(many) - float64(few)) / 50_000; per > 0.1 {
		t.Errorf("%.3f allocations per request, want none", per)
	}
}

func TestTheStartIsWaitedFor(t *testing.T) {
	t.Parallel()
	var s seen
	addr := answering(t, &s, func(n uint64) (string, error) { return answerTo(n, 200, ""), nil })
	start := make(chan struct{})
	var opened time.Time
	res := load(t, t.Context(), loadgen.Config{
		Addrs: []string{addr, addr}, Schedule: constant(t, 100, 100*time.Millisecond), Conns: 2, Start: start,
		OnReady: func() { opened = time.Now(); close(start) },
	})
	if opened.IsZero() || res.Started.Before(opened) || res.Completed != 10 {
		t.Errorf("ready %v, started %v, completed %d", opened, res.Started, res.Completed)
	}
}

func TestHistogramLogHoldsAllHistograms(t *testing.T) {
	t.Parallel()
	var s seen
	addr := answering(t, &s, func(n uint64) (string, error) { return answerTo(n, 200+int(n%2)*300, ""), nil })
	res := load(t, t.Context(), loadgen.Config{
		Addrs: []string{addr}, Schedule: constant(t, 1000, 200*time.Millisecond), Conns: 2, Accepted: []uint8{2},
	})
	var buf bytes.Buffer
	if err := res.WriteHistogramLog(&buf); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	r := hdrhistogram.NewHistogramLogReader(&buf)
	for {
		h, err := r.NextIntervalHistogram()
		if err == io.EOF || h == nil {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got[h.Tag()] = h.TotalCount()
	}
	for tag, want := range map[string]int64{"latency": 200, "service": 200, "send_lag": 200, "accepted": 100, "code_2": 100, "code_5": 100} {
		if got[tag] != want {
			t.Errorf("%s holds %d, want %d", tag, got[tag], want)
		}
	}
}
