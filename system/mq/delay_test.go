package mq

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDelayLevelsReachTheTimeInFewSteps(t *testing.T) {
	for _, test := range []struct {
		after time.Duration
		level int
	}{
		{-time.Second, 0}, {0, 0},
		{time.Microsecond, 1}, {time.Second, 1},
		{1500 * time.Millisecond, 1}, // 5 s would be late: 1 s, then the rest
		{4200 * time.Millisecond, 2}, // 5 s is little too much
		{5 * time.Minute, 9}, {4*time.Minute + 59*time.Second, 9},
		{15 * time.Minute, 14}, // 10 m, then 5 m
		{20 * time.Minute, 15}, {48 * time.Hour, 18},
	} {
		if got := delayLevel(test.after); got != test.level {
			t.Errorf("after %v: level %d, want %d", test.after, got, test.level)
		}
	}
}

// Whatever the delay, its message arrives, is never late by more than a
// second or a twentieth, and needs few steps.
func TestDelayLevelsAreNeverFarTooLate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := time.Duration(rapid.Int64Range(1, int64(7*24*time.Hour)).Draw(t, "after"))
		left, steps := want, 0
		for left > 0 {
			level := delayLevel(left)
			if level < 1 || level > len(delayLevels) {
				t.Fatalf("after %v: level %d", left, level)
			}
			slack := max(time.Second, left/20)
			left -= delayLevels[level-1]
			if steps++; -left > slack {
				t.Fatalf("%v late", -left)
			}
		}
		if limit := 8 + int(want/(2*time.Hour)) + 5; steps > limit {
			t.Fatalf("%d steps for %v", steps, want)
		}
	})
}
