package loadgen

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/loadgen/pace"
)

// Replay makes the time series of a run again from its schedule and its
// history; next gives its records until io.EOF. The records may be those of
// several shards of the schedule, in any order.
func Replay(s pace.Schedule, next func(*history.Record) error) (series []Point, width time.Duration, err error) {
	width = slotWidth(s.Span())
	slots := make([]slot, int((s.Span()-1)/width)+1)
	var rec history.Record
	for err = next(&rec); err == nil; err = next(&rec) {
		if rec.Intended < 0 || rec.Intended >= int64(s.Span()) {
			return nil, 0, fmt.Errorf("request %d was intended at %v, outside the schedule of %v", rec.N, time.Duration(rec.Intended), s.Span())
		}
		at := &slots[rec.Intended/int64(width)]
		switch rec.Outcome {
		case history.Completed:
			at.answered(rec.Code, rec.Done-rec.Intended)
		case history.Failed:
			at.lost++
		case history.TimedOut, history.Unfinished:
			at.givenUp(rec.Done - rec.Intended)
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	return points(slots, width, s), width, nil
}
