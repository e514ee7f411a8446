package rundir

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// NightSchema is the version of night.json this build writes and reads.
const NightSchema = 1

// NightDir is the path of a night: the parent folder of its runs.
type NightDir string

// Record is night.json, which says that a folder is a night's.
func (d NightDir) Record() string { return filepath.Join(string(d), "night.json") }

// Outputs of a night, over all its runs.
func (d NightDir) Report() string { return filepath.Join(string(d), "report.html") }
func (d NightDir) JUnit() string  { return filepath.Join(string(d), "junit.xml") }

// SetAside is where runs go that ended without a verdict, when the night goes
// on: nobody judges them.
func (d NightDir) SetAside() string { return filepath.Join(string(d), "set-aside") }

// Run is the directory of the night's run of that name.
func (d NightDir) Run(name string) Dir { return Dir(filepath.Join(string(d), name)) }

// Night is night.json: what is to be run, in that order, and how far it got.
// It is written before the first run and after each, so that whoever finds
// it can go on.
type Night struct {
	Schema    int        `json:"schema"`
	Command   string     `json:"command"` // that began it
	StartedAt time.Time  `json:"started_at"`
	SLOMode   string     `json:"slo_mode"`
	Runs      []NightRun `json:"runs"`
}

// NightRun is one run of a night. Its verdict is in its directory's run.json.
type NightRun struct {
	Scenario string  `json:"scenario"`
	Seed     uint64  `json:"seed"`
	Doc      string  `json:"doc"`             // the scenario in a line
	Dir      string  `json:"dir,omitempty"`   // its folder's name beside night.json; empty: not begun
	TookS    float64 `json:"took_s"`          // 0: not ended
	Error    string  `json:"error,omitempty"` // why it ended without a verdict
}

// Read reads and checks night.json.
func (d NightDir) Read() (*Night, error) {
	var n Night
	if err := ReadJSON(d.Record(), &n); err != nil {
		return nil, err
	}
	wrong := func(format string, args ...any) (*Night, error) {
		return nil, &EvidenceError{d.Record(), -1, fmt.Sprintf(format, args...)}
	}
	switch {
	case n.Schema != NightSchema:
		return wrong("has schema %d, this build reads %d", n.Schema, NightSchema)
	case len(n.Runs) == 0:
		return wrong("names no run")
	case n.SLOMode != SLOEnforce && n.SLOMode != SLOReport:
		return wrong("slo_mode %q, must be %s or %s", n.SLOMode, SLOEnforce, SLOReport)
	}
	for i, r := range n.Runs {
		// A run's folder is moved and read: it must be one beside night.json.
		if r.Dir != "" && (filepath.Base(r.Dir) != r.Dir || slices.Contains([]string{".", "..", filepath.Base(d.SetAside())}, r.Dir)) {
			return wrong("run %d: %q is no name of a run directory", i+1, r.Dir)
		}
		if r.Scenario == "" || r.Seed == 0 || r.TookS < 0 {
			return wrong("run %d: needs a scenario, a seed and a time of 0 s at least", i+1)
		}
	}
	return &n, nil
}

// Judged reads the verdict of one of the night's runs. An error says why
// there is none, or that the directory holds another run's.
func (d NightDir) Judged(r NightRun) (*Run, error) {
	run, err := d.Run(r.Dir).ReadRun()
	if err != nil {
		return nil, err
	}
	if run.Name != r.Scenario || run.Seed != r.Seed {
		return nil, &EvidenceError{d.Run(r.Dir).Run(), -1, fmt.Sprintf("is of %s with seed %d, not of %s with seed %d", run.Name, run.Seed, r.Scenario, r.Seed)}
	}
	return run, nil
}
