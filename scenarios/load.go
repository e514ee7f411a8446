package scenarios

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/hotsku/hotsku/loadgen"
	"github.com/hotsku/hotsku/loadgen/pace"
	"github.com/hotsku/hotsku/scenarios/customers"
	"github.com/hotsku/hotsku/scenarios/traffic"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// acceptedCodes are those of the accepted class.
func acceptedCodes() []uint8 {
	var codes []uint8
	for _, c := range seckill.Codes() {
		if c.Accepted() {
			codes = append(codes, uint8(c))
		}
	}
	return codes
}

// generator builds the generator's configuration for one activity.
func (r *runner) generator(schedule pace.Schedule, activity int64, workload rundir.Workload, addrs []string) (loadgen.Config, error) {
	sources, err := traffic.Sources(traffic.Params{Workload: workload, ActivityID: activity, SKUID: skuID,
		Key: r.key, ExpiresAt: time.Now().Add(saleLength).Unix(), Host: "seckill"})
	if err != nil {
		return loadgen.Config{}, err
	}
	cfg := loadgen.Config{Addrs: addrs, Schedule: schedule, NewSource: func() loadgen.Source { return sources() },
		Extract: traffic.Extract, Accepted: acceptedCodes(),
		Conns: r.s.Load.Connections, Depth: r.s.Load.Depth, Timeout: r.s.Load.Timeout, Grace: r.s.Load.Timeout + time.Second}
	return cfg, cfg.Validate()
}

// load offers the scenario's load and keeps its history.
func (r *runner) load(ctx context.Context, cfg loadgen.Config) (*loadgen.Result, error) {
	start := make(chan struct{})
	cfg.HistoryDir = r.dir.History()
	cfg.OnProgress = r.o.Progress.Load
	cfg.Start = start
	cfg.OnReady = func() {
		r.timeline.LoadStarted(time.Now())
		r.timeline.Add("bench", "generator", "load started", nil, "")
		close(r.loading)
		close(start)
	}
	result, err := loadgen.Run(ctx, cfg)
	if err != nil {
		return result, fmt.Errorf("offer the load: %w", err)
	}
	r.timeline.Add("bench", "generator", "load ended", nil, "")
	if result.Interrupted != nil {
		return result, fmt.Errorf("the load was interrupted: %w", result.Interrupted)
	}
	return result, nil
}

// visitEvery is the time between two buyers who come back.
const visitEvery = 10 * time.Millisecond

// visitors has buyers ask, pay and cancel while the load lasts, if the fleet
// has processes that serve them.
func (r *runner) visitors(ctx context.Context) error {
	addrs, err := r.membersServing("orders")
	if err != nil {
		return nil // none: then nobody comes
	}
	buyers, err := r.customers(addrs)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-r.loading:
	}
	buyers.Run(ctx)
	r.timeline.Add("bench", "customers", "left", buyers.Stats.Hits(), "")
	return nil
}

func (r *runner) customers(addrs []string) (*customers.Customers, error) {
	return customers.New(customers.Config{Addrs: addrs, Workload: r.plan.Workload, RatePerS: r.s.Load.RatePerS,
		ActivityID: activityID, SKUID: skuID, Key: r.key, ExpiresAt: time.Now().Add(saleLength).Unix(), Every: visitEvery, Notes: r.notes})
}

// warmUp sells another activity before any fault is set up, so that compilers,
// plans and connections are not what the first second measures. It is not
// judged.
func (r *runner) warmUp(ctx context.Context, addrs []string) error {
	schedule, err := pace.NewConstant(warmUpRate, warmUpDuration)
	if err != nil {
		return err
	}
	cfg, err := r.generator(schedule, warmUpActivityID, rundir.Workload{Seed: r.o.Seed + 1, FirstUser: firstUser}, addrs)
	if err != nil {
		return err
	}
	if _, err := loadgen.Run(ctx, cfg); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	return r.settled(ctx, warmUpLimit)
}

// The warm-up: fewer units than requests, so that selling out is warm too.
const (
	warmUpRate     = 1500
	warmUpDuration = 4 * time.Second
	warmUpStock    = 4000
	warmUpLimit    = 20 * time.Second
)

// writeMeasurements saves what the generator saw, for charts and for others'
// tools.
func (r *runner) writeMeasurements(result *loadgen.Result) error {
	m := rundir.Measurements{Schema: rundir.MeasurementsSchema, StepMS: result.PointWidth.Milliseconds(), Curve: curve(result.Latency),
		Curves: []rundir.NamedCurve{{Name: "accepted", Curve: curve(result.Accepted)}, {Name: "service", Curve: curve(result.Service)},
			{Name: "send lag", Curve: curve(result.SendLag)}}}
	for _, p := range result.Series {
		point := rundir.SeriesPoint{AtMS: p.From.Milliseconds(), Scheduled: int64(p.Scheduled), Completed: int64(p.Completed),
			P50MS: ms(p.P50), P99MS: ms(p.P99), MaxMS: ms(p.Max), Codes: map[string]int64{}}
		for code, n := range p.Codes {
			point.Codes[codeName(code)] += int64(n)
		}
		m.Series = append(m.Series, point)
	}
	f, err := os.Create(r.dir.LatencyLog())
	if err != nil {
		return fmt.Errorf("write latency log: %w", err)
	}
	if err := errors.Join(result.WriteHistogramLog(f), f.Close()); err != nil {
		return fmt.Errorf("write latency log: %w", err)
	}
	return rundir.WriteJSON(r.dir.Measurements(), &m)
}

func codeName(code uint8) string {
	if code == 0 {
		return "(no code)"
	}
	return seckill.Code(code).String()
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// curve samples a histogram of nanoseconds densely where it matters.
func curve(h *hdrhistogram.Histogram) []rundir.CurvePoint {
	if h == nil || h.TotalCount() == 0 {
		return nil
	}
	var points []rundir.CurvePoint
	for _, b := range h.CumulativeDistribution() {
		points = append(points, rundir.CurvePoint{Quantile: b.Quantile / 100, MS: float64(b.ValueAt) / 1e6})
	}
	return points
}
