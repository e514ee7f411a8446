package snapshot

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/verify/rundir"
)

func TestLogEntryReadsWhatTheScriptsWrite(t *testing.T) {
	a := rundir.Activity{ActivityID: 7, SKUID: 11}
	got, err := logEntry(a, redis.XMessage{ID: "1-0", Values: map[string]any{
		"op": "return", "resv": "resv_A,resv_B", "user": "1,2", "stock": "5", "at": "1772357400123456", "open_at": "1772357400343456"}})
	want := rundir.LogEntry{ActivityID: 7, SKUID: 11, ID: "1-0", Op: "return", Reservations: []string{"resv_A", "resv_B"},
		Users: []int64{1, 2}, Stock: 5, AtUS: 1772357400123456, OpenAtUS: 1772357400343456}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for field, values := range map[string]map[string]any{
		"op": {}, "stock": {"op": "init", "at": "1"}, "at": {"op": "init", "stock": "1", "at": "x"},
		"open_at": {"op": "init", "stock": "1", "at": "1", "open_at": "x"}, "user": {"op": "init", "stock": "1", "at": "1", "user": "x"},
	} {
		if _, err := logEntry(a, redis.XMessage{ID: "1-0", Values: values}); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestOpenNamesWhatIsMissing(t *testing.T) {
	good := Config{Redis: "127.0.0.1:1", Postgres: "postgres://x", NameServer: "127.0.0.1:2", Activities: []rundir.Activity{{ActivityID: 7, SKUID: 11}}}
	for name, spoil := range map[string]func(*Config){
		"addresses": func(c *Config) { c.Redis = "" },
		"activity":  func(c *Config) { c.Activities = nil },
		"positive":  func(c *Config) { c.PollInterval = -1 },
	} {
		c := good
		spoil(&c)
		if _, err := Open(c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, err := Open(good)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
