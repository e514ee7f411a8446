package scenarios

import (
	"testing"
	"time"
)

// What a process had used stays when another of its name begins at nothing,
// or when it cannot be read for a while.
func TestUsageOnlyGrows(t *testing.T) {
	var u usage
	for i, now := range []map[string]float64{{"access-1": 5, "redis": 2}, {"access-1": 7, "redis": 3}, {"access-1": 1}, {"access-1": 2, "redis": 4}} {
		u.add(time.Duration(i)*time.Second, now)
	}
	for i, want := range []map[string]float64{{"access-1": 5, "redis": 2}, {"access-1": 7, "redis": 3}, {"access-1": 8, "redis": 3}, {"access-1": 9, "redis": 4}} {
		for name, v := range want {
			if got := u.samples[i]; got.CPUSeconds[name] != v || got.AtMS != int64(i)*1000 {
				t.Errorf("sample %d: %+v, want %v", i, got, want)
			}
		}
	}
}
