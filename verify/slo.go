package verify

import (
	"fmt"
	"strings"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// CheckSLOs says whether every SLO names a figure that verify recomputes from
// evidence. Whoever writes a plan calls it first.
func CheckSLOs(slos []rundir.SLO) error {
	for _, s := range slos {
		if s.Op != "<" && s.Op != ">=" {
			return fmt.Errorf("slo %q: op %q, must be < or >=", s.Name, s.Op)
		}
		if _, _, err := Figure(&rundir.Run{}, s.Metric); err != nil {
			return fmt.Errorf("slo %q: %w", s.Name, err)
		}
	}
	return nil
}

// scalars are the single figures an SLO may name. The second result says
// whether there was anything to measure.
func scalars() map[string]func(*rundir.Run) (float64, bool) {
	return map[string]func(*rundir.Run) (float64, bool){
		"load.scheduled":     func(r *rundir.Run) (float64, bool) { return ofLoad(r, r.Load.Scheduled) },
		"load.sent":          func(r *rundir.Run) (float64, bool) { return ofLoad(r, r.Load.Sent) },
		"load.completed":     func(r *rundir.Run) (float64, bool) { return ofLoad(r, r.Load.Completed) },
		"load.failed":        func(r *rundir.Run) (float64, bool) { return ofLoad(r, r.Load.Failed) },
		"load.timed_out":     func(r *rundir.Run) (float64, bool) { return ofLoad(r, r.Load.TimedOut) },
		"load.dropped":       func(r *rundir.Run) (float64, bool) { return ofLoad(r, r.Load.Dropped) },
		"load.unfinished":    func(r *rundir.Run) (float64, bool) { return ofLoad(r, r.Load.Unfinished) },
		"load.unanswered":    func(r *rundir.Run) (float64, bool) { return ofLoad(r, r.Load.Scheduled-r.Load.Completed) },
		"load.decided_ratio": func(r *rundir.Run) (float64, bool) { return r.Load.DecidedRatio, r.Load.Scheduled > 0 },

		"orders.accepted":           func(r *rundir.Run) (float64, bool) { return ofOrders(r, r.Orders.Accepted) },
		"orders.created":            func(r *rundir.Run) (float64, bool) { return ofOrders(r, r.Orders.Created) },
		"orders.valid":              func(r *rundir.Run) (float64, bool) { return ofOrders(r, r.Orders.Valid) },
		"orders.rejected":           func(r *rundir.Run) (float64, bool) { return ofOrders(r, r.Orders.Rejected) },
		"orders.oversold":           func(r *rundir.Run) (float64, bool) { return ofOrders(r, r.Orders.Oversold) },
		"orders.conservation_delta": func(r *rundir.Run) (float64, bool) { return ofOrders(r, r.Orders.ConservationDelta) },
		"orders.per_s_peak":         func(r *rundir.Run) (float64, bool) { return ofOrders(r, r.Orders.PerSPeak) },
		"orders.within_3s_ratio":    func(r *rundir.Run) (float64, bool) { return r.Orders.Within3sRatio, r.Orders.Valid > 0 },
		"orders.hand_out_ms":        func(r *rundir.Run) (float64, bool) { return r.Orders.HandOutMS, r.Orders.HandOutMS > 0 },
	}
}

func ofLoad(r *rundir.Run, n int64) (float64, bool) { return float64(n), r.Load.Scheduled > 0 }

func ofOrders(r *rundir.Run, n int64) (float64, bool) { return float64(n), r.Orders.Accepted > 0 }

// distributions are the latencies an SLO may name, with .p50, .p90, .p99,
// .p999 or .max behind; latency_ms.by_code.CODE is one, too.
func distributions() map[string]func(*rundir.Run) rundir.Percentiles {
	return map[string]func(*rundir.Run) rundir.Percentiles{
		"load.send_lag_ms":    func(r *rundir.Run) rundir.Percentiles { return r.Load.SendLagMS },
		"latency_ms.all":      func(r *rundir.Run) rundir.Percentiles { return r.LatencyMS.All },
		"latency_ms.accepted": func(r *rundir.Run) rundir.Percentiles { return r.LatencyMS.Accepted },
		"latency_ms.service":  func(r *rundir.Run) rundir.Percentiles { return r.LatencyMS.Service },
		"orders.latency_ms":   func(r *rundir.Run) rundir.Percentiles { return r.Orders.LatencyMS },
	}
}

// Figure is the figure of run.json at path, e.g. "latency_ms.all.p99", as far
// as evidence gives it, and whether there was anything to measure. An error
// says that there is no such figure.
func Figure(run *rundir.Run, path string) (value float64, measured bool, err error) {
	unknown := fmt.Errorf("metric %q is no figure that verify recomputes", path)
	if f, ok := scalars()[path]; ok {
		value, measured = f(run)
		return value, measured, nil
	}
	dot := strings.LastIndexByte(path, '.')
	if dot < 0 {
		return 0, false, unknown
	}
	var p rundir.Percentiles
	if f, ok := distributions()[path[:dot]]; ok {
		p = f(run)
	} else if code, ok := strings.CutPrefix(path[:dot], "latency_ms.by_code."); ok {
		if _, known := seckill.ParseCode(code); !known {
			return 0, false, unknown
		}
		p = run.LatencyMS.ByCode[code]
	} else {
		return 0, false, unknown
	}
	switch path[dot+1:] {
	case "p50":
		value = p.P50
	case "p90":
		value = p.P90
	case "p99":
		value = p.P99
	case "p999":
		value = p.P999
	case "max":
		value = p.Max
	default:
		return 0, false, unknown
	}
	return value, p.Count > 0, nil
}

// blind names the evidence without which a figure is not known, empty if all
// of it is there: what a file that is missing should have told is no 0.
func (j *Judgement) blind(metric string) string {
	for _, fault := range j.faults {
		if strings.HasPrefix(metric, "orders.") && strings.HasPrefix(fault.File, "stores/") || strings.HasPrefix(fault.File, string(fromHistory)) {
			return fault.Error()
		}
	}
	return ""
}

// judgeSLOs fills in run.SLO; unmeasured names those that had nothing to
// measure.
func (j *Judgement) judgeSLOs(run *rundir.Run) (missed, unmeasured []string) {
	run.SLO = []rundir.SLOResult{}
	for _, s := range j.plan.SLOs {
		value, measured, err := Figure(run, s.Metric)
		why := s.Metric + " measured nothing"
		if missing := j.blind(s.Metric); missing != "" {
			value, measured, why = 0, false, s.Metric+" is not known: "+missing
		}
		r := rundir.SLOResult{Name: s.Name, Metric: s.Metric, Op: s.Op, Target: s.Target, Measured: value, NotMeasured: err != nil || !measured}
		r.OK = err == nil && measured && (s.Op == "<" && value < s.Target || s.Op == ">=" && value >= s.Target)
		run.SLO = append(run.SLO, r)
		switch {
		case err != nil:
			unmeasured = append(unmeasured, fmt.Sprintf("SLO %s: %v", s.Name, err))
		case !measured:
			unmeasured = append(unmeasured, fmt.Sprintf("SLO %s: %s", s.Name, why))
		case !r.OK:
			missed = append(missed, fmt.Sprintf("SLO %s missed: %s must be %s %g and is %.6g", s.Name, s.Metric, s.Op, s.Target, value))
		}
	}
	return missed, unmeasured
}
