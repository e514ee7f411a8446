package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// testName is where a test is: package folder and function, or folder and
// file for an id outside of any test function.
type testName struct{ folder, name string }

func (t testName) String() string { return t.folder + " " + t.name }

// mention is an id in a test: R7.8.1, or R8.1.1-7 for several.
var mention = regexp.MustCompile(`\bR(\d+(?:\.\d+)+)(?:([a-z])\b|[-–](\d+)\b)?`)

// self is this package, whose tests name rows without testing them.
const self = "tools/requirements"

// scan finds the ids that the test files below root name, and by which test.
func scan(root fs.FS) (map[string][]testName, error) {
	named := make(map[string][]testName)
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || p == self):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(p, "_test.go"):
			return nil
		}
		source, err := fs.ReadFile(root, p)
		if err != nil {
			return err
		}
		return scanFile(p, source, named)
	})
	for id, tests := range named {
		slices.SortFunc(tests, func(a, b testName) int { return strings.Compare(a.String(), b.String()) })
		named[id] = slices.Compact(tests)
	}
	return named, err
}

// scanFile adds what one file names. An id in a test's doc comment or on any
// of its lines is the test's; any other is the file's.
func scanFile(p string, source []byte, named map[string][]testName) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, p, source, parser.ParseComments)
	if err != nil {
		return err
	}
	owner := func(line int) string {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !isTest(f) {
				continue
			}
			from := f.Pos()
			if f.Doc != nil {
				from = f.Doc.Pos()
			}
			if line >= files.Position(from).Line && line <= files.Position(f.End()).Line {
				return f.Name.Name
			}
		}
		return path.Base(p)
	}
	for _, m := range mention.FindAllSubmatchIndex(source, -1) {
		t := testName{path.Dir(p), owner(1 + bytes.Count(source[:m[0]], []byte{'\n'}))}
		for _, id := range expand(string(source[m[2]:m[3]]), group(source, m, 2), group(source, m, 3)) {
			named[id] = append(named[id], t)
		}
	}
	return nil
}

func group(source []byte, m []int, n int) string {
	if m[2*n] < 0 {
		return ""
	}
	return string(source[m[2*n]:m[2*n+1]])
}

func isTest(f *ast.FuncDecl) bool {
	name := f.Name.Name
	return f.Recv == nil && (strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Benchmark"))
}

// expand turns numbers with a letter, or with the last of a range, to ids.
func expand(numbers, letter, last string) []string {
	if last == "" {
		return []string{"R" + numbers + letter}
	}
	dot := strings.LastIndexByte(numbers, '.')
	from, _ := strconv.Atoi(numbers[dot+1:]) // digits, as the pattern says
	to, _ := strconv.Atoi(last)
	var ids []string
	for n := from; n <= min(to, from+99); n++ {
		ids = append(ids, fmt.Sprintf("R%s.%d", numbers[:dot], n))
	}
	return ids
}

// sortedIDs are the ids in the specification's order.
func sortedIDs(named map[string][]testName) []string {
	return slices.SortedFunc(maps.Keys(named), compareIDs)
}

// compareIDs orders R7.2 before R7.10.
func compareIDs(a, b string) int {
	x, y := strings.Split(a[1:], "."), strings.Split(b[1:], ".")
	for i := range min(len(x), len(y)) {
		m, _ := strconv.Atoi(strings.TrimRight(x[i], "abcdefghijklmnopqrstuvwxyz"))
		n, _ := strconv.Atoi(strings.TrimRight(y[i], "abcdefghijklmnopqrstuvwxyz"))
		if m != n {
			return m - n
		}
	}
	return strings.Compare(a, b)
}
