package chaos

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hotsku/hotsku/verify/rundir"
)

// Timeline is the run's timeline.jsonl as it is written. From the start of the
// load an event is in the file when the call that notes it returns, so that a
// run that is cut short keeps it. Safe for concurrent use.
type Timeline struct {
	mu      sync.Mutex
	rows    *rundir.RowWriter
	now     func() time.Time
	created time.Time
	start   time.Time // of the load; zero before it
	early   []rundir.TimelineEvent
	err     error // the first failed write: evidence that was lost fails the run
}

// NewTimeline starts dir's timeline.
func NewTimeline(dir rundir.Dir, now func() time.Time) (*Timeline, error) {
	rows, err := rundir.CreateRows(dir.Timeline())
	if err != nil {
		return nil, err
	}
	return &Timeline{rows: rows, now: now, created: now()}, nil
}

// LoadStarted fixes the time from which events count; what was added before
// is written now, at negative times.
func (t *Timeline) LoadStarted(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.start = at
	for _, e := range t.early {
		e.AtMS -= at.Sub(t.created).Milliseconds()
		t.write(e)
	}
	t.early = nil
}

// Add notes that something happened now.
func (t *Timeline) Add(actor, target, event string, hits map[string]int64, detail string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := rundir.TimelineEvent{Actor: actor, Target: target, Event: event, Hits: hits, Detail: detail}
	if t.start.IsZero() {
		e.AtMS = t.now().Sub(t.created).Milliseconds()
		t.early = append(t.early, e)
		return
	}
	e.AtMS = t.now().Sub(t.start).Milliseconds()
	t.write(e)
}

func (t *Timeline) write(e rundir.TimelineEvent) {
	if err := errors.Join(t.rows.Write(e), t.rows.Flush()); err != nil && t.err == nil {
		t.err = fmt.Errorf("note %s of %s in the timeline: %w", e.Event, e.Target, err)
	}
}

// Close ends the file and returns the first error of all writes.
func (t *Timeline) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.early { // the load never started
		t.write(e)
	}
	err := t.rows.Close()
	if t.err != nil {
		return t.err
	}
	return err
}
