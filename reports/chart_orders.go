package reports

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/hotsku/hotsku/verify/rundir"
)

// ordersChart shows orders committed in each second. nil if there are none.
func ordersChart(in Input) *chart {
	bars := slices.Clone(in.run().Orders.PerSecond)
	bars = slices.DeleteFunc(bars, func(b rundir.OrdersAt) bool { return b.Orders <= 0 })
	if len(bars) == 0 {
		return nil
	}
	slices.SortFunc(bars, func(a, b rundir.OrdersAt) int { return a.Second - b.Second })
	wide, narrow := frameNarrow, frameNarrow
	wide.w, wide.h, wide.font = 500, 250, 12
	narrow.h = 220
	first, last := bars[0].Second, bars[len(bars)-1].Second
	peak := slices.MaxFunc(bars, func(a, b rundir.OrdersAt) int { return int(min(max(a.Orders-b.Orders, -1), 1)) })
	desc := fmt.Sprintf("Orders committed in each second since the first reservation, seconds %d to %d; the peak is %s in second %d.",
		first, last, count(peak.Orders), peak.Second)
	return inBoth("chart-orders", "Orders committed per second", desc, nil, wide, narrow, func(f frame) []*plot.Plot {
		p := newPlot(f)
		p.X.Min, p.X.Max = float64(min(first, 0)), math.Max(float64(last)+1, 3)
		p.X.Tick.Marker = timeTicks(p.X.Min, p.X.Max, f.xTicks)
		p.X.Label.Text = "since the first reservation"
		p.Y.Min = 0
		p.Y.Tick.Marker, p.Y.Max = linearTicks(float64(peak.Orders)*1.08, 4, compact)
		p.Y.Label.Text = "orders per second"
		gap := math.Min(0.08, (p.X.Max-p.X.Min)*0.01)
		for _, b := range bars {
			x, y := float64(b.Second), float64(b.Orders)
			area(p, plotter.XYs{{X: x + gap, Y: 0}, {X: x + gap, Y: y}, {X: x + 1 - gap, Y: y}, {X: x + 1 - gap, Y: 0}}, inkGroup+ink(groupAccepted))
			if p.X.Max-p.X.Min <= 12 {
				p.Add(newNote(f, x+0.5, y, count(b.Orders), inkText, draw.XCenter, 0, 3))
			}
		}
		return []*plot.Plot{p}
	})
}
