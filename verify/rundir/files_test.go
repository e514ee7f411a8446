package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var at = time.Date(2026, 3, 1, 9, 30, 0, 123456000, time.UTC)

func examplePlan() *Plan {
	return &Plan{
		Schema: PlanSchema, Name: "bench", Seed: 7, Scheme: "redis-mq-token",
		Command: "hotsku bench --seed 7", CreatedAt: at,
		Activities: []Activity{{ActivityID: 7, SKUID: 11, Stock: 100, Tokens: 100, Version: 1,
			StartsAt: at, EndsAt: at.Add(time.Hour)}},
		Workload:      Workload{Seed: 7, FirstUser: 1000, RepeatPermille: 100, ConflictPermille: 5, SameUserPermille: 10},
		Load:          LoadPlan{RatePerS: 20000, DurationMS: 5000, Scheduled: 100000, Connections: 16, Depth: 64, TimeoutMS: 1000},
		SLOs:          []SLO{{Name: "P99 of accepted", Metric: "latency_ms.accepted.p99", Op: "<", Target: 100}},
		SLOMode:       "enforce",
		Limits:        Limits{SendLagP99MS: 10, ConvergeMS: 30000, AmbiguityMS: 20000, GateLagMS: 200},
		Invariants:    []string{"I1", "I2"},
		LossContracts: []string{},
		MustHits:      []MustHit{{Fault: "kill-access", Hit: "killed", AtLeast: 1}},
		Outages:       []Outage{{Fault: "refuse@redis", Dependency: OnRedis, LimitMS: 500, ProbesPerS: 1}},
	}
}

func exampleRun() *Run {
	p := Percentiles{Count: 3, P50: 1.5, P90: 2, P99: 3.25, P999: 3.5, Max: 4}
	return &Run{
		Schema: RunSchema, Verdict: VerdictFail, Reasons: []string{"I1 violated: one unit sold twice"}, ExitCode: 1,
		Name: "bench", Seed: 7, Scheme: "redis-mq-token", StartedAt: at, Command: "hotsku bench --seed 7",
		Environment: Environment{CPU: "x", Cores: 2, MemoryGiB: 24, Kernel: "6.1", Go: "go1.26", Redis: "7.0.15",
			RocketMQ: "5.5.0", Postgres: "15.18", Colocated: true},
		Load: LoadResult{IntendedQPS: 20000, DurationS: 5, AnsweredInS: 5.5, Scheduled: 100000, Sent: 99999, Completed: 99990, Failed: 5,
			TimedOut: 4, Dropped: 1, Unfinished: 0, DecidedRatio: 0.98, SendLagMS: p},
		LatencyMS: Latencies{All: p, Accepted: p, Service: p, ByCode: map[string]Percentiles{"QUEUED": p}},
		Codes:     map[string]int64{"QUEUED": 100},
		Orders: OrdersResult{Accepted: 100, Created: 99, Valid: 99, Rejected: 1, Oversold: 1, ConservationDelta: 1, Within3sRatio: 0.99,
			LatencyMS: p, PerSPeak: 60, PerSecond: []OrdersAt{{Second: 0, Orders: 60}, {Second: 1, Orders: 39}}, HandOutMS: 900},
		Redis:      RedisResult{LuaP99MS: ptr(1.0), Reserved: 100, Calls: ptr(int64(12))},
		MQ:         MQResult{Sends: ptr(int64(10)), Unknown: ptr(int64(1)), Stored: 101, OldestAgeMSMax: ptr(20.0), Redelivered: ptr(int64(2))},
		Postgres:   PostgresResult{TxPerS: ptr(10.0), WALBytes: 1 << 20, ClaimsEmpty: ptr(int64(1))}, // no lock_wait_ms: not measured
		CPUSeconds: map[string]float64{"access": 3.5},
		Phases: []Phase{{Name: "burst", FromMS: 0, UntilMS: 500, DuePerS: 10_000, AnsweredPerS: 9_999.5, LatencyMS: Percentiles{Count: 5000, P50: 1, P90: 2, P99: 3, P999: 4, Max: 5},
			ReservedPerS: 200, StoredPerS: 190, OrderedPerS: 100, Cores: map[string]float64{"access": 0.7}}},
		Stages:     []Stage{{Name: "due → written: the generator", MS: Percentiles{Count: 100, P50: 1, P90: 2, P99: 3, P999: 4, Max: 5}}},
		Funnel:     []FunnelStage{{Source: ByHistory, Stage: "sent", In: 100000, Out: 99999}},
		Faults:     []FaultResult{{Name: "kill-access", Target: "access-1", AtMS: 100, UntilMS: 900, Hits: map[string]int64{"killed": 1}, Bit: true}},
		Invariants: []Invariant{{ID: "I1", Name: "no oversell", Status: StatusViolated, Checked: 100, Violations: 1, Witness: []string{"token 5"}}},
		SLO:        []SLOResult{{Name: "P99", Metric: "latency_ms.accepted.p99", Op: "<", Target: 100, Measured: 3.25, OK: true}},
	}
}

