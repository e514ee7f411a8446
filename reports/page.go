package reports

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// page is what the template shows, every figure already in words.
type page struct {
	Style          template.CSS
	Run            *rundir.Run
	Verdict        string // PASS, FAIL, INCONCLUSIVE
	Summary        string
	Reasons        []string
	Started        string
	Tiles          []tile
	Time, Curve    *chart
	Orders         *chart
	Folded         int // steps in one drawn, above 1
	Latency        []latencyRow
	Promises       []promiseRow
	SLOs           []sloRow
	ReportOnly     bool
	Codes          []codeRow
	CodesTotal     int64
	Accounting     accounting
	OrderFacts     []fact
	Funnels        []funnel
	Phases         []phaseRow
	Faults         []faultRow
	Timeline       []timelineRow
	Stores         []fact
	Environment    []fact
	CPU            []cpuRow
	CPUTotal       string
	VerifyCommand  string
	HasMeasurement bool
}

// tile is a headline figure. State is "", "good", "bad" or "unknown".
type tile struct{ Label, Value, Unit, Sub, State string }

type fact struct{ Name, Value, Note string }

type latencyRow struct {
	Name, Note string
	rundir.Percentiles
}

type promiseRow struct {
	promise
	Promise string // in a line
	Word    string // held, violated, not checked
}

// MoreViolations says that the witnesses are only some of the violations.
func (p promiseRow) MoreViolations() bool { return p.Violations > int64(len(p.Witness)) }

type sloRow struct {
	Name, Metric, Target, Measured, Word, Class string
}

type codeRow struct {
	Name, Meaning, Share, Group string
	HTTP                        int
	Count                       int64
	P99                         string
}

type accounting struct {
	rundir.LoadResult
	Gap, SentGap int64
	Balanced     bool
	LagLimit     string
}

// funnel is the stages one source counted.
type funnel struct {
	Counted string // by whom and what
	Rows    []funnelRow
}

type funnelRow struct {
	rundir.FunnelStage
	Passed, Away string
	Width        float64 // per cent of the widest stage, on a log scale
}

type faultRow struct {
	Name, Target, When string
	Hits               []hit
	Missed             []string
	Bit                bool
}

type hit struct {
	Name  string
	Count int64
}

type timelineRow struct {
	At, Actor, Target, Event, Detail string
	Hits                             []hit
}

type cpuRow struct {
	Name, Seconds, Share string
	PerMillion           string // CPU seconds a million answered requests
	Width                float64
}

func newPage(in Input) page {
	r := in.run()
	p := page{
		Style:          template.CSS(pageStyle), //nolint:gosec // our own style sheet
		Run:            r,
		Verdict:        in.verdictWord(),
		Summary:        in.summary(),
		Started:        stamp(r.StartedAt),
		Tiles:          tiles(in),
		Time:           timeChart(in),
		Curve:          curveChart(in),
		Orders:         ordersChart(in),
		Folded:         newSteps(in.Measurements).folded,
		Latency:        latencyRows(in),
		ReportOnly:     in.reportOnly(),
		OrderFacts:     orderFacts(in),
		Funnels:        funnels(r.Funnel),
		Phases:         phaseRows(r),
		Stores:         storeFacts(r),
		Environment:    environmentFacts(r.Environment),
		HasMeasurement: in.Measurements != nil,
		VerifyCommand:  in.verifyCommand(),
	}
	if r.Verdict != rundir.VerdictPass || len(r.Reasons) > 0 {
		p.Reasons = in.reasons()
	}
	for _, v := range in.promises() {
		p.Promises = append(p.Promises, promiseRow{v, invariantWords[v.ID].promise, statusWord(v.Status)})
	}
	for _, s := range r.SLO {
		word, class := sloWord(s)
		p.SLOs = append(p.SLOs, sloRow{s.Name, s.Metric, sloTarget(s), sloMeasured(s), word, class})
	}
	p.Codes, p.CodesTotal = codeRows(r)
	p.Accounting = newAccounting(in)
	p.Faults, p.Timeline = faultRows(in)
	p.CPU, p.CPUTotal = cpuRows(r)
	return p
}

func statusWord(status string) string {
	if status == rundir.StatusNotChecked {
		return "not checked"
	}
	return status
}

func latencyRows(in Input) []latencyRow {
	l := in.run().LatencyMS
	rows := []latencyRow{
		{"All answers", "from the intended time", l.All},
		{"Accepted", "from the intended time", l.Accepted},
	}
	for _, code := range sortedCodes(l.ByCode, func(p rundir.Percentiles) int64 { return p.Count }) {
		rows = append(rows, latencyRow{code, "", l.ByCode[code]})
	}
	rows = append(rows,
		latencyRow{"Service time", "from the write; hides waiting", l.Service},
		latencyRow{"Send lag", "the generator's own delay", in.run().Load.SendLagMS},
		latencyRow{"Order creation", "from reservation to commit", in.run().Orders.LatencyMS})
	return rows
}

// sortedCodes orders codes by their number, unknown ones last by name.
func sortedCodes[V any](m map[string]V, n func(V) int64) []string {
	rank := func(name string) int {
		if c, ok := seckill.ParseCode(name); ok {
			return int(c)
		}
		return math.MaxInt
	}
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(n(m[b]), n(m[a])), cmp.Compare(a, b))
	})
}

