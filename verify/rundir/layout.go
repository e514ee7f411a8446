package rundir

import "path/filepath"

// Dir is the path of a run directory.
type Dir string

func (d Dir) path(elem ...string) string {
	return filepath.Join(append([]string{string(d)}, elem...)...)
}

// Evidence, by which verify judges.
func (d Dir) Plan() string             { return d.path("plan.json") }
func (d Dir) History() string          { return d.path("history") }
func (d Dir) Timeline() string         { return d.path("timeline.jsonl") }
func (d Dir) Queries() string          { return d.path("queries.jsonl") }
func (d Dir) Stores() string           { return d.path("stores") }
func (d Dir) Snapshot() string         { return d.path("stores", "snapshot.json") }
func (d Dir) RedisKeys() string        { return d.path("stores", "redis", "keys.jsonl") }
func (d Dir) RedisLog() string         { return d.path("stores", "redis", "log.jsonl") }
func (d Dir) Table(name string) string { return d.path("stores", "postgres", name+".jsonl") }
func (d Dir) Messages() string         { return d.path("stores", "broker", "messages.jsonl") }
func (d Dir) Offsets() string          { return d.path("stores", "broker", "offsets.jsonl") }

// Measurements, which reports show and verify does not need.
func (d Dir) LatencyLog() string   { return d.path("latency.hlog") }
func (d Dir) Measurements() string { return d.path("metrics", "load.json") }
func (d Dir) Extras() string       { return d.path("metrics", "extras.json") }
func (d Dir) Metrics() string      { return d.path("metrics") }
func (d Dir) Logs() string         { return d.path("logs") }

// Outputs.
func (d Dir) Run() string    { return d.path("run.json") }
func (d Dir) Report() string { return d.path("report.html") }
func (d Dir) JUnit() string  { return d.path("junit.xml") }
