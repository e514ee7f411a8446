package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestIDsBelongToTheTestAroundThem(t *testing.T) {
	source := `package x

import "testing"

// R7.8.1 and R8.1.1-3
func TestDoc(t *testing.T) { // R6.7a
	t.Run("R9.2 subtest", nil)
}

// R9.5: outside of any test
var table = 1

func TestPlain(t *testing.T) {} // R7.1
func (m machine) TestMethod() { _ = "R12.1–2" }
var word = "R7 VAR1.2 Rx.1"
`
	named, err := scan(fstest.MapFS{
		"system/x/x_test.go":          {Data: []byte(source)},
		"system/x/x.go":               {Data: []byte("package x // " + "R1.1")},
		"system/x/testdata/y_test.go": {Data: []byte("no go: " + "R1.2")},
		".hidden/z_test.go":           {Data: []byte("no go: " + "R1.3")},
	})
	if err != nil {
		t.Fatal(err)
	}
	doc, file := []testName{{"system/x", "TestDoc"}}, []testName{{"system/x", "x_test.go"}}
	want := map[string][]testName{
		"R7.8.1": doc, "R8.1.1": doc, "R8.1.2": doc, "R8.1.3": doc, "R6.7a": doc, "R9.2": doc,
		"R9.5": file, "R7.1": file, "R12.1": file, "R12.2": file,
	}
	want["R7.1"] = []testName{{"system/x", "TestPlain"}}
	if diff := cmp.Diff(want, named, cmp.AllowUnexported(testName{})); diff != "" {
		t.Error(diff)
	}
}

func TestARowWithoutATestIsAnError(t *testing.T) {
	rows := []row{{"R7.1.1", byTest, "a"}, {"R7.1.2", byTest, "b"}, {"R13.4.1", byScenarios, "c"}}
	named := map[string][]testName{"R7.1.1": {{"system/x", "TestX"}}}
	err := uncovered(rows, named)
	if err == nil || !strings.Contains(err.Error(), "R7.1.2") || strings.Contains(err.Error(), "R7.1.1") || strings.Contains(err.Error(), "R13") {
		t.Errorf("error is %v", err)
	}
	text := string(render(rows, named))
	for _, want := range []string{"1 of 2 rows", "| " + "R7.1.1 | a | system/x: `TestX` |", "| " + "R7.1.2 | b | **none** |", "| " + "R13.4.1 | c | issue 7: scenarios |"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestATestThatNamesNoRowIsAnError(t *testing.T) {
	rows := []row{{"R7.10.1", byTest, "a"}}
	if err := unknown(rows, map[string][]testName{"R7.10": {{"x", "TestX"}}, "R7.10.1": {{"x", "TestX"}}}); err != nil {
		t.Errorf("a section's id: %v", err)
	}
	if err := unknown(rows, map[string][]testName{"R7.10.2": {{"x", "TestX"}}}); err == nil || !strings.Contains(err.Error(), "x TestX names "+"R7.10.2") {
		t.Errorf("error is %v", err)
	}
}

func TestRowsAreCheckedWhenRead(t *testing.T) {
	if rows, err := parseRows(rowsFile); err != nil || len(rows) < 200 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	for name, line := range map[string]string{
		"no tabs":             "R7.1.1 test a",
		"no text":             "R7.1.1\ttest\t",
		"no id":               "7.1.1\ttest\ta",
		"unknown cover":       "R7.1.1\tsomeone\ta",
		"words alone":         "R7.1.1\tdocuments\ta",
		"twice":               "R7.1.1\ttest\ta\nR7.1.1\ttest\tb",
		"strict and compared": "R15.1\tcomparison of schemes\ta",
	} {
		if _, err := parseRows(line + "\n"); err == nil || !strings.HasPrefix(err.Error(), "rows.tsv line ") {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}

func TestAStaleTableIsAnErrorAndStays(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "system"), 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, table)
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(root, true); err == nil || !strings.Contains(err.Error(), "make requirements") {
		t.Errorf("error is %v", err)
	}
	if text, _ := os.ReadFile(path); string(text) != "old" {
		t.Error("a check wrote")
	}
	if err := run(root, false); err == nil || !strings.Contains(err.Error(), "have no test") {
		t.Errorf("error is %v", err)
	}
	if err := run(root, true); err == nil || strings.Contains(err.Error(), "stale") {
		t.Errorf("error is %v", err)
	}
}
