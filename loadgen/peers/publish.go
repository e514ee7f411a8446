package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/color"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/hotsku/hotsku/loadgen/summary"
)

// Marks around the table in the README.
const (
	markBegin = "<!-- make bench-loadgen writes this -->"
	markEnd   = "<!-- until here -->"
)

// oursOf reads what only our output tells; 0 for others.
func oursOf(output string) (lagP99, serviceP99 float64) {
	var s summary.Summary
	if json.Unmarshal([]byte(output), &s) != nil {
		return 0, 0
	}
	return s.SendLagMS.P99, s.ServiceMS.P99
}

// publish prints the table, and puts it and the chart where they belong.
func (o *options) publish(rows []row) error {
	text := o.table(rows)
	fmt.Print(text)
	if o.chart != "" {
		if err := chart(o.chart, rows); err != nil {
			return err
		}
	}
	if o.readme == "" {
		return nil
	}
	page, err := os.ReadFile(o.readme)
	if err != nil {
		return fmt.Errorf("read the README: %w", err)
	}
	before, rest, found := strings.Cut(string(page), markBegin)
	_, after, closed := strings.Cut(rest, markEnd)
	if !found || !closed {
		return fmt.Errorf("%s holds no place for the table: %s … %s", o.readme, markBegin, markEnd)
	}
	if err := os.WriteFile(o.readme, []byte(before+markBegin+"\n"+text+markEnd+after), 0o644); err != nil {
		return fmt.Errorf("write the README: %w", err)
	}
	return nil
}

func (o *options) table(rows []row) string {
	var b strings.Builder
	ours := rows[0]
	fmt.Fprintf(&b, "%s; a bare fasthttp server on the same cores; median of %d runs of %v each, one after another:\n\n    make bench-loadgen\n\n", machine(), o.rounds, o.each)
	b.WriteString("| unpipelined | requests a CPU second | hotsku's, as a multiple | requests/s | cores |\n|---|---|---|---|---|\n")
	for _, r := range rows {
		if r.leftOut != "" {
			fmt.Fprintf(&b, "| %s | left out: %s | | | |\n", r.name, strings.ReplaceAll(r.leftOut, "|", "/"))
			continue
		}
		fmt.Fprintf(&b, "| %s | %.0f | %.2f | %.0f | %.2f |\n", r.name, r.fast.perCPU(), ours.fast.perCPU()/r.fast.perCPU(), float64(r.fast.requests)/r.fast.wall.Seconds(), r.fast.cores())
	}
	fmt.Fprintf(&b, "\nhotsku offers %d/s open loop, accounts for each request and keeps its history; the others go as fast as they can; all on %d connections.\n\n", o.unpipelined, connections)
	fmt.Fprintf(&b, "| at %d/s, a server that idles | P99 | as a multiple of hotsku's |\n|---|---|---|\n", idleRate)
	if ours.hasIdle {
		fmt.Fprintf(&b, "| hotsku, from the write | %s | |\n", p99Text(ours.idle.serviceP99))
	}
	for _, r := range rows {
		if r.hasIdle {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", r.name, p99Text(r.idle.p99), ratioText(r.idle.p99, ours.idle.p99))
		}
	}
	fmt.Fprintf(&b, "\nMedian of %d rounds in which they took turns. hotsku's latency runs from the time a request was due, so it holds the send lag, too.\n", 2*o.rounds-1)
	fmt.Fprintf(&b, "\n| hotsku, pipelined, history on | served/s | cores of the generator | CPU per request | send lag P99 |\n|---|---|---|---|---|\n")
	for i, m := range ours.pipelined {
		fmt.Fprintf(&b, "| %d/s | %.0f | %.2f | %.2f µs | %.2f ms |\n", pipelinedRates[i], float64(m.requests)/o.each.Seconds(), m.cpu.Seconds()/o.each.Seconds(),
			m.cpu.Seconds()/float64(m.requests)*1e6, m.lagP99)
	}
	return b.String()
}

func p99Text(ms float64) string {
	if ms < 0 {
		return "not told"
	}
	return fmt.Sprintf("%.2f ms", ms)
}

func ratioText(ms, ours float64) string {
	if ms < 0 || ours <= 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", ms/ours)
}

// machine describes where the run took place.
func machine() string {
	model := "unknown CPU"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	kernel := ""
	var uts unix.Utsname
	if unix.Uname(&uts) == nil {
		kernel = "Linux " + unix.ByteSliceToString(uts.Release[:])
	}
	return fmt.Sprintf("%s, %d cores, %s, %s", model, runtime.NumCPU(), kernel, runtime.Version())
}

// chart draws requests a CPU second as bars.
func chart(path string, rows []row) error {
	p := plot.New()
	p.Y.Label.Text = "requests a CPU second, unpipelined"
	p.Y.Min = 0
	var values plotter.Values
	var names []string
	for _, r := range rows {
		if r.leftOut == "" {
			values, names = append(values, r.fast.perCPU()), append(names, r.name)
		}
	}
	bars, err := plotter.NewBarChart(values, vg.Points(46))
	if err != nil {
		return fmt.Errorf("draw the chart: %w", err)
	}
	bars.Color, bars.LineStyle.Width = color.NRGBA{R: 0x1f, G: 0x4e, B: 0x79, A: 0xff}, 0
	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	grid.Horizontal.Color = color.Gray{Y: 0xe0}
	p.Add(grid, bars)
	p.NominalX(names...)
	canvas := vgsvg.New(640, 320)
	c := draw.New(canvas)
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	p.Draw(draw.Crop(c, 8, -8, 6, -10))
	var buf bytes.Buffer
	if _, err := canvas.WriteTo(&buf); err != nil {
		return fmt.Errorf("draw the chart: %w", err)
	}
	if err := os.WriteFile(path, buf.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the chart: %w", err)
	}
	return nil
}