func exampleSnapshot() *Snapshot {
	return &Snapshot{Schema: SnapshotSchema, TakenAt: at, Quiescent: true, WaitedMS: 800, Pending: 0, Lag: 0, Outbox: 0,
		Versions: Versions{Redis: "7.0.15", Postgres: "15.18", RocketMQ: "5.5.0"}, Commits: 120, WALBytes: 1 << 20}
}

func exampleMeasurements() *Measurements {
	c := []CurvePoint{{0.5, 1.5}, {0.99, 3.25}}
	return &Measurements{Schema: MeasurementsSchema, StepMS: 100,
		Series: []SeriesPoint{{AtMS: 0, Scheduled: 2000, Completed: 2000, P50MS: 1, P99MS: 3, MaxMS: 4, Codes: map[string]int64{"QUEUED": 9}}},
		Curve:  c, Curves: []NamedCurve{{Name: "accepted", Curve: c}}}
}

func ptr[T any](v T) *T { return &v }

// exampleRows has one row of every row file's type.
func exampleRows() []any {
	return []any{
		RedisKey{Key: "seckill:{7:11}:stock", Type: "string", ExpireAt: 1772364600, String: "0"},
		RedisKey{Key: "seckill:{7:11}:resv:pending", Type: "zset", ExpireAt: -1, ZSet: map[string]float64{"resv_A": 1.5e15}},
		RedisKey{Key: "seckill:activities", Type: "set", ExpireAt: -1, Set: []string{"7:11"}},
		LogEntry{ActivityID: 7, SKUID: 11, ID: "1-0", Op: "reserve", Reservations: []string{"resv_A"}, Users: []int64{1000}, Stock: 99, AtUS: 1772357400123456},
		Message{Topic: "seckill_order_create", Queue: 3, Offset: 17, StoredAtMS: 1772357400123, Keys: "resv_A", Body: json.RawMessage(`{"a":1}`)},
		Message{Topic: "seckill_order_create", Queue: 3, Offset: 18, StoredAtMS: 1772357400123, Keys: "", BodyBytes: []byte("no json")},
		Offset{Group: "g", Topic: "t", Queue: 3, Min: 0, Max: 18, Consumed: 18},
		SKURow{ActivityID: 7, SKUID: 11, TotalStock: 100, PriceCents: 999, Allocator: "token"},
		TokenRow{TokenID: 9007199254740993, ActivityID: 7, SKUID: 11, Seq: 1, Status: "CLAIMED", ReservationID: ptr("resv_A"), OrderID: ptr("ord_A")},
		OrderRow{OrderID: "ord_A", ActivityID: 7, SKUID: 11, UserID: 1000, RequestID: "r7-0", ReservationID: "resv_A",
			InventoryTokenID: 9007199254740993, AmountCents: 999, Status: "CREATED", CommittedAt: at},
		OrderItemRow{OrderID: "ord_A", LineNo: 1, SKUID: 11, Quantity: 1},
		ReservationRow{ReservationID: "resv_A", MessageID: "msg_A", ActivityID: 7, SKUID: 11, UserID: 1000, RequestID: "r7-0",
			Status: "ORDER_CREATED", OrderID: ptr("ord_A"), ReservedAt: at, CommittedAt: at},
		LedgerRow{LedgerID: 1, ActivityID: 7, SKUID: 11, ReservationID: "resv_A", OrderID: ptr("ord_A"),
			TokenID: ptr(int64(9007199254740993)), EntryType: "SALE", Delta: -1, CommittedAt: at},
		InboxRow{ConsumerGroup: "g", MessageID: "msg_A", ReservationID: "resv_A", ReceivedAt: at, CommittedAt: at},
		OutboxRow{EventID: 1, EventType: "ORDER_CREATED", AggregateID: "resv_A", Payload: json.RawMessage(`{"status":"ORDER_CREATED"}`), PublishedAt: &at},
		DeadLetterRow{Topic: "seckill_order_create", Queue: 3, Offset: 18, MessageID: "msg_A", ReservationID: "resv_A", Class: "poison", Reason: "x", Body: `\x6e6f`},
		Query{Schema: QueriesSchema, Census: true, Ask: AskCancel, User: 1000, RequestID: "r7-0", Order: "ord_A", SentUS: 1772357400123456, DoneUS: 1772357400123999,
			Code: "ORDER_ENDED", Status: "COMPENSATED", Reason: "EXPIRED", OrderID: "ord_A", ReservationID: "resv_A"},
		Query{Schema: QueriesSchema, Ask: AskRequest, User: 1000, RequestID: "r7-0", SentUS: 1772357400123456, DoneUS: 1772357402123456, Failed: "timeout"},
		TimelineEvent{AtMS: -5, Actor: "bench", Target: "redis", Event: "started", Hits: map[string]int64{"killed": 1}, Detail: "d"},
	}
}

