package reports

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed report.html.tmpl
var pageSource string

//go:embed report.css
var pageStyle string

var pageTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"count": count, "ms": ms, "figure": figure, "percent": percent,
}).Parse(pageSource))

// HTML writes report.html: one self-contained page without scripts or outside
// assets, for screens wide and narrow, light and dark, and for paper. The same
// Input gives the same bytes.
func HTML(w io.Writer, in Input) error {
	if err := pageTemplate.Execute(w, newPage(in)); err != nil {
		return fmt.Errorf("write html report: %w", err)
	}
	return nil
}
