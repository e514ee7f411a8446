package verify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hotsku/hotsku/verify/rundir"
)

// A violation is told with what went on around it: the nearest events, in
// order, and none of another time.
func TestAViolationIsToldWithWhatWentOnAroundIt(t *testing.T) {
	w := healthyWorld()
	r := w.held[20]
	at := r.at / 1e6
	event := func(ms int64, event string, hits map[string]int64) {
		w.timeline = append(w.timeline, rundir.TimelineEvent{AtMS: ms, Actor: "kill@moment", Target: "consumer-1", Event: event, Hits: hits})
	}
	event(at-2900, "injected", nil)
	event(at-3100, "long before", nil)
	event(at+200, "bit", map[string]int64{"killed": 1, "others_worked": 7})
	event(at+5000, "healed", nil)
	w.forget(r.id)
	run := w.judged(t)
	want := fmt.Sprintf("[it was at %s; around it: at %d ms kill@moment of consumer-1: injected; at 0 ms bench of load: load started; at %d ms kill@moment of consumer-1: bit (killed 1, others_worked 7)]",
		clock(r.at/1000*1000), at-2900, at+200)
	if got := witnesses(run, "I3"); !strings.Contains(got, want) {
		t.Errorf("I3 says\n%s\nwant\n%s", got, want)
	}
	for i := range w.timeline {
		w.timeline[i].AtMS += 1_000_000
	}
	if got := witnesses(w.judged(t), "I3"); strings.Contains(got, "around it") {
		t.Errorf("nothing went on, and I3 says\n%s", got)
	}
}

// What went on around a violation is bounded.
func TestWhatIsToldAroundAViolationIsBounded(t *testing.T) {
	e := &evidence{}
	for i := range int64(100) {
		e.timeline = append(e.timeline, rundir.TimelineEvent{AtMS: i, Actor: "a", Target: "b", Event: "c"})
	}
	want := " [it was at 50.000 ms; around it: at 48 ms a of b: c; at 49 ms a of b: c; at 50 ms a of b: c; at 51 ms a of b: c; at 52 ms a of b: c]"
	if got := e.around(when{50_000_000, true}); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
