package pace_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/hotsku/hotsku/loadgen/pace"
	"pgregory.net/rapid"
)

func TestConstantCountIsRateTimesDuration(t *testing.T) {
	for _, tc := range []struct {
		rate float64
		span time.Duration
		want uint64
	}{
		{5, 10 * time.Second, 50},
		{30, 30 * time.Second, 900},
		{300_000, 10 * time.Second, 3_000_000},
		{30_000, time.Second, 30_000},
		{33.3, 10 * time.Second, 333},
		{0.1, 10 * time.Second, 1},
		{7, 1500 * time.Millisecond, 11},
		{600_000, 24 * time.Hour, 51_840_000_000},
	} {
		c, err := pace.NewConstant(tc.rate, tc.span)
		if err != nil {
			t.Fatalf("NewConstant(%v, %v): %v", tc.rate, tc.span, err)
		}
		if c.Total() != tc.want {
			t.Errorf("%v/s for %v: %d requests, want %d", tc.rate, tc.span, c.Total(), tc.want)
		}
		if got := c.Due(tc.span - 1); got != tc.want {
			t.Errorf("%v/s for %v: %d due in the last nanosecond, want all %d", tc.rate, tc.span, got, tc.want)
		}
	}
}

func TestConstantRefusesWhatItCannotOffer(t *testing.T) {
	for _, tc := range []struct {
		name string
		rate float64
		span time.Duration
		want error
	}{
		{"rate 0", 0, time.Second, pace.ErrRate},
		{"negative rate", -1, time.Second, pace.ErrRate},
		{"absurd rate", 1e9, time.Second, pace.ErrRate},
		{"NaN", math.NaN(), time.Second, pace.ErrRate},
		{"infinite", math.Inf(1), time.Second, pace.ErrRate},
		{"no request at all", 0.01, time.Second, pace.ErrRate},
		{"duration 0", 1, 0, pace.ErrDuration},
		{"negative duration", 1, -time.Second, pace.ErrDuration},
		{"absurd duration", 1, 1000 * time.Hour, pace.ErrDuration},
	} {
		if _, err := pace.NewConstant(tc.rate, tc.span); !errors.Is(err, tc.want) {
			t.Errorf("%s: error %v, want %v", tc.name, err, tc.want)
		}
	}
}

func TestConstantDueIsTheInverseOfAt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(0.5, pace.RateMax).Draw(t, "rate")
		span := time.Duration(rapid.Int64Range(int64(2*time.Second), int64(pace.SpanMax)).Draw(t, "span"))
		c, err := pace.NewConstant(rate, span)
		if err != nil {
			t.Fatal(err)
		}
		n := rapid.Uint64Range(0, c.Total()-1).Draw(t, "n")
		at := c.At(n)
		if at < 0 || at >= span {
			t.Fatalf("At(%d) = %v outside [0, %v)", n, at, span)
		}
		if due := c.Due(at); due <= n {
			t.Fatalf("request %d is due at %v, but only %d are", n, at, due)
		}
		if due := c.Due(at - 1); due > n {
			t.Fatalf("request %d is due at %v, but %d are before it", n, at, due)
		}
		exact := float64(n) * float64(span) / float64(c.Total())
		if diff := math.Abs(exact - float64(at)); diff > 1+exact*1e-12 {
			t.Fatalf("At(%d) = %v, want %.0f ns", n, at, exact)
		}
	})
}
