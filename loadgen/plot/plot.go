// Package plot draws a run's latencies as SVG files that stand alone: over
// time, and by percentile on a log axis. It is a pure function of figures and
// imports nothing of the generator.
package plot

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Curve is a named histogram of nanoseconds.
type Curve struct {
	Name      string
	Histogram *hdrhistogram.Histogram
}

// Step is an interval of a run; latencies in milliseconds.
type Step struct {
	AtMS                       int64
	Scheduled, Completed, Lost uint64
	P50, P99, Max              float64
}

const (
	width, height = vg.Length(900), vg.Length(380)
	// latencyFloor is the smallest latency a log axis shows, in milliseconds.
	latencyFloor = 0.01
)

// Colours that can be told apart by the colour-blind too.
var palette = []color.Color{
	color.NRGBA{R: 0x1f, G: 0x4e, B: 0x79, A: 0xff}, color.NRGBA{R: 0xc5, G: 0x5a, B: 0x11, A: 0xff},
	color.NRGBA{R: 0x7f, G: 0x7f, B: 0x7f, A: 0xff}, color.NRGBA{R: 0x2e, G: 0x7d, B: 0x32, A: 0xff}, color.NRGBA{R: 0xb7, G: 0x1c, B: 0x1c, A: 0xff},
}

// OverTime draws P50, P99 and maximum of each interval on a log axis, and
// below them the requests per second that were due, answered and lost.
func OverTime(w io.Writer, steps []Step, stepMS int64) error {
	latency, rate := newPlot("latency"), newPlot("requests per second")
	var p50, p99, top, due, answered, lost plotter.XYs
	lo, hi, most := math.Inf(1), math.Inf(-1), 0.0
	perS := 1000 / float64(max(stepMS, 1))
	for _, s := range steps {
		x := (float64(s.AtMS) + float64(stepMS)/2) / 1000
		due = append(due, plotter.XY{X: x, Y: float64(s.Scheduled) * perS})
		answered = append(answered, plotter.XY{X: x, Y: float64(s.Completed) * perS})
		lost = append(lost, plotter.XY{X: x, Y: float64(s.Lost) * perS})
		most = max(most, float64(s.Scheduled)*perS, float64(s.Completed)*perS)
		if s.Max == 0 {
			continue // nothing to measure, which is not zero latency
		}
		for _, v := range []struct {
			to *plotter.XYs
			ms float64
		}{{&p50, s.P50}, {&p99, s.P99}, {&top, s.Max}} {
			y := logMS(v.ms)
			*v.to = append(*v.to, plotter.XY{X: x, Y: y})
			lo, hi = math.Min(lo, y), math.Max(hi, y)
		}
	}
	latency.Y.Tick.Marker, latency.Y.Min, latency.Y.Max = logTicks(lo, hi)
	end := 1.0
	if n := len(steps); n > 0 {
		end = float64(steps[n-1].AtMS+stepMS) / 1000
	}
	for _, p := range []*plot.Plot{latency, rate} {
		p.X.Min, p.X.Max = 0, end
	}
	rate.X.Label.Text = "seconds from the start, by intended time"
	rate.Y.Min, rate.Y.Max = 0, math.Max(most*1.1, 1)
	for _, l := range []struct {
		on     *plot.Plot
		name   string
		points plotter.XYs
		colour int
	}{{latency, "max", top, 2}, {latency, "P99", p99, 1}, {latency, "P50", p50, 0}, {rate, "due", due, 2}, {rate, "answered", answered, 3}, {rate, "lost", lost, 4}} {
		if err := line(l.on, l.name, l.points, palette[l.colour]); err != nil {
			return err
		}
	}
	return save(w, latency, rate)
}

