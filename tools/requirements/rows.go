package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// rowsFile is the specification's rows, a line each: id, what covers it,
// text, separated by tabs.
//
//go:embed rows.tsv
var rowsFile string

// What may cover a row.
const (
	byTest      = "test"                  // a test must name it
	byDocuments = "documents"             // README and package documents answer it
	byBenches   = "issue 6: benches"      // a figure of a bench's report
	byScenarios = "issue 7: scenarios"    // a fault of the scenario table
	byCompare   = "comparison of schemes" // a figure of the comparison's report
)

// strict are the chapters that words alone do not cover: hot path, data,
// code, faults, observability, tests, wrong designs, questions.
var strict = []int{7, 8, 9, 11, 12, 13, 15, 16}

var rowID = regexp.MustCompile(`^R\d+(\.\d+)+[a-z]?$`)

type row struct{ id, by, text string }

// chapter is the specification's: 7 for R7.8.1.
func (r row) chapter() int {
	digits, _, _ := strings.Cut(r.id[1:], ".")
	n, _ := strconv.Atoi(digits) // rowID matched
	return n
}

func parseRows(text string) ([]row, error) {
	var rows []row
	seen := make(map[string]bool)
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		fail := func(format string, args ...any) ([]row, error) {
			return nil, fmt.Errorf("rows.tsv line %d: "+format, append([]any{i + 1}, args...)...)
		}
		f := strings.Split(line, "\t")
		if len(f) != 3 || f[2] == "" {
			return fail("want id, what covers it and text, separated by tabs")
		}
		r := row{f[0], f[1], f[2]}
		switch {
		case !rowID.MatchString(r.id):
			return fail("%q is no id such as R7.8.1", r.id)
		case seen[r.id]:
			return fail("%s is there twice", r.id)
		case !slices.Contains([]string{byTest, byDocuments, byBenches, byScenarios, byCompare}, r.by):
			return fail("%s: nothing is called %q", r.id, r.by)
		case slices.Contains(strict, r.chapter()) && r.by != byTest && r.by != byBenches && r.by != byScenarios:
			return fail("%s: a row of chapter %d needs a test, a bench or a scenario", r.id, r.chapter())
		}
		seen[r.id] = true
		rows = append(rows, r)
	}
	return rows, nil
}
