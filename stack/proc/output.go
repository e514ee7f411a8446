package proc

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
)

// tailBytes bounds what is read from a log's end for an error message.
const tailBytes = 8 << 10

// ExitError says that a process ended before it was ready.
type ExitError struct {
	Name  string
	State ExitState
	// LogPath is the process's log, LastLines its last non-empty lines since the process started.
	LogPath   string
	LastLines []string
}

// Error is one line: the name, how it ended, the last log lines joined by " | ", and the log's path.
func (e *ExitError) Error() string {
	if len(e.LastLines) == 0 {
		return fmt.Sprintf("%s ended before it was ready (%s) and logged nothing to %s", e.Name, e.State, e.LogPath)
	}
	return fmt.Sprintf("%s ended before it was ready (%s): %s (log: %s)",
		e.Name, e.State, strings.Join(e.LastLines, " | "), e.LogPath)
}

// EarlyExit describes the end of a process that was waited for by other means than Spec.Ready.
// It must have ended.
func (p *Process) EarlyExit() error {
	<-p.done
	return &ExitError{Name: p.name, State: p.exit, LogPath: p.logPath, LastLines: p.lastLines(3)}
}

// LogSinceStart opens the log at the place where this process began to write.
func (p *Process) LogSinceStart() (io.ReadCloser, error) {
	f, err := os.Open(p.logPath)
	if err != nil {
		return nil, fmt.Errorf("proc: open log of %s: %w", p.name, err)
	}
	if _, err := f.Seek(p.logStart, io.SeekStart); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("proc: open log of %s: %w", p.name, err)
	}
	return f, nil
}

func (p *Process) lastLines(n int) []string {
	f, err := os.Open(p.logPath)
	if err != nil {
		return nil
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil
	}
	from := max(p.logStart, fi.Size()-tailBytes)
	b, err := io.ReadAll(io.NewSectionReader(f, from, tailBytes))
	if err != nil {
		return nil
	}
	var lines []string
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-n):]
}

// lineWatcher is a child's stdout: it appends to the log and shows each whole line to match until one
// is accepted. Used by the one goroutine that copies the output.
type lineWatcher struct {
	log   io.Writer
	match func([]byte) bool
	found chan<- struct{}
	part  []byte
}

// maxLineBytes bounds the memory of a line that never ends; the rest of such a line is not shown.
const maxLineBytes = 64 << 10

func (w *lineWatcher) Write(b []byte) (int, error) {
	if w.match != nil {
		w.scan(b)
	}
	return w.log.Write(b)
}

func (w *lineWatcher) scan(b []byte) {
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			w.part = append(w.part, b[:min(len(b), maxLineBytes-len(w.part))]...)
			return
		}
		line := b[:i]
		if len(w.part) > 0 {
			line = append(w.part, line...)
		}
		if w.match(bytes.TrimSuffix(line, []byte{'\r'})) {
			w.match, w.part = nil, nil
			close(w.found)
			return
		}
		w.part = w.part[:0]
		b = b[i+1:]
	}
}