func codeRows(r *rundir.Run) ([]codeRow, int64) {
	var total int64
	for _, n := range r.Codes {
		total += n
	}
	var rows []codeRow
	for _, name := range sortedCodes(r.Codes, func(n int64) int64 { return n }) {
		row := codeRow{
			Name: name, Meaning: codeMeaning(name), Count: r.Codes[name], Share: shareAligned(r.Codes[name], total),
			Group: fmt.Sprintf("group-%d", groupOf(name)), P99: none,
		}
		if c, ok := seckill.ParseCode(name); ok {
			row.HTTP = c.HTTPStatus()
		}
		if name == "" {
			row.Name = "(no parsed code)"
		}
		if l, ok := r.LatencyMS.ByCode[name]; ok && l.Count > 0 {
			row.P99 = figure(l.P99)
		}
		rows = append(rows, row)
	}
	return rows, total
}

func newAccounting(in Input) accounting {
	l := in.run().Load
	gap, sentGap := accountingGap(l)
	a := accounting{LoadResult: l, Gap: gap, SentGap: sentGap, Balanced: gap == 0 && sentGap == 0}
	if in.Plan != nil && in.Plan.Limits.SendLagP99MS > 0 {
		a.LagLimit = unitMS.format(in.Plan.Limits.SendLagP99MS, trimmed(in.Plan.Limits.SendLagP99MS))
	}
	return a
}

// funnels parts the stages by who counted them: no sum holds across sources.
func funnels(stages []rundir.FunnelStage) []funnel {
	var widest int64
	by := map[string][]rundir.FunnelStage{}
	for _, s := range stages {
		widest = max(widest, s.In)
		by[s.Source] = append(by[s.Source], s)
	}
	sources := []string{rundir.ByHistory, rundir.ByCounters, rundir.ByStores}
	for _, source := range slices.Sorted(maps.Keys(by)) {
		if !slices.Contains(sources, source) {
			sources = append(sources, source)
		}
	}
	var out []funnel
	for _, source := range sources {
		words, known := sourceWords[source]
		if !known {
			words = "Counted by " + source
		}
		if len(by[source]) == 0 {
			if source == rundir.ByCounters && len(stages) > 0 {
				out = append(out, funnel{Counted: words + ": " + notMeasured + ". A process that ends takes its counts with it."})
			}
			continue
		}
		f := funnel{Counted: words}
		for _, s := range by[source] {
			f.Rows = append(f.Rows, newFunnelRow(s, widest))
		}
		out = append(out, f)
	}
	return out
}

func newFunnelRow(s rundir.FunnelStage, widest int64) funnelRow {
	row := funnelRow{FunnelStage: s, Passed: none, Away: none}
	if s.Out <= s.In { // else the two are no counts of one thing
		row.Passed, row.Away = shareAligned(s.Out, s.In), count(s.In-s.Out)
	}
	if widest > 1 && s.Out > 0 {
		row.Width = min(100, 100*math.Log1p(float64(s.Out))/math.Log1p(float64(widest)))
	}
	return row
}

func sortedHits(m map[string]int64) []hit {
	var out []hit
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, hit{name, m[name]})
	}
	return out
}

// faultRows lists faults and timeline; both empty when there was no fault and
// none was required.
func faultRows(in Input) ([]faultRow, []timelineRow) {
	var faults []faultRow
	for _, f := range in.run().Faults {
		when := seconds(f.AtMS)
		if f.UntilMS > f.AtMS {
			when += " to " + seconds(f.UntilMS)
		}
		faults = append(faults, faultRow{f.Name, f.Target, when, sortedHits(f.Hits), in.missedHits(f), f.Bit})
	}
	for _, m := range in.absentFaults() {
		faults = append(faults, faultRow{Name: m.Fault, When: none,
			Missed: []string{fmt.Sprintf("%s: at least %s required, the fault is absent from run.json", m.Hit, count(m.AtLeast))}})
	}
	if len(faults) == 0 {
		return nil, nil
	}
	var events []timelineRow
	for _, e := range in.Timeline {
		events = append(events, timelineRow{decimal(float64(e.AtMS)/1000, 3) + " s", e.Actor, e.Target, e.Event, e.Detail, sortedHits(e.Hits)})
	}
	return faults, events
}

func cpuRows(r *rundir.Run) ([]cpuRow, string) {
	var total, most float64
	for _, s := range r.CPUSeconds {
		if finite(s) && s > 0 {
			total += s
			most = max(most, s)
		}
	}
	names := slices.SortedFunc(maps.Keys(r.CPUSeconds), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.CPUSeconds[b], r.CPUSeconds[a]), cmp.Compare(a, b))
	})
	var rows []cpuRow
	for _, name := range names {
		s := r.CPUSeconds[name]
		row := cpuRow{Name: name, Seconds: decimal(s, 2), Share: none, PerMillion: none}
		if finite(s) && r.Load.Completed > 0 {
			row.PerMillion = decimal(s*1e6/float64(r.Load.Completed), 2)
		}
		if finite(s) && s > 0 {
			row.Share = decimal(100*s/total, 1) + " %"
			row.Width = 100 * s / most
		}
		rows = append(rows, row)
	}
	return rows, decimal(total, 2)
}
