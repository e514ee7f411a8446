package reports

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"regexp"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// chart is a drawing in two sizes; the page shows the one that fits.
type chart struct {
	ID, Title, Desc string
	Wide, Narrow    template.HTML
	Legend          []legendEntry
}

type legendEntry struct {
	Class, Name string // Class: CSS class of the swatch
}

// frame is the size of a drawing in CSS pixels.
type frame struct {
	w, h, font vg.Length
	xTicks     int
}

var (
	frameWide   = frame{w: 1040, h: 300, font: 12, xTicks: 10}
	frameNarrow = frame{w: 350, h: 260, font: 11, xTicks: 5}
)

// ink is a colour by its role: the drawing carries the role as an impossible
// RGB value, and finish turns it into the CSS variable, so that light, dark
// and print are the style sheet's affair.
type ink uint8

const (
	inkText ink = iota + 1
	inkGrid
	inkAxis
	inkMain   // P50, "all"
	inkTail   // P99, "accepted"
	inkMax    // max
	inkFourth // further curves
	inkGoal   // SLO
	inkFault
	inkFaultBand
	inkRate
	inkCard
	inkGroup // + codeGroup
)

var inkVariables = map[ink]string{
	inkText: "--c-text", inkGrid: "--c-grid", inkAxis: "--c-axis",
	inkMain: "--c-main", inkTail: "--c-tail", inkMax: "--c-max", inkFourth: "--c-fourth",
	inkGoal: "--c-goal", inkFault: "--c-fault", inkFaultBand: "--c-fault-band", inkRate: "--c-rate", inkCard: "--c-card",
	inkGroup + ink(groupAccepted):    "--c-accepted",
	inkGroup + ink(groupSoldOut):     "--c-sold-out",
	inkGroup + ink(groupDuplicate):   "--c-duplicate",
	inkGroup + ink(groupLimited):     "--c-limited",
	inkGroup + ink(groupUnavailable): "--c-unavailable",
	inkGroup + ink(groupOther):       "--c-other",
}

func (k ink) color() color.Color { return color.NRGBA{R: 0xfe, G: 0x01, B: uint8(k), A: 0xff} }

var (
	inkPattern  = regexp.MustCompile(`(?i)#FE01([0-9A-F]{2})`)
	fontPattern = regexp.MustCompile(`font-family:[^"]*?font-style:[a-z]+;?`)
	stylePart   = regexp.MustCompile(`style="[^"]*"`)
)

// newPlot is an empty plot in the house style: hairline grid, no box, labels
// in the muted ink.
func newPlot(f frame) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Padding = 0
		a.LineStyle = draw.LineStyle{Color: inkAxis.color(), Width: 1}
		a.Tick.LineStyle = draw.LineStyle{Color: inkAxis.color(), Width: 1}
		a.Tick.Length = 5
		a.Tick.Label.Font = sans(f.font)
		a.Tick.Label.Color = inkText.color()
		a.Label.TextStyle.Font = sans(f.font)
		a.Label.TextStyle.Color = inkText.color()
		a.Label.Padding = 4
	}
	p.Y.LineStyle.Width = 0
	p.Y.Tick.Length = 0
	p.Y.Padding = 8
	grid := plotter.NewGrid()
	grid.Horizontal = draw.LineStyle{Color: inkGrid.color(), Width: 1}
	grid.Vertical = draw.LineStyle{}
	p.Add(grid)
	return p
}

