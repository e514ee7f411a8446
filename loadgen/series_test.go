package loadgen

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSketchIsWithinItsPrecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64Range(1<<sketchShift, int64(time.Hour)).Draw(t, "v")
		got := sketchValue(sketchIndex(v))
		if diff := max(got-v, v-got); diff*32 > v {
			t.Fatalf("%d is taken for %d: more than 1/32 off", v, got)
		}
		if sketchIndex(v) < sketchIndex(v-1) {
			t.Fatalf("index decreases at %d", v)
		}
	})
}

func TestSeriesStaysBoundedAtAnyDuration(t *testing.T) {
	for _, span := range []time.Duration{time.Second, time.Minute, time.Hour, 31 * 24 * time.Hour} {
		if n := span / slotWidth(span); n > slotsMax {
			t.Errorf("%v: %d points", span, n)
		}
	}
	if w := slotWidth(time.Minute); w != 100*time.Millisecond {
		t.Errorf("a minute is shown in steps of %v, want 100ms", w)
	}
}
