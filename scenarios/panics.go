package scenarios

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hotsku/hotsku/verify"
)

// panicked says that a line of a process's log tells of a panic: in Go's own
// last words, or the consumer's.
func panicked(line string) bool {
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") || strings.Contains(line, "handler panicked")
}

// searchLogs notes in the timeline, for each process of the product that has
// ended, how many panics its log tells of (I12).
func (r *runner) searchLogs() error {
	var errs []error
	for _, m := range r.fleet.Members() {
		lines, panics, first, err := searchLog(filepath.Join(r.dir.Logs(), m.Name()+".log"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it never started
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("search %s's log for panics: %w", m.Name(), err))
			continue
		}
		r.timeline.Add("bench", m.Name(), verify.EventLogRead, map[string]int64{"lines": lines, verify.HitPanics: panics}, first)
	}
	return errors.Join(errs...)
}

// searchLog counts the lines of a log and its panics; first is the first of
// them, cut to what fits a line.
func searchLog(path string) (lines, panics int64, first string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, "", err
	}
	defer f.Close()
	const most = 200
	for in := bufio.NewReaderSize(f, 1<<16); ; {
		line, err := in.ReadString('\n')
		if line = strings.TrimRight(line, "\n"); line != "" {
			lines++
			if panicked(line) {
				if panics++; panics == 1 {
					first = strings.ToValidUTF8(line[:min(len(line), most)], "")
				}
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return lines, panics, first, nil
		case err != nil:
			return lines, panics, first, err
		}
	}
}
