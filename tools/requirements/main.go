// Command requirements writes system/REQUIREMENTS.md: each row of the
// specification and the tests that name its id (R7.8.1, or a range
// R8.1.1-7, in a comment, a subtest's name or a message).
//
// It exits 1 when the table is stale (-check), when a row that a test must
// cover has none, or when a test names a row that does not exist.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Table is where the rows and their tests are listed, below the root.
const table = "system/REQUIREMENTS.md"

func main() {
	root := flag.String("root", ".", "the repository")
	check := flag.Bool("check", false, "write nothing; fail if the table is stale")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "requirements: "+err.Error())
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	rows, err := parseRows(rowsFile)
	if err != nil {
		return err
	}
	named, err := scan(os.DirFS(root))
	if err != nil {
		return err
	}
	text := render(rows, named)
	path := filepath.Join(root, table)
	if check {
		if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, text) {
			return errors.New(table + " is stale: run make requirements")
		}
	} else if err := os.WriteFile(path, text, 0o644); err != nil {
		return err
	}
	return errors.Join(unknown(rows, named), uncovered(rows, named))
}

// unknown reports tests that name a row that does not exist. The id of a
// whole section (R7.10) is no row and no error.
func unknown(rows []row, named map[string][]testName) error {
	exists := make(map[string]bool)
	for _, r := range rows {
		for id := r.id; id != ""; {
			exists[id] = true
			dot := strings.LastIndexByte(id, '.')
			id = id[:max(dot, 0)]
		}
	}
	var errs []error
	for _, id := range sortedIDs(named) {
		if !exists[id] {
			errs = append(errs, fmt.Errorf("%s names %s, which is no row", named[id][0], id))
		}
	}
	return errors.Join(errs...)
}

// uncovered reports rows that need a test and have none.
func uncovered(rows []row, named map[string][]testName) error {
	var missing []string
	for _, r := range rows {
		if r.by == byTest && len(named[r.id]) == 0 {
			missing = append(missing, r.id)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%d rows have no test that names them: %s", len(missing), strings.Join(missing, " "))
}
