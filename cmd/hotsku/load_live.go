package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/hotsku/hotsku/loadgen"
	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/loadgen/summary"
)

// liveEvery is how often the live line is printed where it cannot be redrawn.
const liveEvery = 2 * time.Second

// liveLine shows how a load goes, in one line that a terminal redraws.
type liveLine struct {
	w        io.Writer
	terminal bool
	last     loadgen.Live
	width    int // of the line on the terminal
}

func newLiveLine(w io.Writer) *liveLine {
	f, ok := w.(*os.File)
	return &liveLine{w: w, terminal: ok && term.IsTerminal(int(f.Fd()))}
}

// show is loadgen.Config.OnProgress.
func (l *liveLine) show(now loadgen.Live) {
	if now.Elapsed < 0 || !l.terminal && now.Elapsed-l.last.Elapsed < liveEvery {
		return
	}
	text := liveText(l.last, now)
	l.last = now
	if !l.terminal {
		fmt.Fprintln(l.w, text)
		return
	}
	fmt.Fprintf(l.w, "\r%-*s", l.width, text)
	l.width = len(text)
}

// liveText says what happened since the last line.
func liveText(last, now loadgen.Live) string {
	perS := 0.0
	if d := (now.Elapsed - last.Elapsed).Seconds(); d > 0 {
		perS = float64(now.Completed-last.Completed) / d
	}
	text := fmt.Sprintf("%6.1f s  %8.0f/s  in flight %5d  waiting %5d  P50 %8.2f ms  P99 %8.2f ms", now.Elapsed.Seconds(), perS, now.InFlight, now.Waiting,
		float64(now.P50)/1e6, float64(now.P99)/1e6)
	for _, code := range slices.Sorted(maps.Keys(now.Codes)) {
		text += fmt.Sprintf("  %s %d", summary.Class(code), now.Codes[code])
	}
	if lost := now.Failed + now.TimedOut; lost > 0 {
		text += fmt.Sprintf("  lost %d", lost)
	}
	return text
}

// done takes the line away.
func (l *liveLine) done() {
	if l.terminal && l.width > 0 {
		fmt.Fprintf(l.w, "\r%s\r", strings.Repeat(" ", l.width))
	}
}

// dumpHistory prints a run's history as CSV. Times are nanoseconds from the
// start; empty where nothing happened.
func dumpHistory(w io.Writer, dir string) error {
	d, err := history.OpenDir(summary.HistoryDir(dir))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, history.ErrNoFiles) {
		d, err = history.OpenDir(dir) // the history's own folder will do
	}
	if err != nil {
		return fmt.Errorf("%w: give a folder that hotsku load --out left", err)
	}
	defer d.Close()
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, "n,user,ordinal,intended_ns,sent_ns,done_ns,outcome,status,code")
	moment := func(at int64) string {
		if at == history.Never {
			return ""
		}
		return fmt.Sprint(at)
	}
	var r history.Record
	for err = d.Next(&r); err == nil; err = d.Next(&r) {
		if _, err := fmt.Fprintf(b, "%d,%d,%d,%d,%s,%s,%s,%d,%d\n", r.N, r.Subject, r.Ordinal, r.Intended, moment(r.Sent), moment(r.Done), r.Outcome, r.Status, r.Code); err != nil {
			return fmt.Errorf("print the history: %w", err)
		}
	}
	if !errors.Is(err, io.EOF) {
		return errors.Join(err, b.Flush())
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("print the history: %w", err)
	}
	return nil
}
