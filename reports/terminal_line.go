package reports

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

type terminal struct {
	w     *bufio.Writer
	color bool
	width int
}

func newTerminal(w io.Writer, opts TerminalOptions) *terminal {
	width := opts.Width
	if width <= 0 || width > TerminalWidthDefault {
		width = TerminalWidthDefault
	}
	return &terminal{w: bufio.NewWriter(w), color: opts.Color, width: max(width, terminalWidthMin)}
}

// tint is an ANSI colour.
type tint string

const (
	tintNone  tint = ""
	tintBold  tint = "1"
	tintGood  tint = "32"
	tintBad   tint = "31"
	tintWarn  tint = "33"
	tintMuted tint = "2"
)

// cell is text in a column of some width, right-aligned if Right.
type cell struct {
	text  string
	width int
	right bool
	tint  tint
}

// line writes cells two spaces apart, each cut to its column and the line cut
// to the terminal.
func (t *terminal) line(cells ...cell) {
	var b strings.Builder
	used := 0
	for i, c := range cells {
		if i > 0 && used+2 < t.width {
			b.WriteString("  ")
			used += 2
		}
		text := plain(c.text)
		room := t.width - used
		if c.width > 0 {
			room = min(room, c.width)
		}
		text = cut(text, room)
		pad := 0
		if c.width > 0 && (c.right || i < len(cells)-1) {
			pad = max(0, min(c.width, t.width-used)-uniseg.StringWidth(text))
		}
		used += uniseg.StringWidth(text) + pad
		if c.right {
			b.WriteString(strings.Repeat(" ", pad))
		}
		b.WriteString(t.paint(text, c.tint))
		if !c.right {
			b.WriteString(strings.Repeat(" ", pad))
		}
	}
	if !t.color {
		fmt.Fprintln(t.w, strings.TrimRight(b.String(), " "))
		return
	}
	fmt.Fprintln(t.w, b.String())
}

func (t *terminal) paint(s string, c tint) string {
	if !t.color || c == tintNone || s == "" {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}

// wrapped writes text behind a mark over as many lines as it needs, up to
// four.
func (t *terminal) wrapped(mark cell, text string, c tint) {
	const most = 4
	room := t.width - mark.width - 2
	words := strings.Fields(plain(text))
	var lines []string
	cur := ""
	for _, word := range words {
		next := strings.TrimLeft(cur+" "+word, " ")
		if cur != "" && uniseg.StringWidth(next) > room {
			lines = append(lines, cur)
			next = word
		}
		cur = next
	}
	lines = append(lines, cur)
	if len(lines) > most {
		lines = lines[:most]
		lines[most-1] = cut(lines[most-1]+" …", room)
	}
	for i, l := range lines {
		if i > 0 {
			mark.text = ""
		}
		t.line(mark, cell{text: l, tint: c})
	}
}

// plain replaces what a terminal would obey instead of show.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r):
			return '�'
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
}

// columns is how many columns of the terminal s takes.
func columns(s string) int { return uniseg.StringWidth(plain(s)) }

// cut shortens s to a number of columns, ending in "…" if anything was lost.
func cut(s string, columns int) string {
	if uniseg.StringWidth(s) <= columns {
		return s
	}
	if columns <= 0 {
		return ""
	}
	var b strings.Builder
	g := uniseg.NewGraphemes(s)
	used := 0
	for g.Next() {
		if used+g.Width() > columns-1 {
			break
		}
		used += g.Width()
		b.WriteString(g.Str())
	}
	return b.String() + "…"
}

func (t *terminal) heading(cells ...cell) {
	t.line()
	for i := range cells {
		cells[i].tint = tintMuted
	}
	t.line(cells...)
}
