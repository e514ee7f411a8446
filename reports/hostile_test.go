package reports

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"pgregory.net/rapid"

	"github.com/hotsku/hotsku/verify/rundir"
)

// named is a run in which every string that others chose is s.
func named(s string) Input {
	in := failInput()
	f := faultInput()
	r := in.Run
	r.Name, r.Scheme, r.Command, r.Reasons = s, s, s, []string{s, s}
	r.Faults, in.Timeline = f.Run.Faults, f.Timeline
	r.Faults[0].Name, r.Faults[0].Target, r.Faults[0].Hits = s, s, map[string]int64{s: 3}
	for i := range in.Timeline {
		e := &in.Timeline[i]
		e.Actor, e.Target, e.Event, e.Detail, e.Hits = s, s, s, s, map[string]int64{s: 1}
	}
	for i := range r.Invariants {
		r.Invariants[i].Name, r.Invariants[i].Witness = s, []string{s, s}
	}
	for i := range r.SLO {
		r.SLO[i].Name = s
	}
	for i := range r.Funnel {
		r.Funnel[i].Stage = s
	}
	r.Codes[s] = 5
	r.LatencyMS.ByCode[s] = rundir.Percentiles{Count: 5, P99: 1}
	r.CPUSeconds[s] = 1
	r.Environment.CPU = s
	for i := range in.Measurements.Curves {
		in.Measurements.Curves[i].Name = s
	}
	in.Measurements.Series = in.Measurements.Series[:3]
	in.Measurements.Series[0].Codes[s] = 1
	in.Plan.MustHits = []rundir.MustHit{{Fault: s, Hit: s, AtLeast: 9}, {Fault: s + "?", Hit: s, AtLeast: 9}}
	in.Dir = rundir.Dir("out/" + s)
	return in
}

// dangerous are strings that have broken reports.
var dangerous = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `]]>`, `<!--`, `</title></style>`, `&amp;`, "'",
	"a\x00b", "\x1b[31mred\x1b[0m", "\xff\xfe", "line\nbreak\r\ttab", "\u202eevil", "秒杀活动压测", "{{.Run}}", `style="#FE0101"`,
	strings.Repeat("long ", 400), strings.Repeat("W", 900),
}

// hostile draws non-empty strings, dangerous ones often.
func hostile() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom(dangerous), rapid.StringN(1, 40, -1))
}

func renderString(t interface{ Fatal(...any) }, render func(io.Writer, Input) error, in Input) string {
	var out bytes.Buffer
	if err := render(&out, in); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestNoStringChangesThePagesMarkup(t *testing.T) {
	t.Parallel()
	charted := renderString(t, HTML, named("harmless"))
	for _, s := range dangerous {
		page := renderString(t, HTML, named(s))
		sameMarkup(t, page, charted)
		drawings := plotsOf(page)
		if len(drawings) != 6 {
			t.Fatalf("%d drawings, want three charts in two sizes", len(drawings))
		}
		for _, d := range drawings {
			wellFormed(t, d)
		}
	}
	bare := func(s string) Input { // charts take most of the time
		in := named(s)
		in.Measurements, in.Run.Orders.PerSecond = nil, nil
		return in
	}
	plain := renderString(t, HTML, bare("harmless"))
	rapid.Check(t, func(t *rapid.T) {
		sameMarkup(t, renderString(t, HTML, bare(hostile().Draw(t, "s"))), plain)
	})
}

// sameMarkup holds if two pages differ in text only.
func sameMarkup(t interface{ Fatalf(string, ...any) }, page, benign string) {
	for _, c := range []string{"<", ">", `"`} {
		if got, want := strings.Count(page, c), strings.Count(benign, c); got != want {
			t.Fatalf("%d %s in the page, %d with a harmless name", got, c, want)
		}
	}
}

var plotPattern = regexp.MustCompile(`(?s)<svg class="plot".*?</svg>`)

func plotsOf(page string) []string { return plotPattern.FindAllString(page, -1) }

func wellFormed(t interface{ Fatalf(string, ...any) }, doc string) {
	dec := xml.NewDecoder(strings.NewReader(doc))
	for {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
	}
}

func TestJUnitKeepsEveryWitnessWhateverItSays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := hostile().Draw(t, "s")
		text := renderString(t, JUnit, named(s))
		var doc junitSuites
		if err := xml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatalf("junit.xml does not parse: %v", err)
		}
		var escaped bytes.Buffer
		if err := xml.EscapeText(&escaped, []byte(s+"\n"+s)); err != nil {
			t.Fatal(err)
		}
		var want string
		if err := xml.Unmarshal([]byte("<x>"+escaped.String()+"</x>"), &want); err != nil {
			t.Fatal(err)
		}
		c := findCase(doc, "invariants", "I1 ")
		if c == nil || c.Failure == nil || c.Failure.Text != want {
			t.Fatalf("I1's failure does not carry its witnesses: %+v", c)
		}
	})
}

