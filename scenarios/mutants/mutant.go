package mutants

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hotsku/hotsku/verify/rundir"
)

// Mutant is a wrong design and who finds it out.
type Mutant struct {
	Name     string
	Doc      string // one line: what it does wrong
	Scenario string // in which it must be found out
	// KilledBy are invariants; it is found out by the violation of one of them.
	// Another's is no kill: the one named for it was blind.
	KilledBy []string
}

// Firing is one line of the file a mutant appends to when it did what is
// wrong with it.
type Firing struct {
	Mutant     string `json:"mutant"`
	ActivityID int64  `json:"activity_id"`
	PID        int    `json:"pid"`
	What       string `json:"what"`
	At         string `json:"at"` // RFC 3339 with nanoseconds
}

// FiringFile is where the mutant of a run notes its firings.
func FiringFile(dir rundir.Dir) string { return filepath.Join(dir.Logs(), "mutant.jsonl") }

// CountFirings counts the firings in a run's file that concern the sale of an
// activity; a missing file has none. A last line that a SIGKILL cut short is
// no firing; any other that cannot be read is an error.
func CountFirings(dir rundir.Dir, name string, activityID int64) (int64, error) {
	return CountFiringsIn(FiringFile(dir), name, activityID)
}

// CountFiringsIn is CountFirings for a file anywhere.
func CountFiringsIn(path, name string, activityID int64) (int64, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("count firings: %w", err)
	}
	defer f.Close()
	n, unread := int64(0), error(nil)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if unread != nil {
			return 0, unread
		}
		var firing Firing
		if err := json.Unmarshal(lines.Bytes(), &firing); err != nil {
			unread = fmt.Errorf("count firings: %s: %w", path, err)
			continue
		}
		if firing.Mutant != name {
			return 0, fmt.Errorf("count firings: %s has a firing of %q in a run of %q", path, firing.Mutant, name)
		}
		if firing.ActivityID == activityID {
			n++
		}
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("count firings: %w", err)
	}
	return n, nil
}
