package chaos

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hotsku/hotsku/verify/rundir"
)

// clock is a clock that tests move.
type clock struct{ at time.Time }

func (c *clock) now() time.Time          { return c.at }
func (c *clock) advance(d time.Duration) { c.at = c.at.Add(d) }

func newTimeline(t *testing.T, now func() time.Time) (*Timeline, rundir.Dir) {
	t.Helper()
	dir := rundir.Dir(t.TempDir())
	line, err := NewTimeline(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	return line, dir
}

func events(t *testing.T, dir rundir.Dir) []rundir.TimelineEvent {
	t.Helper()
	var out []rundir.TimelineEvent
	for e, err := range rundir.Rows[rundir.TimelineEvent](dir.Timeline()) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func TestTimelineCountsFromTheStartOfTheLoad(t *testing.T) {
	c := &clock{at: time.Unix(1_800_000_000, 0)}
	line, dir := newTimeline(t, c.now)
	line.Add("bench", "redis", "started", nil, "127.0.0.1:1")
	c.advance(1500 * time.Millisecond)
	line.Add("kill@p", "access-1", "armed", nil, "")
	c.advance(2500 * time.Millisecond)
	line.LoadStarted(c.now())
	line.Add("bench", "generator", "load started", nil, "")
	c.advance(250 * time.Millisecond)
	line.Add("kill@p", "access-1", "bit", map[string]int64{"killed": 1}, "pid 7")
	if err := line.Close(); err != nil {
		t.Fatal(err)
	}
	want := []rundir.TimelineEvent{
		{AtMS: -4000, Actor: "bench", Target: "redis", Event: "started", Detail: "127.0.0.1:1"},
		{AtMS: -2500, Actor: "kill@p", Target: "access-1", Event: "armed"},
		{AtMS: 0, Actor: "bench", Target: "generator", Event: "load started"},
		{AtMS: 250, Actor: "kill@p", Target: "access-1", Event: "bit", Hits: map[string]int64{"killed": 1}, Detail: "pid 7"},
	}
	if diff := cmp.Diff(want, events(t, dir)); diff != "" {
		t.Errorf("timeline (-want +got):\n%s", diff)
	}
}

func TestTimelineOfALoadThatNeverStartedIsKept(t *testing.T) {
	c := &clock{at: time.Unix(1_800_000_000, 0)}
	line, dir := newTimeline(t, c.now)
	c.advance(time.Second)
	line.Add("bench", "redis", "started", nil, "")
	if err := line.Close(); err != nil {
		t.Fatal(err)
	}
	if got := events(t, dir); len(got) != 1 || got[0].AtMS != 1000 {
		t.Errorf("timeline is %+v, want the one event, a second after the timeline's start", got)
	}
}

func TestTimelineIsInTheFileWhileTheRunGoesOn(t *testing.T) {
	c := &clock{at: time.Unix(1_800_000_000, 0)}
	line, dir := newTimeline(t, c.now)
	line.LoadStarted(c.now())
	line.Add("kill@p", "access-1", "bit", nil, "")
	body, err := os.ReadFile(dir.Timeline())
	if err != nil || len(body) == 0 || body[len(body)-1] != '\n' {
		t.Errorf("file holds %q (%v) before Close, want the event", body, err)
	}
	if err := line.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestTimelineKeepsEveryEventOfConcurrentActorsInTheOrderOfTime(t *testing.T) {
	line, dir := newTimeline(t, time.Now)
	const actors, each = 8, 50
	var started sync.Once
	var wg sync.WaitGroup
	for a := range actors {
		wg.Go(func() {
			for i := range each {
				if i == each/2 {
					started.Do(func() { line.LoadStarted(time.Now()) })
				}
				line.Add(fmt.Sprintf("fault-%d", a), "t", fmt.Sprint(i), map[string]int64{"hit": int64(i)}, "")
			}
		})
	}
	wg.Wait()
	if err := line.Close(); err != nil {
		t.Fatal(err)
	}
	got := events(t, dir)
	if len(got) != actors*each {
		t.Fatalf("%d events, want %d", len(got), actors*each)
	}
	if !slices.IsSortedFunc(got, func(a, b rundir.TimelineEvent) int { return int(a.AtMS - b.AtMS) }) {
		t.Error("events are not in the order of time")
	}
	next := map[string]int{}
	for _, e := range got {
		if e.Event != fmt.Sprint(next[e.Actor]) {
			t.Fatalf("%s: event %s comes when %d is next", e.Actor, e.Event, next[e.Actor])
		}
		next[e.Actor]++
	}
}

// A full disk loses evidence: the run must not pass for it.
func TestTimelineReportsALostEventWhenItCloses(t *testing.T) {
	dir := rundir.Dir(t.TempDir())
	if err := os.Symlink("/dev/full", dir.Timeline()); err != nil {
		t.Fatal(err)
	}
	line, err := NewTimeline(dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	line.LoadStarted(time.Now())
	line.Add("kill@p", "access-1", "bit", nil, "")
	line.Add("kill@p", "access-1", "healed", nil, "")
	if err := line.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Close returned %v, want no space left on device", err)
	}
}

func TestTimelineNeedsAFolderItMayWrite(t *testing.T) {
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewTimeline(rundir.Dir(file), time.Now); err == nil {
		t.Error("a file was taken for a run directory")
	}
}
