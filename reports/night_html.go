package reports

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"net/url"
)

//go:embed night.html.tmpl
var nightSource string

var nightTemplate = template.Must(template.Must(pageTemplate.Clone()).New("night").Parse(nightSource))

// nightPage is what the template shows, every figure already in words.
type nightPage struct {
	Style                   template.CSS
	Verdict, Summary, Began string
	Took, Command, Resume   string
	ExitCode                int
	Trouble, Rows           []nightRow // Trouble: those of Rows that did not pass, most serious first
	Tiles                   []tile
	HasFaults               bool
}

// nightRow is one run: a line of the table.
type nightRow struct {
	Scenario, Doc, Word, Class string
	Seed                       uint64
	Outcome, Took, Again       string
	Left                       string   // the folder of a run that has no report
	Link                       *url.URL // nil: no report
	Hits                       []hit
	Orders                     string
}

// NightHTML writes a night's report.html: one line a run, with a link to the
// run's own. Like HTML it is one page without scripts or outside assets, and
// the same Night gives the same bytes.
func NightHTML(w io.Writer, n Night) error {
	p := nightPage{
		Style: template.CSS(pageStyle), Verdict: n.verdictWord(), Summary: n.summary(), Began: n.began(), //nolint:gosec // our own style sheet
		Took: n.took(), Command: n.Record.Command, ExitCode: n.ExitCode(), Tiles: n.tiles(), Resume: n.resumeCommand(),
	}
	trouble := [states][]nightRow{}
	for i := range n.Record.Runs {
		row := n.row(i)
		p.Rows = append(p.Rows, row)
		p.HasFaults = p.HasFaults || len(row.Hits) > 0
		if s := n.state(i); s != statePass && s != stateNotRun {
			trouble[s] = append(trouble[s], row)
		}
	}
	for _, rows := range trouble {
		p.Trouble = append(p.Trouble, rows...)
	}
	if err := nightTemplate.Execute(w, p); err != nil {
		return fmt.Errorf("write html report: %w", err)
	}
	return nil
}

func (n Night) row(i int) nightRow {
	r, in, words := n.Record.Runs[i], n.input(i), stateWords[n.state(i)]
	row := nightRow{Scenario: r.Scenario, Doc: r.Doc, Seed: r.Seed, Word: words.word, Class: words.class,
		Outcome: n.outcome(i), Took: span(r.TookS), Hits: n.hits(i), Orders: none}
	if link := n.link(i); link != "" {
		row.Link = &url.URL{Path: "./" + link} // "./": a name with a colon is no scheme
	}
	if in.Run != nil {
		row.Again = in.Run.Command
		row.Orders = count(in.Run.Orders.Valid)
	} else {
		row.Left = r.Dir
	}
	return row
}

// tiles are the night's headline figures.
func (n Night) tiles() []tile {
	by := n.counts()
	state := func(n int, bad string) string {
		if n == 0 {
			return ""
		}
		return bad
	}
	var bitten, faults, scenarios int
	var orders int64
	seen := map[string]bool{}
	for i, r := range n.Record.Runs {
		if !seen[r.Scenario] {
			seen[r.Scenario] = true
			scenarios++
		}
		in := n.input(i)
		if n.state(i) == statePass {
			orders += in.run().Orders.Valid
		}
		for _, f := range in.run().Faults {
			faults++
			if f.Bit && len(in.missedHits(f)) == 0 {
				bitten++
			}
		}
	}
	undecided := by[stateInconclusive] + by[stateNoVerdict]
	return []tile{
		{"Passed", count(int64(by[statePass])), "", "of " + plural(len(n.Record.Runs), "run"), state(by[statePass], "good")},
		{"Failed", count(int64(by[stateFail])), "", "a promise broken, or an SLO missed", state(by[stateFail], "bad")},
		{"Inconclusive", count(int64(undecided)), "", "proved nothing", state(undecided, "unknown")},
		{"Not run", count(int64(by[stateNotRun])), "", "the night ended before", state(by[stateNotRun], "unknown")},
		{"Scenarios", count(int64(scenarios)), "", "each with its seeds", ""},
		{"Faults that bit", count(int64(bitten)), "", "of " + count(int64(faults)) + " injected", state(faults-bitten, "unknown")},
		{"Orders proved", count(orders), "", "valid ones, in runs that passed", ""},
	}
}

// resumeCommand goes on with a night that is not over; empty for one that is.
func (n Night) resumeCommand() string {
	by := n.counts()
	if by[stateNotRun]+by[stateNoVerdict] == 0 {
		return ""
	}
	return hotskuOf(n.Record.Command) + " chaos run --resume " + folderWord(string(n.Dir))
}
