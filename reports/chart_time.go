package reports

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/hotsku/hotsku/verify/rundir"
)

// maxSteps is how many steps a chart over time draws; longer series are
// folded, so that the page stays small.
const maxSteps = 600

// steps is a series ready to draw.
type steps struct {
	points []rundir.SeriesPoint
	stepMS int64
	folded int // steps of the measurement in one drawn
}

// newSteps checks and folds a series: counts are summed, latencies take the
// worst of the fold.
func newSteps(m *rundir.Measurements) steps {
	if m == nil || m.StepMS <= 0 {
		return steps{}
	}
	s := steps{m.Series, m.StepMS, 1}
	if len(s.points) <= maxSteps {
		return s
	}
	s.folded = (len(m.Series) + maxSteps - 1) / maxSteps
	s.stepMS = m.StepMS * int64(s.folded)
	s.points = nil
	for at := 0; at < len(m.Series); at += s.folded {
		group := m.Series[at:min(at+s.folded, len(m.Series))]
		sum := rundir.SeriesPoint{AtMS: group[0].AtMS, Codes: map[string]int64{}}
		for _, g := range group {
			sum.Scheduled += g.Scheduled
			sum.Completed += g.Completed
			sum.P50MS = math.Max(sum.P50MS, g.P50MS)
			sum.P99MS = math.Max(sum.P99MS, g.P99MS)
			sum.MaxMS = math.Max(sum.MaxMS, g.MaxMS)
			for code, n := range g.Codes {
				sum.Codes[code] += n
			}
		}
		s.points = append(s.points, sum)
	}
	return s
}

// bounds are the ends of the series in seconds.
func (s steps) bounds() (lo, hi float64) {
	first, last := s.points[0].AtMS, s.points[0].AtMS
	for _, p := range s.points {
		first, last = min(first, p.AtMS), max(last, p.AtMS)
	}
	return float64(first) / 1000, float64(last+s.stepMS) / 1000
}

// timeChart shows latency over time above the answers per second, on one
// time axis. nil if there is nothing to show.
func timeChart(in Input) *chart {
	s := newSteps(in.Measurements)
	if len(s.points) == 0 {
		return nil
	}
	wide, narrow := frameWide, frameNarrow
	wide.h, narrow.h = 470, 430
	legend := []legendEntry{{"line main", "P50"}, {"line tail", "P99"}, {"line max", "max"}}
	goal, hasGoal := in.p99Goal()
	if hasGoal {
		legend = append(legend, legendEntry{"line goal", "SLO: P99 " + sloTarget(goal)})
	}
	legend = append(legend, legendEntry{"line rate", "offered"})
	for g, used := range s.groupsUsed() {
		if used {
			legend = append(legend, legendEntry{"box group-" + fmt.Sprint(g), groupNames[g]})
		}
	}
	if len(in.run().Faults) > 0 {
		legend = append(legend, legendEntry{"box fault", "fault at work"})
	}
	return inBoth("chart-time", "Latency and answers over time", in.timeDesc(s), legend, wide, narrow, func(f frame) []*plot.Plot {
		top, bottom := newPlot(f), newPlot(f)
		s.drawLatency(top, goal, hasGoal)
		s.drawAnswers(bottom)
		lo, hi := s.bounds()
		for _, fault := range in.run().Faults {
			drawFault(top, fault, lo, hi)
			drawFault(bottom, fault, lo, hi)
		}
		marks := timeTicks(lo, hi, f.xTicks)
		for _, p := range []*plot.Plot{top, bottom} {
			p.X.Min, p.X.Max = lo, hi
			p.X.Tick.Marker = marks
		}
		top.X.Tick.Marker = unlabelled(marks)
		bottom.X.Label.Text = "time since the load began, by intended send time"
		return []*plot.Plot{top, bottom}
	})
}

// p99Goal is the SLO on the P99 of all answers.
func (in Input) p99Goal() (rundir.SLOResult, bool) {
	for _, s := range in.run().SLO {
		if s.Metric == "latency_ms.all.p99" && s.Target > 0 && finite(s.Target) {
			return s, true
		}
	}
	return rundir.SLOResult{}, false
}

func (in Input) timeDesc(s steps) string {
	var worst, worstAt float64
	for _, p := range s.points {
		if p.P99MS > worst {
			worst, worstAt = p.P99MS, float64(p.AtMS)/1000
		}
	}
	lo, hi := s.bounds()
	return fmt.Sprintf("Above: P50, P99 and maximum latency on a log axis from %s to %s; the worst P99 of a step is %s at %s. Below: answers per second by meaning, with the offered rate as a line.",
		axisS(lo), axisS(hi), ms(worst), axisS(worstAt))
}

func (s steps) groupsUsed() (used [groups]bool) {
	for _, p := range s.points {
		for code, n := range p.Codes {
			if n > 0 {
				used[groupOf(code)] = true
			}
		}
	}
	return used
}

