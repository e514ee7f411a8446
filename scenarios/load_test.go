package scenarios

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestLoadValidate(t *testing.T) {
	change := func(f func(*Load)) Load {
		l := LoadDefault
		f(&l)
		return l
	}
	for _, c := range []struct {
		rule string
		load Load
		says string // empty: it is taken
	}{
		{"the headline (R1.1, R1.2)", LoadDefault, ""},
		{"one request", change(func(l *Load) { l.RatePerS, l.Duration, l.Stock = 1, time.Second, 1 }), ""},
		{"the longest load", change(func(l *Load) { l.Duration = DurationMax }), ""},
		{"the zero value", Load{}, "rate 0: must be 1 to 10000000 requests per second"},
		{"rate 0", change(func(l *Load) { l.RatePerS = 0 }), "rate 0: must be 1 to"},
		{"rate below 0", change(func(l *Load) { l.RatePerS = -5 }), "rate -5: must be 1 to"},
		{"rate above its limit", change(func(l *Load) { l.RatePerS = RateMax + 1 }), "rate 10000001: must be"},
		{"duration 0", change(func(l *Load) { l.Duration = 0 }), "duration 0s: must be 100ms to 1h0m0s"},
		{"duration below 0", change(func(l *Load) { l.Duration = -time.Second }), "duration -1s: must be"},
		{"duration above its limit", change(func(l *Load) { l.Duration = DurationMax + 1 }), "must be 100ms to"},
		{"stock 0", change(func(l *Load) { l.Stock = 0 }), "stock 0: must be 1 to 1000000 units"},
		{"stock -1", change(func(l *Load) { l.Stock = -1 }), "stock -1: must be"},
		{"stock above its limit", change(func(l *Load) { l.Stock = StockMax + 1 }), "stock 1000001: must be"},
		{"no connection", change(func(l *Load) { l.Connections = 0 }), "connections 0: must be 1 to 4096"},
		{"too many connections", change(func(l *Load) { l.Connections = 4097 }), "connections 4097: must be"},
		{"depth 0", change(func(l *Load) { l.Depth = 0 }), "depth 0: must be 1 to 4096"},
		{"depth above its limit", change(func(l *Load) { l.Depth = 4097 }), "depth 4097: must be"},
		{"timeout 0", change(func(l *Load) { l.Timeout = 0 }), "timeout 0s: must be 10ms to 1m"},
		{"timeout above its limit", change(func(l *Load) { l.Timeout = time.Hour }), "timeout 1h0m0s: must be"},
		{"so slow and short that nothing is sent", change(func(l *Load) { l.RatePerS, l.Duration = 4, 100*time.Millisecond }), "schedules no request"},
		{"more requests than the history can number", change(func(l *Load) { l.RatePerS, l.Duration = 2_000_000, 36*time.Minute }), "schedules 4320000000 requests: must be below 4294967296"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			err := c.load.Validate()
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("error is %v, want %q", err, c.says)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("%q is more than a line", err)
			}
		})
	}
}

// The SLO "every unit sold" must be within reach of every seed's users.
func TestUsersIsALowerBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Load{RatePerS: rapid.Int64Range(1, 20_000).Draw(t, "rate"), Duration: time.Duration(rapid.Int64Range(100, 3000).Draw(t, "ms")) * time.Millisecond}
		w := l.workload(rapid.Uint64().Draw(t, "seed"))
		scheduled := int64(float64(l.RatePerS) * l.Duration.Seconds())
		users := map[int64]struct{}{}
		for n := range uint64(scheduled) {
			users[w.Pick(n).User] = struct{}{}
		}
		bound := l.users()
		if bound < 0 || bound > int64(len(users)) {
			t.Fatalf("%d requests have %d users, the bound says %d at least", scheduled, len(users), bound)
		}
		if scheduled > 10_000 && float64(bound) < 0.95*float64(len(users)) {
			t.Fatalf("%d requests have %d users, the bound %d is too low to ask anything", scheduled, len(users), bound)
		}
	})
}
