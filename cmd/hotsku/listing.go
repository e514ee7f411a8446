package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/hotsku/hotsku/scenarios"
	"github.com/hotsku/hotsku/verify/rundir"
)

// listed is a scenario as chaos list shows it.
type listed struct {
	Name       string   `json:"name"`
	Tags       []string `json:"tags"`
	Doc        string   `json:"doc"`
	Invariants []string `json:"invariants"`
	// MustHits are the hits without which its run proves nothing.
	MustHits []rundir.MustHit `json:"must_hits"`
}

func listing(table []scenarios.Scenario) []listed {
	rows := make([]listed, 0, len(table))
	for _, s := range table {
		rows = append(rows, listed{Name: s.Name, Tags: s.Tags, Doc: s.Doc, Invariants: s.Invariants, MustHits: s.MustHits()})
	}
	return rows
}

// printListing writes a line a scenario; what goes wrong stands last, since
// it is long.
func printListing(w io.Writer, rows []listed) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SCENARIO\tTAGS\tFAULT: MUST HIT\tMUST HOLD\tWHAT GOES WRONG")
	for _, row := range rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", row.Name, strings.Join(row.Tags, ","), faultsInWords(row.MustHits), ranges(row.Invariants), row.Doc)
	}
	return t.Flush()
}

// faultsInWords names each fault once, with what it must hit; more than once
// only where that is more than one.
func faultsInWords(hits []rundir.MustHit) string {
	var faults []string
	for i := 0; i < len(hits); {
		var parts []string
		fault := hits[i].Fault
		for ; i < len(hits) && hits[i].Fault == fault; i++ {
			if hits[i].AtLeast == 1 {
				parts = append(parts, hits[i].Hit)
				continue
			}
			parts = append(parts, fmt.Sprintf("%s ≥ %d", hits[i].Hit, hits[i].AtLeast))
		}
		faults = append(faults, fault+": "+strings.Join(parts, ", "))
	}
	return cmp.Or(strings.Join(faults, "; "), "none")
}

// ranges writes ids such as I1, I2, I3, I9 as "I1-I3 I9".
func ranges(ids []string) string {
	var parts []string
	first, last := "", 0
	for _, id := range ids {
		n, err := strconv.Atoi(strings.TrimPrefix(id, "I"))
		if err == nil && first != "" && n == last+1 {
			parts[len(parts)-1], last = first+"-"+id, n
			continue
		}
		parts, first, last = append(parts, id), id, n
	}
	return strings.Join(parts, " ")
}