func sans(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

// line draws points as one stroke, broken where a point is missing (NaN); a
// point alone between gaps becomes a dot.
func line(p *plot.Plot, pts plotter.XYs, k ink, width vg.Length, dashes ...vg.Length) {
	for _, run := range runs(pts) {
		if len(run) == 1 {
			s := &plotter.Scatter{XYs: run, GlyphStyle: draw.GlyphStyle{
				Color: k.color(), Radius: width + 1, Shape: draw.CircleGlyph{}}}
			p.Add(s)
			continue
		}
		p.Add(&plotter.Line{XYs: run, LineStyle: draw.LineStyle{Color: k.color(), Width: width, Dashes: dashes}})
	}
}

// runs cuts pts where a coordinate is not finite.
func runs(pts plotter.XYs) []plotter.XYs {
	var out []plotter.XYs
	var cur plotter.XYs
	for _, pt := range pts {
		if finite(pt.X) && finite(pt.Y) {
			cur = append(cur, pt)
			continue
		}
		if len(cur) > 0 {
			out = append(out, cur)
		}
		cur = nil
	}
	if len(cur) > 0 {
		out = append(out, cur)
	}
	return out
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// area fills the polygon through pts.
func area(p *plot.Plot, pts plotter.XYs, k ink) {
	p.Add(&plotter.Polygon{XYs: []plotter.XYs{pts}, Color: k.color()})
}

// note writes text at a data point.
type note struct {
	at    plotter.XY
	text  string
	style text.Style
	dx    vg.Length
	dy    vg.Length
}

func newNote(f frame, x, y float64, s string, k ink, xAlign text.XAlignment, dx, dy vg.Length) note {
	return note{plotter.XY{X: x, Y: y}, s, text.Style{
		Color: k.color(), Font: sans(f.font), XAlign: xAlign, YAlign: draw.YBottom, Handler: plot.DefaultTextHandler,
	}, dx, dy}
}

// Plot implements plot.Plotter.
func (n note) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	c.FillText(n.style, vg.Point{X: x(n.at.X) + n.dx, Y: y(n.at.Y) + n.dy}, n.text)
}

// render draws plots below one another, their data areas aligned, and makes
// the SVG part of a page: themed, scaled by its container, named for those
// who cannot see it.
func render(f frame, id, title, desc string, rows ...*plot.Plot) template.HTML {
	canvas := vgsvg.New(f.w, f.h)
	for i, part := range stack(draw.New(canvas), rows) {
		rows[i].Draw(part)
	}
	var buf bytes.Buffer
	if _, err := canvas.WriteTo(&buf); err != nil {
		return "" // a bytes.Buffer does not fail
	}
	return finish(buf.String(), f, id, title, desc)
}

func finish(svg string, f frame, id, title, desc string) template.HTML {
	if at := strings.Index(svg, "<g "); at >= 0 {
		svg = svg[at:]
	}
	svg = stylePart.ReplaceAllStringFunc(svg, func(s string) string {
		s = fontPattern.ReplaceAllString(s, "")
		return inkPattern.ReplaceAllStringFunc(s, func(hex string) string {
			var k ink
			fmt.Sscanf(hex[5:], "%x", &k)
			return "var(" + inkVariables[k] + ")"
		})
	})
	head := fmt.Sprintf(`<svg class="plot" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" role="img" aria-labelledby="%[3]s-t %[3]s-d"><title id="%[3]s-t">%[4]s</title><desc id="%[3]s-d">%[5]s</desc>`+"\n",
		float64(f.w), float64(f.h), id, template.HTMLEscapeString(title), template.HTMLEscapeString(desc))
	return template.HTML(head + svg) //nolint:gosec // every text in it was escaped, above or by vgsvg
}

// stack shares a canvas among plots below one another, the first taking more
// of it, so that their data areas begin and end at the same x.
func stack(c draw.Canvas, rows []*plot.Plot) []draw.Canvas {
	const gap, firstShare = 16, 0.6
	c = draw.Crop(c, 2, -8, 2, -4)
	areas := []draw.Canvas{c}
	if len(rows) > 1 {
		height := c.Max.Y - c.Min.Y - gap*vg.Length(len(rows)-1)
		top := c.Max.Y
		areas = areas[:0]
		for i := range rows {
			h := height * firstShare
			if i > 0 {
				h = height * (1 - firstShare) / vg.Length(len(rows)-1)
			}
			a := c
			a.Max.Y, a.Min.Y = top, top-h
			top -= h + gap
			areas = append(areas, a)
		}
	}
	left, right := c.Min.X, c.Max.X
	for i, p := range rows {
		data := p.DataCanvas(areas[i])
		left, right = max(left, data.Min.X), min(right, data.Max.X)
	}
	for i, p := range rows {
		data := p.DataCanvas(areas[i])
		areas[i] = draw.Crop(areas[i], left-data.Min.X, right-data.Max.X, 0, 0)
	}
	return areas
}

// inBoth draws a chart at both sizes.
func inBoth(id, title, desc string, legend []legendEntry, wide, narrow frame, drawing func(frame) []*plot.Plot) *chart {
	return &chart{
		ID: id, Title: title, Desc: desc, Legend: legend,
		Wide:   render(wide, id+"-wide", title, desc, drawing(wide)...),
		Narrow: render(narrow, id+"-narrow", title, desc, drawing(narrow)...),
	}
}