func findCase(doc junitSuites, class, prefix string) *junitCase {
	for i, c := range doc.Suites[0].Cases {
		if strings.HasSuffix(c.Class, class) && strings.HasPrefix(c.Name, prefix) {
			return &doc.Suites[0].Cases[i]
		}
	}
	return nil
}

func TestTerminalKeepsItsWidthAndObeysNoString(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := named(hostile().Draw(t, "s"))
		width := rapid.IntRange(0, 130).Draw(t, "width")
		text := renderString(t, func(w io.Writer, in Input) error { return Terminal(w, in, TerminalOptions{Width: width}) }, in)
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		most := width
		if width == 0 || width > TerminalWidthDefault {
			most = TerminalWidthDefault
		}
		most = max(most, terminalWidthMin)
		for _, l := range lines[:len(lines)-1] {
			if w := uniseg.StringWidth(l); w > most {
				t.Fatalf("%d columns wide, limit %d: %q", w, most, l)
			}
		}
		if !utf8.ValidString(text) || strings.ContainsFunc(strings.ReplaceAll(text, "\n", ""), func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Fatalf("a control character reached the terminal: %q", text)
		}
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, "report  ") || !strings.HasSuffix(last, "report.html") {
			t.Fatalf("the last line is not the path of the report: %q", last)
		}
	})
}

// badFigure is no number, or a coordinate far outside any drawing.
var badFigure = regexp.MustCompile(`NaN|Inf|[ML,"]-?[0-9.]+e\+[0-9]+`)

func TestChartsTakeAnyFigure(t *testing.T) {
	t.Parallel()
	figure := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, -1, 1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, 1e-300}))
	number := rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, 3_000_000))
	rapid.Check(t, func(t *rapid.T) {
		in := faultInput()
		m := &rundir.Measurements{StepMS: rapid.SampledFrom([]int64{0, -5, 1, 100, math.MaxInt64}).Draw(t, "step")}
		for range rapid.IntRange(0, 4).Draw(t, "points") {
			m.Series = append(m.Series, rundir.SeriesPoint{
				AtMS: number.Draw(t, "at"), Scheduled: number.Draw(t, "scheduled"), Completed: number.Draw(t, "completed"),
				P50MS: figure.Draw(t, "p50"), P99MS: figure.Draw(t, "p99"), MaxMS: figure.Draw(t, "max"),
				Codes: map[string]int64{"QUEUED": number.Draw(t, "queued"), "?": number.Draw(t, "other")},
			})
			m.Curve = append(m.Curve, rundir.CurvePoint{Quantile: figure.Draw(t, "quantile"), MS: figure.Draw(t, "ms")})
		}
		in.Measurements = m
		in.Run.SLO[0].Target = figure.Draw(t, "target")
		in.Run.Faults[0].AtMS, in.Run.Faults[0].UntilMS = number.Draw(t, "fault"), number.Draw(t, "until")
		in.Run.Orders.PerSecond = []rundir.OrdersAt{{Second: rapid.Int().Draw(t, "second"), Orders: number.Draw(t, "orders")}}
		in.Run.CPUSeconds["x"] = figure.Draw(t, "cpu")
		for _, d := range plotsOf(renderString(t, HTML, in)) {
			wellFormed(t, d)
			if bad := badFigure.FindString(d); bad != "" {
				t.Fatalf("%q in a drawing", bad)
			}
		}
	})
}
