package mutants

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Run is one run of a row.
type Run struct {
	Seed uint64 `json:"seed"`
	Dir  string `json:"dir"`
	Finding
}

// Row is a design in the scenario that must find it out, over its seeds.
type Row struct {
	Design   string   `json:"design"` // a mutant's name, or ReferenceName
	Scenario string   `json:"scenario"`
	KilledBy []string `json:"killed_by"` // the invariants named for it; of the reference none
	Runs     []Run    `json:"runs"`
}

// ReferenceName is the right design in a matrix.
const ReferenceName = "reference"

// last is the finding that decides: the runs end with a kill, or when the
// seeds are used up.
func (r *Row) last() Finding {
	if len(r.Runs) == 0 {
		return Finding{Outcome: OutcomeInconclusive, Why: "it was not run"}
	}
	decides := r.Runs[0].Finding
	for _, run := range r.Runs[1:] {
		if rank(run.Outcome) > rank(decides.Outcome) {
			decides = run.Finding
		}
	}
	return decides
}

// rank orders what several seeds said of one design: a kill ends the search,
// and one survivor weighs more than any number of runs that said nothing.
func rank(o Outcome) int {
	switch o {
	case OutcomeKilled, OutcomeTripped:
		return 3
	case OutcomeSurvived:
		return 2
	case OutcomeInconclusive:
		return 1
	}
	return 0
}

// Outcome is the row's.
func (r *Row) Outcome() Outcome { return r.last().Outcome }

// Done says that no further seed is needed.
func (r *Row) Done() bool {
	return r.Design == ReferenceName && len(r.Runs) > 0 || len(r.Runs) > 0 && r.Outcome() == OutcomeKilled
}

// MatrixSchema is the version of mutants.json.
const MatrixSchema = 1

// Matrix is the kill matrix: each design, the scenario, and what found it out.
type Matrix struct {
	Schema   int    `json:"schema"`
	Command  string `json:"command"`
	ExitCode int    `json:"exit_code"`
	Rows     []Row  `json:"rows"`
}

// Conclude sets the exit code: 1 if a mutant survived or the reference
// tripped, else 2 if a row is inconclusive, else 0.
func (m *Matrix) Conclude() int {
	m.ExitCode = 0
	if len(m.Rows) == 0 {
		m.ExitCode = 2
	}
	for i := range m.Rows {
		switch m.Rows[i].Outcome() {
		case OutcomeSurvived, OutcomeTripped:
			m.ExitCode = 1
			return 1
		case OutcomeInconclusive:
			m.ExitCode = 2
		}
	}
	return m.ExitCode
}

// WriteText prints the matrix for people, then what is to be said of rows
// that are not as they should be.
func (m *Matrix) WriteText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "DESIGN\tSCENARIO\tOUTCOME\tNAMED\tBY\tALSO\tSEEDS\tDID WRONG")
	killed, designs := 0, 0
	for i := range m.Rows {
		r := &m.Rows[i]
		f := r.last()
		wrong := strconv.FormatInt(f.Firings, 10)
		if r.Design == ReferenceName {
			wrong = "-"
		} else {
			designs++
		}
		if f.Outcome == OutcomeKilled {
			killed++
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Design, r.Scenario, f.Outcome, list(r.KilledBy), list(f.By), list(f.Also), r.seeds(), wrong)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i := range m.Rows {
		if f := m.Rows[i].last(); f.Why != "" {
			if _, err := fmt.Fprintf(w, "\n%s in %s %s: %s\n  look at %s\n", m.Rows[i].Design, m.Rows[i].Scenario, f.Outcome, f.Why, m.Rows[i].dir()); err != nil {
				return err
			}
		}
	}
	_, err := fmt.Fprintf(w, "\n%d of %d wrong designs killed\n", killed, designs)
	return err
}

// seeds are those that were needed.
func (r *Row) seeds() string {
	if len(r.Runs) == 0 {
		return "-"
	}
	if r.Outcome() == OutcomeKilled {
		return fmt.Sprintf("%d (%d)", len(r.Runs), r.Runs[len(r.Runs)-1].Seed)
	}
	return strconv.Itoa(len(r.Runs))
}

// dir is that of the last run.
func (r *Row) dir() string {
	if len(r.Runs) == 0 {
		return "-"
	}
	return r.Runs[len(r.Runs)-1].Dir
}

func list(ids []string) string {
	if len(ids) == 0 {
		return "-"
	}
	return strings.Join(ids, ",")
}
