package reports

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/hotsku/hotsku/verify/rundir"
)

// coresShown is how many of a phase's busiest processes are named.
const coresShown = 6

// phaseRow is a part of the run, as text.
type phaseRow struct {
	Name, Span                string
	Due, Answered             string
	P50, P99, Max             string
	Reserved, Stored, Ordered string
	Cores                     string
}

func phaseRows(r *rundir.Run) []phaseRow {
	var rows []phaseRow
	for _, p := range r.Phases {
		row := phaseRow{Name: p.Name, Span: decimal(p.FromMS/1000, 2) + "–" + decimal(p.UntilMS/1000, 2) + " s",
			Due: decimal(p.DuePerS, 0), Answered: decimal(p.AnsweredPerS, 0), P50: none, P99: none, Max: none,
			Reserved: decimal(p.ReservedPerS, 0), Stored: decimal(p.StoredPerS, 0), Ordered: decimal(p.OrderedPerS, 0), Cores: busiest(p.Cores)}
		if p.LatencyMS.Count > 0 {
			row.P50, row.P99, row.Max = figure(p.LatencyMS.P50), figure(p.LatencyMS.P99), figure(p.LatencyMS.Max)
		}
		rows = append(rows, row)
	}
	return rows
}

// busiest names the processes that used most, in cores.
func busiest(cores map[string]float64) string {
	names := slices.SortedFunc(maps.Keys(cores), func(a, b string) int {
		return cmp.Or(cmp.Compare(cores[b], cores[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, name := range names[:min(coresShown, len(names))] {
		parts = append(parts, name+" "+decimal(cores[name], 2))
	}
	if len(parts) == 0 {
		return none
	}
	return strings.Join(parts, ", ")
}