// goldenFile compares body with testdata/name and returns its path.
func goldenFile(t *testing.T, name string, body []byte) string {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(body)); diff != "" {
		t.Errorf("%s: the format changed; bump its schema, then run with -update (-golden, +written):\n%s", name, diff)
	}
	return path
}

func testJSONFile[T any](t *testing.T, name string, v *T) {
	t.Run(name, func(t *testing.T) {
		written := filepath.Join(t.TempDir(), "sub", name)
		if err := WriteJSON(written, v); err != nil {
			t.Fatal(err)
		}
		body, err := os.ReadFile(written)
		if err != nil {
			t.Fatal(err)
		}
		path := goldenFile(t, name, body)
		var got T
		if err := ReadJSON(path, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(v, &got); diff != "" {
			t.Errorf("reads back differently:\n%s", diff)
		}
		whole := bytes.TrimSpace(body)
		for cut := range len(whole) {
			if err := os.WriteFile(written, whole[:cut], 0o644); err != nil {
				t.Fatal(err)
			}
			var ev *EvidenceError
			if err := ReadJSON(written, new(T)); !errors.As(err, &ev) || ev.File != written {
				t.Fatalf("cut at byte %d of %d: %v, want an EvidenceError naming the file", cut, len(whole), err)
			}
		}
	})
}

func TestJSONFilesKeepTheirFormatAndAreNeverReadCut(t *testing.T) {
	testJSONFile(t, "plan.json", examplePlan())
	testJSONFile(t, "run.json", exampleRun())
	testJSONFile(t, "snapshot.json", exampleSnapshot())
	testJSONFile(t, "load.json", exampleMeasurements())
	run := exampleRun()
	testJSONFile(t, "extras.json", &Extras{Schema: ExtrasSchema, Environment: run.Environment, Redis: run.Redis, MQ: run.MQ,
		Postgres: run.Postgres, CPUSeconds: run.CPUSeconds, Funnel: run.Funnel, Usage: []UsageAt{{AtMS: 500, CPUSeconds: run.CPUSeconds}}})
}

func TestReadJSONNamesWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct{ body, reason string }{
		"empty":                {"", "is empty"},
		"only spaces":          {" \n", "is empty"},
		"data after the value": {`{"schema":1} {"schema":2}`, "has data after its end"},
		"unknown field":        {`{"schema":1,"colour":"red"}`, `cannot be read: json: unknown field "colour"`},
		"wrong type":           {`{"schema":"one"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.json")
			if err := os.WriteFile(path, []byte(c.body), 0o644); err != nil {
				t.Fatal(err)
			}
			var ev *EvidenceError
			if err := ReadJSON(path, new(Snapshot)); !errors.As(err, &ev) || c.reason != "" && ev.Reason != c.reason {
				t.Errorf("%v, want reason %q", err, c.reason)
			}
		})
	}
	var ev *EvidenceError
	if err := ReadJSON("testdata/no-such-file", new(Snapshot)); !errors.As(err, &ev) || ev.Reason != "is missing" {
		t.Errorf("missing file: %v", err)
	}
}

func TestFilesOfAnotherSchemaAreRefused(t *testing.T) {
	d := Dir(t.TempDir())
	plan, snapshot, run := examplePlan(), exampleSnapshot(), exampleRun()
	plan.Schema, snapshot.Schema, run.Schema = 99, 99, 99
	for path, v := range map[string]any{d.Plan(): plan, d.Snapshot(): snapshot, d.Run(): run} {
		if err := WriteJSON(path, v); err != nil {
			t.Fatal(err)
		}
	}
	_, err1 := d.ReadPlan()
	_, err2 := d.ReadSnapshot()
	_, err3 := d.ReadRun()
	for _, err := range []error{err1, err2, err3} {
		var ev *EvidenceError
		if !errors.As(err, &ev) {
			t.Errorf("%v, want an EvidenceError", err)
		}
	}
}

func TestRunWithoutAVerdictIsRefused(t *testing.T) {
	d := Dir(t.TempDir())
	run := exampleRun()
	run.Verdict = ""
	if err := WriteJSON(d.Run(), run); err != nil {
		t.Fatal(err)
	}
	if _, err := d.ReadRun(); err == nil || !strings.Contains(err.Error(), `gives the verdict "", which is none`) {
		t.Errorf("%v", err)
	}
}

func TestAFolderIsARunsOrNot(t *testing.T) {
	none := t.TempDir()
	file := filepath.Join(none, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{none: "no run directory: plan.json, history, timeline.jsonl, stores and run.json are missing",
		file: "is no run directory, but a file", filepath.Join(none, "absent"): "is missing"} {
		if err := Dir(path).Recognise(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", path, err, says)
		}
	}
	for _, one := range []func(Dir) string{Dir.Plan, Dir.History, Dir.Timeline, Dir.Stores, Dir.Run} {
		d := Dir(t.TempDir())
		if err := os.Mkdir(one(d), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := d.Recognise(); err != nil {
			t.Error(err)
		}
	}
}

func TestPlanValidateNamesTheField(t *testing.T) {
	for want, spoil := range map[string]func(*Plan){
		"schema":         func(p *Plan) { p.Schema = 0 },
		"no activity":    func(p *Plan) { p.Activities = nil },
		"load.scheduled": func(p *Plan) { p.Load.Scheduled = 0 },
		"slo_mode":       func(p *Plan) { p.SLOMode = "" },
		"stock":          func(p *Plan) { p.Activities[0].Stock = -1 },
		"op":             func(p *Plan) { p.SLOs[0].Op = "=" },
	} {
		p := examplePlan()
		spoil(p)
		if err := p.Validate(); err == nil || !bytes.Contains([]byte(err.Error()), []byte(want)) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := examplePlan().Validate(); err != nil {
		t.Error(err)
	}
}

func writeRows(t *testing.T, path string, rows []any) {
	t.Helper()
	w, err := CreateRows(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if err := w.Write(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func readRows(path string) (rows []json.RawMessage, err error) {
	for row, e := range Rows[json.RawMessage](path) {
		if e != nil {
			return rows, e
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func TestRowTypesKeepTheirFormat(t *testing.T) {
	written := filepath.Join(t.TempDir(), "rows.jsonl")
	writeRows(t, written, exampleRows())
	body, err := os.ReadFile(written)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := readRows(goldenFile(t, "rows.jsonl", body))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range exampleRows() {
		got := reflectNew(want)
		if err := json.Unmarshal(lines[i], got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, deref(got)); diff != "" {
			t.Errorf("%T reads back differently:\n%s", want, diff)
		}
	}
}

func TestRowFilesAreNeverReadShort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	writeRows(t, path, exampleRows())
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) {
		if err := os.WriteFile(path, whole[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		var ev *EvidenceError
		if _, err := readRows(path); !errors.As(err, &ev) || ev.Offset != int64(cut) {
			t.Fatalf("cut at byte %d of %d: %v, want an EvidenceError at that byte", cut, len(whole), err)
		}
	}
}

func TestRowFilesTellWhatWasDoneToThem(t *testing.T) {
	line := `{"n":1}` + "\n"
	of := func(rows string, n int) string {
		return fmt.Sprintf(`{"eof":true,"records":%d,"crc32c":%d}`+"\n", n, crc32.Checksum([]byte(rows), crc32.MakeTable(crc32.Castagnoli)))
	}
	end := func(n int) string { return of(strings.Repeat(line, n), n) }
	for name, c := range map[string]struct {
		body string
		rows int
		err  error // File is filled in
	}{
		"whole":                  {line + line + end(2), 2, nil},
		"no rows":                {end(0), 0, nil},
		"a row removed":          {line + end(2), 1, &AlteredError{"", 1, 2}},
		"a row added":            {line + line + line + end(2), 3, &AlteredError{"", 3, 2}},
		"a row changed":          {line + `{"n":3}` + "\n" + end(2), 2, &AlteredError{"", 2, 2}},
		"no checksum":            {line + `{"eof":true,"records":1}` + "\n", 1, &AlteredError{"", 1, 1}},
		"rows after the trailer": {line + end(1) + line, 1, &EvidenceError{"", int64(len(line + end(1))), "has data after its trailer"}},
		"two trailers":           {end(0) + end(0), 0, &EvidenceError{"", int64(len(end(0))), "has data after its trailer"}},
		"a row that is no JSON":  {line + "x\n" + end(2), 1, &EvidenceError{"", 8, "row cannot be read: invalid character 'x' looking for beginning of value"}},
		"empty":                  {"", 0, &EvidenceError{"", 0, "is truncated: no trailer"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.jsonl")
			if err := os.WriteFile(path, []byte(c.body), 0o644); err != nil {
				t.Fatal(err)
			}
			switch e := c.err.(type) {
			case *AlteredError:
				e.File = path
			case *EvidenceError:
				e.File = path
			}
			rows, err := readRows(path)
			if len(rows) != c.rows || !cmp.Equal(err, c.err) {
				t.Errorf("%d rows and %v, want %d and %v", len(rows), err, c.rows, c.err)
			}
		})
	}
}

// No bit of a row file can flip without a word.
func TestEveryFlippedBitOfARowFileIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.jsonl")
	writeRows(t, path, exampleRows()[4:7])
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := range whole {
		for bit := range 8 {
			spoilt := bytes.Clone(whole)
			spoilt[at] ^= 1 << bit
			if err := os.WriteFile(path, spoilt, 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := readRows(path); err == nil {
				t.Errorf("bit %d of byte %d (%q) became %q and nobody says so", bit, at, whole[at], spoilt[at])
			}
		}
	}
}

func TestAbortedRowFileCountsAsTruncated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.jsonl")
	w, err := CreateRows(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(TimelineEvent{Actor: "bench"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	var ev *EvidenceError
	if rows, err := readRows(path); len(rows) != 1 || !errors.As(err, &ev) {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

func reflectNew(v any) any { return reflect.New(reflect.TypeOf(v)).Interface() }

func deref(p any) any { return reflect.ValueOf(p).Elem().Interface() }
