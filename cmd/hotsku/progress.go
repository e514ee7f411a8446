package main

import (
	"fmt"
	"io"
	"os"
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
	bar      *progressbar.ProgressBar
	began    time.Time
	said     time.Time // last line, where there is no bar
}

func newProgress(w io.Writer) *progress {
	f, ok := w.(*os.File)
	return &progress{w: w, terminal: ok && term.IsTerminal(int(f.Fd())), began: time.Now()}
}

// Phase implements scenarios.Progress.
func (p *progress) Phase(what string) {
	p.done()
	fmt.Fprintf(p.w, "%6.1f s  %s\n", time.Since(p.began).Seconds(), what)
}

// Load implements scenarios.Progress.
func (p *progress) Load(l loadgen.Live) {
	text := fmt.Sprintf("%d in flight, P99 %.1f ms", l.InFlight, float64(l.P99)/1e6)
	answered := l.Completed + l.Failed + l.TimedOut
	if !p.terminal {
		p.say("%d of %d requests answered, %s", answered, l.Scheduled, text)
		return
	}
	p.show(int64(l.Scheduled), int64(answered), text)
}

// Converging implements scenarios.Progress.
func (p *progress) Converging(s snapshot.Backlog) {
	if !p.terminal {
		p.say("%d reservations pending, %d messages and %d events under way", s.Pending, s.Lag, s.Outbox)
		return
	}
	p.show(-1, 0, fmt.Sprintf("%d reservations pending, %d messages and %d events under way", s.Pending, s.Lag, s.Outbox))
}

func (p *progress) show(total, now int64, text string) {
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(p.w), progressbar.OptionSetWidth(30),
			progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetPredictTime(false),
			progressbar.OptionShowCount())
	}
	p.bar.Describe(fmt.Sprintf("%-46s", text))
	_ = p.bar.Set64(now) // past its end it is full, which is all it can say
}

// say prints a line, at most every 2 s.
func (p *progress) say(format string, args ...any) {
	if time.Since(p.said) < 2*time.Second {
		return
	}
	p.said = time.Now()
	fmt.Fprintf(p.w, "%6.1f s    "+format+"\n", append([]any{time.Since(p.began).Seconds()}, args...)...)
}

// done takes the bar away.
func (p *progress) done() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}
