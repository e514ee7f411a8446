package reports

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/hotsku/hotsku/verify/rundir"
)

// nines is the place of a quantile on an axis where every further nine takes
// the same room: 0.9 is 1, 0.99 is 2.
func nines(q float64) float64 { return -math.Log10(1 - q) }

// curveLine is a percentile curve ready to draw.
type curveLine struct {
	name, class string
	ink         ink
	points      []rundir.CurvePoint
}

// curveChart shows latency by percentile, both on log axes. nil if there is
// no curve.
func curveChart(in Input) *chart {
	lines := curveLines(in.Measurements)
	if len(lines) == 0 {
		return nil
	}
	var legend []legendEntry
	for _, l := range lines {
		legend = append(legend, legendEntry{"line " + l.class, l.name})
	}
	goals := in.quantileGoals()
	for _, g := range goals {
		legend = append(legend, legendEntry{"line goal", "SLO: " + g.text})
	}
	wide, narrow := frameWide, frameNarrow
	wide.h, narrow.h = 340, 300
	return inBoth("chart-curve", "Latency by percentile", curveDesc(lines, goals), legend, wide, narrow, func(f frame) []*plot.Plot {
		p := newPlot(f)
		drawCurves(p, f, lines, goals)
		return []*plot.Plot{p}
	})
}

func curveLines(m *rundir.Measurements) []curveLine {
	if m == nil {
		return nil
	}
	styles := []struct {
		class string
		ink   ink
	}{{"tail", inkTail}, {"max", inkMax}, {"fourth", inkFourth}}
	var out []curveLine
	if len(m.Curve) > 0 {
		out = append(out, curveLine{"all answers", "main", inkMain, m.Curve})
	}
	for i, c := range m.Curves {
		if len(c.Curve) > 0 {
			s := styles[i%len(styles)]
			out = append(out, curveLine{c.Name, s.class, s.ink, c.Curve})
		}
	}
	return out
}

// quantileGoal is an SLO that is a point of the percentile plane.
type quantileGoal struct {
	quantile, target float64
	text             string
}

// quantileGoals are the latency SLOs on a percentile of answers, one for each
// (percentile, target).
func (in Input) quantileGoals() []quantileGoal {
	quantiles := map[string]float64{"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
	var out []quantileGoal
	seen := map[[2]float64]bool{}
	for _, s := range in.run().SLO {
		path := strings.Split(s.Metric, ".")
		q, ok := quantiles[path[len(path)-1]]
		if !ok || path[0] != "latency_ms" || s.Target <= 0 || !finite(s.Target) || seen[[2]float64{q, s.Target}] {
			continue
		}
		seen[[2]float64{q, s.Target}] = true
		out = append(out, quantileGoal{q, s.Target, strings.ToUpper(path[len(path)-1][:1]) + decimal(q*100, trimmed(q*100)) + " " + sloTarget(s)})
	}
	return out
}

func curveDesc(lines []curveLine, goals []quantileGoal) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Latency against percentile for %s; every further nine takes the same width.", plural(len(lines), "set of answers"))
	for _, g := range goals {
		fmt.Fprintf(&b, " The SLO %s is a dashed line.", g.text)
	}
	return b.String()
}

func drawCurves(p *plot.Plot, f frame, lines []curveLine, goals []quantileGoal) {
	const maxStep = 0.15
	right, lo, hi := 2.0, math.Inf(1), math.Inf(-1)
	for _, l := range lines {
		for _, pt := range l.points {
			if x := nines(pt.Quantile); finite(x) && x >= 0 {
				right = math.Max(right, math.Min(x, 9))
			}
			if y := logMS(pt.MS); finite(y) {
				lo, hi = math.Min(lo, y), math.Max(hi, y)
			}
		}
	}
	right += maxStep
	for _, g := range goals {
		right = math.Max(right, nines(g.quantile)+0.3)
		lo, hi = math.Min(lo, logMS(g.target)), math.Max(hi, logMS(g.target))
	}
	p.X.Min, p.X.Max = 0, right
	p.X.Tick.Marker = nineTicks(right, f.w < 500)
	p.X.Label.Text = "percentile of answers"
	p.Y.Label.Text = "latency (log)"
	p.Y.Tick.Marker, p.Y.Min, p.Y.Max = logTicks(lo, hi)

	for _, g := range goals {
		x, y := nines(g.quantile), logMS(g.target)
		line(p, plotter.XYs{{X: 0, Y: y}, {X: right, Y: y}}, inkGoal, 1.25, 5, 4)
		for _, dot := range []struct {
			k ink
			r vg.Length
		}{{inkGoal, 6}, {inkCard, 4}} {
			p.Add(&plotter.Scatter{XYs: plotter.XYs{{X: x, Y: y}}, GlyphStyle: draw.GlyphStyle{Color: dot.k.color(), Radius: dot.r, Shape: draw.CircleGlyph{}}})
		}
	}
	for i := len(lines) - 1; i >= 0; i-- {
		width := 1.75
		if i == 0 {
			width = 2.5
		}
		var pts plotter.XYs
		for _, pt := range lines[i].points {
			x := nines(pt.Quantile)
			if pt.Quantile >= 1 { // the maximum has no place on this axis: a step past the last
				x = maxStep
				if len(pts) > 0 {
					x += pts[len(pts)-1].X
				}
			}
			if x < 0 || math.IsNaN(x) {
				continue
			}
			pts = append(pts, plotter.XY{X: math.Min(x, right), Y: logMS(pt.MS)})
		}
		line(p, pts, lines[i].ink, vg.Length(width))
	}
}

// nineTicks marks 0 %, 50 %, 90 %, 99 % … up to the right edge.
func nineTicks(right float64, narrow bool) ticks {
	out := ticks{{Value: 0, Label: "0 %"}, {Value: nines(0.5), Label: "50 %"}}
	if narrow {
		out = ticks{{Value: 0}, {Value: nines(0.5), Label: "50 %"}}
	}
	for n := 1.0; n <= right+1e-9; n++ {
		out = append(out, plot.Tick{Value: n, Label: decimal(100-math.Pow(10, 2-n), max(0, int(n)-2)) + " %"})
	}
	return out
}
