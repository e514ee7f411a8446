package reports

import (
	"bytes"
	"flag"
	"io"
	"path/filepath"
	"testing"
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
				golden(t, filepath.Join("testdata", name+".golden."+ext), got.String())
			})
		}
	}
}
