package loadgen

import (
	"context"
	"testing"
	"time"

	"github.com/hotsku/hotsku/loadgen/hdr"
	"github.com/hotsku/hotsku/loadgen/pace"
	"github.com/hotsku/hotsku/loadgen/wire"
)

// ready is a link that always has room and writes at once. It notes how late
// each request was.
type ready struct {
	link
	schedule pace.Schedule
	now      func() int64
	lags     []time.Duration
}

func (ready) Room() int                                      { return 1024 }
func (ready) Flush(wire.Filler) bool                         { return true }
func (ready) Reclaim(returned []wire.Request) []wire.Request { return returned }

func (l ready) Offer(n int, f wire.Filler) {
	var r wire.Request
	for range n {
		f.Fill(nil, &r)
		r.Sent = l.now()
		l.lags[r.N] = time.Duration(r.Sent) - l.schedule.At(r.N)
		f.Sent(&r)
	}
}

type nothing struct{}

func (nothing) Append(dst []byte, n uint64) ([]byte, uint64, uint32) { return dst, n, 0 }

// sent runs a schedule in a time of its own, in which the wake-up after sleep
// number n is late by late(n), and returns how late each request was written, and how often the sender slept.
func sent(t *testing.T, text string, late func(sleep int) time.Duration) (lags []time.Duration, sleeps int) {
	t.Helper()
	schedule, err := pace.Parse(text, pace.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	lags = make([]time.Duration, schedule.Total())
	at := int64(0)
	now := func() int64 { return at }
	s := &sender{schedule: schedule, cursor: pace.Walk(schedule, 0), source: nothing{}, conns: []link{ready{schedule: schedule, now: now, lags: lags}},
		tick: time.Millisecond, now: now, deadline: time.Hour, resolved: func() uint64 { return 0 },
		lag: hdr.New(), progress: &progress{}, fullSince: -1}
	s.sleep = func(d time.Duration) {
		sleeps++
		at += int64(d + late(sleeps))
	}
	if s.run(context.Background()) || s.sent != schedule.Total() {
		t.Fatalf("%d of %d sent", s.sent, schedule.Total())
	}
	return lags, sleeps
}

// A wake-up that comes late delays what was due then, and nothing after it:
// the next ones are not moved along.
func TestALateWakeUpDelaysNothingAfterIt(t *testing.T) {
	const late = 700 * time.Microsecond
	lags, _ := sent(t, "constant:1000:1s", func(n int) time.Duration {
		if n == 100 {
			return late
		}
		return 0
	})
	delayed := 0
	for n, lag := range lags {
		if lag > late {
			t.Fatalf("request %d is %v late", n, lag)
		}
		if lag > 0 {
			delayed++
		}
	}
	if delayed != 1 {
		t.Errorf("%d requests were late, 1 wake-up was", delayed)
	}
}

// What comes alone after a pause is awaited to the moment, however many it is.
func TestABurstAfterAPauseIsReleasedWhenItIsDue(t *testing.T) {
	lags, _ := sent(t, "burst:5000:30ms:50ms", func(int) time.Duration { return 0 })
	for n, lag := range lags {
		if lag != 0 {
			t.Fatalf("request %d of the burst is %v late", n, lag)
		}
	}
}

// Where many are due in a tick the sender wakes up once in it, whatever woke
// it up a little late; where few are, once for each.
func TestManyRequestsShareAWakeUp(t *testing.T) {
	for text, most := range map[string]int{"constant:20000:1s": 1001, "constant:300000:1s": 1001, "constant:3000:1s": 3001, "constant:10:1s": 60} {
		if _, sleeps := sent(t, text, func(int) time.Duration { return 30 * time.Microsecond }); sleeps > most {
			t.Errorf("%s: %d sleeps, at most %d", text, sleeps, most)
		}
	}
}
