package reports

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden covers R1.1 to R1.7 as figures of the report: each renderer gives
// the same bytes for the same run.
func TestGolden(t *testing.T) {
	t.Parallel()
	runs := map[string]Input{
		"pass": passInput(), "fail": failInput(), "inconclusive": inconclusiveInput(), "fault": faultInput(), "empty": {},
	}
	renderers := map[string]func(io.Writer, Input) error{
		"html": HTML,
		"xml":  JUnit,
		"txt":  func(w io.Writer, in Input) error { return Terminal(w, in, TerminalOptions{}) },
	}
	for name, in := range runs {
		for ext, render := range renderers {
			t.Run(name+"."+ext, func(t *testing.T) {
				t.Parallel()
				var got bytes.Buffer
				if err := render(&got, in); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join("testdata", name+".golden."+ext)
				if *update {
					if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
						t.Fatal(err)
					}
					return
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatalf("%v (go test ./reports -update writes it)", err)
				}
				if diff := cmp.Diff(string(want), got.String()); diff != "" {
					t.Errorf("%s changed (-golden +now); if meant, run go test ./reports -update and look at it:\n%s", path, diff)
				}
			})
		}
	}
}