// Percentiles draws latency by percentile: each further nine takes the same
// room. Empty histograms are left out.
func Percentiles(w io.Writer, curves []Curve) error {
	p := newPlot("latency")
	lo, hi, right := math.Inf(1), math.Inf(-1), 1.0
	for i, c := range curves {
		if c.Histogram == nil || c.Histogram.TotalCount() == 0 {
			continue
		}
		var points plotter.XYs
		last := math.Max(1, math.Log10(float64(c.Histogram.TotalCount()))) // the last nine that one request can be
		for x := 0.0; x < last+0.02; x += 0.02 {
			at := math.Min(x, last)
			percent := 100 * (1 - math.Pow(10, -at))
			if at == last {
				percent = 100
			}
			y := logMS(float64(c.Histogram.ValueAtPercentile(percent)) / 1e6)
			points = append(points, plotter.XY{X: at, Y: y})
			lo, hi, right = math.Min(lo, y), math.Max(hi, y), math.Max(right, at)
		}
		if err := line(p, c.Name, points, palette[i%len(palette)]); err != nil {
			return err
		}
	}
	p.Y.Tick.Marker, p.Y.Min, p.Y.Max = logTicks(lo, hi)
	p.X.Min, p.X.Max, p.X.Label.Text = 0, right, "percentile"
	marks := plot.ConstantTicks{{Value: 0, Label: "0"}, {Value: math.Log10(2), Label: "50"}}
	for n := 1.0; n <= right; n++ {
		marks = append(marks, plot.Tick{Value: n, Label: fmt.Sprintf("%.*f", int(math.Max(0, n-2)), 100-math.Pow(10, 2-n))})
	}
	p.X.Tick.Marker = marks
	return save(w, p)
}

func newPlot(label string) *plot.Plot {
	p := plot.New()
	p.Y.Label.Text = label
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, 2
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{Y: 0xe8}, color.Gray{Y: 0xe0}
	p.Add(grid)
	return p
}

func line(p *plot.Plot, name string, points plotter.XYs, c color.Color) error {
	if len(points) == 0 {
		return nil
	}
	l, err := plotter.NewLine(points)
	if err != nil {
		return fmt.Errorf("draw %s: %w", name, err)
	}
	l.Color, l.Width = c, 1.5
	p.Add(l)
	p.Legend.Add(name, l)
	return nil
}

// save draws plots below one another, their data areas aligned.
func save(w io.Writer, rows ...*plot.Plot) error {
	canvas := vgsvg.New(width, height*vg.Length(len(rows)))
	all := draw.New(canvas)
	all.SetColor(color.White)
	all.Fill(all.Rectangle.Path())
	grid := make([][]*plot.Plot, len(rows))
	for i, r := range rows {
		grid[i] = []*plot.Plot{r}
	}
	tiles := draw.Tiles{Rows: len(rows), Cols: 1, PadTop: 10, PadBottom: 6, PadLeft: 8, PadRight: 14, PadY: 14}
	for i, row := range plot.Align(grid, tiles, all) {
		rows[i].Draw(row[0])
	}
	if _, err := canvas.WriteTo(w); err != nil {
		return fmt.Errorf("write SVG: %w", err)
	}
	return nil
}

func logMS(ms float64) float64 { return math.Log10(math.Max(ms, latencyFloor)) }

// logTicks marks powers of ten, with 2 and 5 between them where there is room.
func logTicks(lo, hi float64) (plot.Ticker, float64, float64) {
	if lo > hi {
		lo, hi = 0, 1
	}
	var marks plot.ConstantTicks
	lo, hi = math.Floor(lo), math.Ceil(hi+1e-9)
	for e := lo; e <= hi; e++ {
		for _, m := range []float64{1, 2, 5} {
			if at := e + math.Log10(m); at <= hi && (m == 1 || hi-lo <= 2) {
				marks = append(marks, plot.Tick{Value: at, Label: label(m * math.Pow(10, e))})
			}
		}
	}
	return marks, lo, hi
}

func label(ms float64) string {
	if ms >= 1000 {
		return fmt.Sprintf("%g s", ms/1000)
	}
	return fmt.Sprintf("%.3g ms", ms)
}
