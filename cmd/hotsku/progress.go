package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/hotsku/hotsku/loadgen"
	"github.com/hotsku/hotsku/verify/snapshot"
)

// progress shows how a run goes: a bar on a terminal, a line now and then
// elsewhere. It writes to standard error only.
type progress struct {
	w        io.Writer
	terminal bool
	now      func() time.Time
	began    time.Time
	bar      *progressbar.ProgressBar // nil when none is shown
	most     int64                    // largest backlog while orders converge
	said     time.Time                // last line, where there is no bar
}

func newProgress(w io.Writer, now func() time.Time) *progress {
	f, ok := w.(*os.File)
	return &progress{w: w, terminal: ok && term.IsTerminal(int(f.Fd())), now: now, began: now()}
}

// Phase implements scenarios.Progress.
func (p *progress) Phase(what string) {
	p.done()
	fmt.Fprintf(p.w, "%6.1f s  %s\n", p.now().Sub(p.began).Seconds(), what)
}

// Load implements scenarios.Progress.
func (p *progress) Load(l loadgen.Live) {
	answered := l.Completed + l.Failed + l.TimedOut
	scheduled := strconv.FormatUint(l.Scheduled, 10) // of one width all along: the bar must not jump
	text := fmt.Sprintf("%*d of %s answered, %4d in flight, P99 %6s ms", len(scheduled), answered, scheduled, l.InFlight, p99(l))
	if l.Waiting > 0 {
		text += fmt.Sprintf(", %d overdue", l.Waiting)
	}
	if !p.terminal {
		p.say(text)
		return
	}
	p.show(int64(l.Scheduled), int64(answered), text)
}

// p99 is that of the requests due in the last second, which have no latency
// yet where none of them was answered: the generator, or the server, is behind.
func p99(l loadgen.Live) string {
	if l.P99 == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f", float64(l.P99)/1e6)
}

// Converging implements scenarios.Progress: its bar is full when nothing is
// under way any more.
func (p *progress) Converging(b snapshot.Backlog) {
	text := fmt.Sprintf("to go: reservations %d, messages %d, events %d, overdue orders %d", b.Pending, b.Lag, b.Outbox, b.Overdue)
	if !p.terminal {
		p.say(text)
		return
	}
	p.most = max(p.most, b.Total())
	p.show(p.most, p.most-b.Total(), text)
}

// show draws the bar. There is none while nothing is known to do.
func (p *progress) show(total, done int64, text string) {
	if total == 0 {
		return
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(p.w), progressbar.OptionSetWidth(24),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetPredictTime(false),
			progressbar.OptionSetElapsedTime(false), progressbar.OptionShowDescriptionAtLineEnd(), progressbar.OptionUseANSICodes(true))
	}
	if p.bar.GetMax64() != total {
		p.bar.ChangeMax64(total)
	}
	p.bar.Describe(text)
	_ = p.bar.Set64(min(done, total)) // its errors are about where it is, which is only shown
}

// say prints a line, at most every 2 s.
func (p *progress) say(text string) {
	if p.now().Sub(p.said) < 2*time.Second {
		return
	}
	p.said = p.now()
	fmt.Fprintf(p.w, "%6.1f s    %s\n", p.now().Sub(p.began).Seconds(), text)
}

// done takes the bar away.
func (p *progress) done() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar, p.most = nil, 0
	}
}