func (s steps) drawLatency(p *plot.Plot, goal rundir.SLOResult, hasGoal bool) {
	var p50, p99, top plotter.XYs
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, pt := range s.points {
		x := (float64(pt.AtMS) + float64(s.stepMS)/2) / 1000
		values := [3]float64{logMS(pt.P50MS), logMS(pt.P99MS), logMS(pt.MaxMS)}
		for i, v := range values {
			if pt.Completed == 0 && pt.MaxMS == 0 {
				values[i] = math.NaN() // nothing to measure, which is not zero latency
			} else if finite(v) {
				lo, hi = math.Min(lo, v), math.Max(hi, v)
			}
		}
		p50 = append(p50, plotter.XY{X: x, Y: values[0]})
		p99 = append(p99, plotter.XY{X: x, Y: values[1]})
		top = append(top, plotter.XY{X: x, Y: values[2]})
	}
	if hasGoal {
		y := logMS(goal.Target)
		lo, hi = math.Min(lo, y), math.Max(hi, y)
	}
	p.Y.Tick.Marker, p.Y.Min, p.Y.Max = logTicks(lo, hi)
	if hasGoal {
		from, to := s.bounds()
		y := logMS(goal.Target)
		line(p, plotter.XYs{{X: from, Y: y}, {X: to, Y: y}}, inkGoal, 1.25, 5, 4)
	}
	line(p, top, inkMax, 1.25)
	line(p, p50, inkMain, 2)
	line(p, p99, inkTail, 2)
	p.Y.Label.Text = "latency (log)"
}

// drawAnswers stacks the answers per second by meaning, as steps, and draws
// the offered rate over them.
func (s steps) drawAnswers(p *plot.Plot) {
	perS := 1000 / float64(s.stepMS)
	base := make([]float64, len(s.points))
	top := 0.0
	for g := groups - 1; g >= 0; g-- {
		heights := make([]float64, len(s.points))
		used := false
		for i, pt := range s.points {
			var n int64
			for code, c := range pt.Codes {
				if groupOf(code) == g && c > 0 {
					n += c
				}
			}
			heights[i] = base[i] + float64(n)*perS
			used = used || n > 0
			top = math.Max(top, heights[i])
		}
		if used {
			area(p, s.outline(base, heights), inkGroup+ink(g))
		}
		base = heights
	}
	var offered plotter.XYs
	for _, pt := range s.points {
		y := float64(pt.Scheduled) * perS
		top = math.Max(top, y)
		x := float64(pt.AtMS) / 1000
		offered = append(offered, plotter.XY{X: x, Y: y}, plotter.XY{X: x + float64(s.stepMS)/1000, Y: y})
	}
	line(p, offered, inkRate, 1.5, 2, 3)
	p.Y.Min = 0
	p.Y.Tick.Marker, p.Y.Max = linearTicks(top, 4, axisPerS)
	p.Y.Label.Text = "answers"
}

// outline runs along the tops from left to right and back along the bases.
func (s steps) outline(base, tops []float64) plotter.XYs {
	var out plotter.XYs
	left := func(i int) float64 { return float64(s.points[i].AtMS) / 1000 }
	right := func(i int) float64 { return float64(s.points[i].AtMS+s.stepMS) / 1000 }
	for i := range s.points {
		out = append(out, plotter.XY{X: left(i), Y: tops[i]}, plotter.XY{X: right(i), Y: tops[i]})
	}
	for i := len(s.points) - 1; i >= 0; i-- {
		out = append(out, plotter.XY{X: right(i), Y: base[i]}, plotter.XY{X: left(i), Y: base[i]})
	}
	return out
}

// drawFault marks when a fault was at work: a band, or a line if it was
// momentary.
func drawFault(p *plot.Plot, f rundir.FaultResult, lo, hi float64) {
	at, until := float64(f.AtMS)/1000, float64(f.UntilMS)/1000
	if at > hi || (until < lo && at < lo) {
		return
	}
	p.Add(band{math.Max(at, lo), math.Min(math.Max(until, at), hi)})
}

// band is a span of the x axis over the whole height.
type band struct{ from, to float64 }

// Plot implements plot.Plotter.
func (b band) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	x0, x1 := x(b.from), x(b.to)
	if x1 > x0 {
		c.FillPolygon(inkFaultBand.color(), []vg.Point{{X: x0, Y: c.Min.Y}, {X: x1, Y: c.Min.Y}, {X: x1, Y: c.Max.Y}, {X: x0, Y: c.Max.Y}})
	}
	c.StrokeLine2(draw.LineStyle{Color: inkFault.color(), Width: 1.5}, x0, c.Min.Y, x0, c.Max.Y)
}

// timeTicks marks whole steps of a time axis in seconds.
func timeTicks(lo, hi float64, n int) ticks {
	step := niceStep(hi-lo, n)
	var out ticks
	for v := math.Ceil(lo/step-1e-9) * step; v <= hi+1e-9*step && len(out) < 100; v += step {
		out = append(out, plot.Tick{Value: v, Label: axisS(v)})
	}
	return out
}

func unlabelled(t ticks) ticks {
	out := make(ticks, len(t))
	for i, mark := range t {
		out[i] = plot.Tick{Value: mark.Value}
	}
	return out
}
