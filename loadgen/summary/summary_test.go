package summary

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/hotsku/hotsku/loadgen"
	"github.com/hotsku/hotsku/loadgen/hdr"
	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/loadgen/pace"
	"github.com/hotsku/hotsku/loadgen/wire"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func plan(shards int) Plan {
	return Plan{Request: "GET http://127.0.0.1:8080/", Digest: "d", Shape: "constant", RatePerS: 100, Duration: "3s", Seed: 7, Client: "wire", Conns: 4, Depth: 1,
		Timeout: "5s", SLO: "p99<1s", LagLimit: "10ms", Shards: shards}
}

var began = time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)

// made is a run of the plan that never took place: request n took n
// milliseconds, every 50th failed.
func made(t *testing.T, p Plan, index int, dir string) *Summary {
	t.Helper()
	whole, err := p.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	shard, err := pace.NewShard(whole, index-1, p.Shards)
	if err != nil {
		t.Fatal(err)
	}
	res := &loadgen.Result{Started: began.Add(time.Duration(index) * time.Millisecond), Span: whole.Span(), Elapsed: 3100 * time.Millisecond,
		Scheduled: shard.Total(), Sent: shard.Total(), Statuses: map[int]uint64{}, Failures: map[wire.Cause]uint64{},
		Latency: hdr.New(), Accepted: hdr.New(), Service: hdr.New(), SendLag: hdr.New(), InFlightMax: 3}
	res.Strain = loadgen.Strain{Gap: 2 * time.Millisecond, CatchUp: 2, Steal: 0, Busy: 0.5}
	res.Connections.Opened = 4
	ok := hdr.New()
	if err := os.MkdirAll(HistoryDir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := history.Create(HistoryDir(dir), 0, history.Header{StartUnixNano: res.Started.UnixNano()})
	if err != nil {
		t.Fatal(err)
	}
	var records []history.Record
	for i := range shard.Total() {
		n := shard.Number(i)
		at, took := int64(shard.At(i)), int64(n)*1e6
		rec := history.Record{N: n, Subject: n, Ordinal: uint32(n), Intended: at, Sent: at + 1e5, Done: at + took + 1e5}
		hdr.Observe(res.SendLag, 1e5)
		if n%50 == 49 {
			rec.Outcome, rec.Code = history.Failed, uint8(wire.CauseReset)
			res.Failed++
			res.Failures[wire.CauseReset]++
		} else {
			rec.Outcome, rec.Code, rec.Status = history.Completed, 2, 200
			res.Completed++
			res.Statuses[200]++
			hdr.Observe(ok, took+1e5)
			hdr.Observe(res.Service, took)
		}
		if err := w.Append(&rec); err != nil {
			t.Fatal(err)
		}
		records = append(records, rec)
	}
	if err := w.Close(0); err != nil {
		t.Fatal(err)
	}
	res.Latency.Merge(ok)
	res.ByCode = map[uint8]*hdrhistogram.Histogram{2: ok}
	res.Series, res.PointWidth, err = loadgen.Replay(whole, func(r *history.Record) error {
		if len(records) == 0 {
			return io.EOF
		}
		*r, records = records[0], records[1:]
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Of(res, p, index, "host")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Save(dir); err != nil {
		t.Fatal(err)
	}
	return s
}

func shards(t *testing.T, n int) (dirs []string) {
	t.Helper()
	for i := range n {
		dirs = append(dirs, t.TempDir())
		made(t, plan(n), i+1, dirs[i])
	}
	return dirs
}

func TestTheMergeOfShardsIsTheWhole(t *testing.T) {
	dirs := shards(t, 3)
	wholeDir, out := t.TempDir(), filepath.Join(t.TempDir(), "merged")
	whole := made(t, plan(1), 1, wholeDir)
	merged, err := Merge([]string{dirs[2], dirs[0], dirs[1]}, out)
	if err != nil {
		t.Fatal(err)
	}
	if len(merged.Shards) != 3 || merged.Shards[0].Index != 1 || merged.Connections["opened"] != 12 {
		t.Errorf("shards %+v, connections %v", merged.Shards, merged.Connections)
	}
	// All that is a function of the requests is equal, percentiles and series
	// too.
	ignored := cmpopts.IgnoreFields(Summary{}, "Plan", "Shards", "StartedAt", "ElapsedS", "RatePerS", "Connections", "Strain", "Histograms", "dir")
	if diff := cmp.Diff(whole, merged, ignored, cmpopts.IgnoreUnexported(Summary{})); diff != "" {
		t.Errorf("the merge differs from the whole:\n%s", diff)
	}
	for name, h := range whole.Histograms {
		if !h.Equals(merged.Histograms[name]) {
			t.Errorf("the histogram %s differs", name)
		}
	}
	// The merged folder reads as any other, and holds each request once.
	again, err := Load(out)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(merged, again, cmpopts.IgnoreFields(Summary{}, "Histograms", "dir")); diff != "" {
		t.Error(diff)
	}
	d, err := history.OpenDir(HistoryDir(out))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	seen := map[uint64]bool{}
	var rec history.Record
	for err = d.Next(&rec); err == nil; err = d.Next(&rec) {
		seen[rec.N] = true
	}
	if !errors.Is(err, io.EOF) || len(seen) != 300 || d.Totals().Records != 300 {
		t.Errorf("%d requests in %d records, %v; want 300", len(seen), d.Totals().Records, err)
	}
	if _, err := Merge([]string{out}, t.TempDir()); !errors.Is(err, ErrMerge) {
		t.Errorf("merging a merge: %v", err)
	}
}

func TestWhatAreNotTheShardsOfOneRunIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(t *testing.T, dirs []string) []string
		want  error
		says  string
	}{
		"missing": {func(_ *testing.T, d []string) []string { return d[:2] }, ErrMerge, "shard 3 of 3 is missing"},
		"double":  {func(_ *testing.T, d []string) []string { return append(d, d[0]) }, ErrMerge, "are both shard 1"},
		"another plan": {func(t *testing.T, d []string) []string {
			edit(t, d[1], func(s *Summary) { s.Plan.Seed = 8 })
			return d
		}, ErrMerge, "seed 7 and 8"},
		"another body": {func(t *testing.T, d []string) []string {
			edit(t, d[1], func(s *Summary) { s.Plan.Digest = "e" })
			return d
		}, ErrMerge, "headers or body"},
		"another time": {func(t *testing.T, d []string) []string {
			edit(t, d[1], func(s *Summary) { s.StartedAt = s.StartedAt.Add(4 * time.Second) })
			return d
		}, ErrMerge, "they were not one load"},
		"counts that do not balance": {func(t *testing.T, d []string) []string {
			edit(t, d[1], func(s *Summary) { s.Account.Completed++ })
			return d
		}, ErrDir, "does not balance"},
		"fewer requests than the plan": {func(t *testing.T, d []string) []string {
			edit(t, d[1], func(s *Summary) { s.Account.Scheduled--; s.Account.Failed--; s.Account.Sent-- })
			return d
		}, ErrDir, "does not hold the 99 requests"},
		"another's history": {func(t *testing.T, d []string) []string {
			swap(t, filepath.Join(HistoryDir(d[0]), history.Name(0)), filepath.Join(HistoryDir(d[1]), history.Name(0)))
			return d
		}, ErrMerge, "which is not its shard's"},
		"a history that lacks a request": {func(t *testing.T, d []string) []string {
			shorten(t, filepath.Join(HistoryDir(d[1]), history.Name(0)))
			return d
		}, ErrMerge, "holds 99 requests, its summary counts 100"},
		"no history": {func(t *testing.T, d []string) []string {
			if err := os.RemoveAll(HistoryDir(d[2])); err != nil {
				t.Fatal(err)
			}
			return d
		}, os.ErrNotExist, "history"},
		"another's histograms": {func(t *testing.T, d []string) []string {
			if err := os.Truncate(filepath.Join(d[0], fileLog), 300); err != nil {
				t.Fatal(err)
			}
			return d
		}, ErrDir, "histogram"},
		"no run": {func(t *testing.T, d []string) []string { return append(d, t.TempDir()) }, ErrDir, "hotsku load --out"},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			s, err := Merge(tc.spoil(t, shards(t, 3)), out)
			if s != nil || !errors.Is(err, tc.want) || !strings.Contains(fmt.Sprint(err), tc.says) {
				t.Errorf("%v, error %v; want %v with %q", s, err, tc.want, tc.says)
			}
			if _, err := os.Stat(filepath.Join(out, fileJSON)); err == nil {
				t.Error("a merged run was left all the same")
			}
		})
	}
}

// edit changes a saved run.
func edit(t *testing.T, dir string, change func(*Summary)) {
	t.Helper()
	path := filepath.Join(dir, fileJSON)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var s Summary
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	change(&s)
	if text, err = json.Marshal(&s); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// shorten writes a history again without its last record.
func shorten(t *testing.T, path string) {
	t.Helper()
	r, err := history.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var records []history.Record
	var rec history.Record
	for err = r.Next(&rec); err == nil; err = r.Next(&rec) {
		records = append(records, rec)
	}
	header := r.Header()
	if err := errors.Join(r.Close(), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
	w, err := history.Create(filepath.Dir(path), 0, header)
	if err != nil {
		t.Fatal(err)
	}
	for i := range records[:len(records)-1] {
		if err := w.Append(&records[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(0); err != nil {
		t.Fatal(err)
	}
}

func swap(t *testing.T, a, b string) {
	t.Helper()
	for _, step := range [][2]string{{a, a + ".x"}, {b, a}, {a + ".x", b}} {
		if err := os.Rename(step[0], step[1]); err != nil {
			t.Fatal(err)
		}
	}
}

func TestVerdicts(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil   func(*Summary)
		verdict string
		says    string
	}{
		"all is well":      {func(*Summary) {}, Pass, ""},
		"a missed SLO":     {func(s *Summary) { s.Plan.SLO = "p50<1ms,errors<50%" }, Fail, "SLO p50<1ms missed: it is 1"},
		"errors":           {func(s *Summary) { s.Plan.SLO = "errors<=1.9%" }, Fail, "SLO errors<=1.9% missed: it is 2 %"},
		"nothing measured": {func(s *Summary) { s.Plan.SLO = "lag.p99<1s"; delete(s.Histograms, loadgen.HistogramSendLag) }, Inconclusive, "nothing was measured"},
		"late, full": {func(s *Summary) { s.Plan.LagLimit = "50µs"; s.Strain.GapS = 0; s.Strain.FullS = 1 }, Inconclusive,
			"all connections were full or down for 1"},
		"late, stolen":             {func(s *Summary) { s.Plan.LagLimit = "50µs"; s.Strain.Steal = 0.3 }, Inconclusive, "the hypervisor gave 30 %"},
		"late, collected":          {func(s *Summary) { s.Plan.LagLimit = "50µs"; s.Strain.GCPauseS, s.Strain.GCPauses = 0.002, 1 }, Inconclusive, "the garbage collector stopped it"},
		"late, busy":               {func(s *Summary) { s.Plan.LagLimit = "50µs"; s.Strain.Busy = 1 }, Inconclusive, "100 % busy"},
		"late, kept away":          {func(s *Summary) { s.Plan.LagLimit = "50µs" }, Inconclusive, "the sender was kept from running for up to 2"},
		"late, slow disk":          {func(s *Summary) { s.Plan.LagLimit = "50µs"; s.Strain.GapS, s.Strain.Stalls = 0, 3 }, Inconclusive, "disk was too slow 3 times"},
		"late, nobody knows":       {func(s *Summary) { s.Plan.LagLimit = "50µs"; s.Strain.GapS = 0 }, Inconclusive, "no cause is known"},
		"late before a missed SLO": {func(s *Summary) { s.Plan.LagLimit, s.Plan.SLO = "50µs", "p50<1ms" }, Inconclusive, "sent late"},
		"dropped": {func(s *Summary) {
			s.Account.Dropped, s.Account.Completed, s.Account.Sent = 1, s.Account.Completed-1, s.Account.Sent-1
		}, Inconclusive, "never sent"},
		"not sustained": {func(s *Summary) { s.DrainS = 5 }, Inconclusive, "did not sustain the load"},
		"interrupted":   {func(s *Summary) { s.Interrupted = true }, Inconclusive, "interrupted"},
		"no answer":     {func(s *Summary) { s.Account.TimedOut, s.Account.Completed = s.Account.TimedOut+s.Account.Completed, 0 }, Inconclusive, "not one answer"},
	} {
		t.Run(name, func(t *testing.T) {
			s := made(t, plan(1), 1, t.TempDir())
			tc.spoil(s)
			if err := s.finish(); err != nil {
				t.Fatal(err)
			}
			if s.Verdict != tc.verdict || tc.says != "" && (len(s.Reasons) == 0 || !strings.Contains(strings.Join(s.Reasons, "; "), tc.says)) {
				t.Errorf("%s: %q; want %s with %q", s.Verdict, s.Reasons, tc.verdict, tc.says)
			}
			if want := map[string]int{Pass: 0, Fail: 1, Inconclusive: 2}[tc.verdict]; s.ExitCode() != want {
				t.Errorf("exit %d, want %d", s.ExitCode(), want)
			}
		})
	}
	s := made(t, plan(1), 1, t.TempDir())
	s.Account.Completed++
	if err := s.finish(); err == nil {
		t.Error("an account that does not balance was judged")
	}
}

// The files are read by others: what they hold is fixed.
func TestGoldenFiles(t *testing.T) {
	dir := t.TempDir()
	s := made(t, plan(1), 1, dir)
	var text bytes.Buffer
	if err := s.Text(&text); err != nil {
		t.Fatal(err)
	}
	got := map[string][]byte{"summary.txt": text.Bytes()}
	for _, name := range []string{fileJSON, fileSeries, fileMetrics, fileText, fileTime, fileCurve} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got[name] = b
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, got[name], 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got[name])); diff != "" {
			t.Errorf("%s: -update rewrites it\n%.2000s", name, diff)
		}
	}
	if rows, err := csv.NewReader(bytes.NewReader(got[fileSeries])).ReadAll(); err != nil || len(rows) != len(s.Series)+1 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(got[fileMetrics]))
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, m := range families["hotsku_load_requests_total"].GetMetric() {
		sum += m.GetCounter().GetValue()
	}
	if sum != 300 || families["hotsku_load_latency_seconds"].GetMetric()[0].GetSummary().GetSampleCount() != 294 {
		t.Errorf("%v requests in the metrics, want 300", sum)
	}
}

// A run that met nothing but refusals says so beside its verdict: the URL may
// be wrong. One success is enough to be quiet.
func TestARunWithoutAnySuccessSaysSo(t *testing.T) {
	for text, statuses := range map[string]map[int]uint64{
		"not one is 2xx or 3xx": {404: 10}, "not one": {404: 1, 503: 9}, "answers    200: 1, 404: 9; 1/s\n\n": {200: 1, 404: 9}, "302: 1; 1/s\n\n": {302: 1}, "answers    none\n\n": {},
	} {
		var b bytes.Buffer
		s := &Summary{Plan: plan(1), Shards: []Shard{{}}, Statuses: statuses, RatePerS: 1}
		if err := s.Text(&b); err != nil || !strings.Contains(b.String(), text) {
			t.Errorf("%v: no %q in %v\n%s", statuses, text, err, b.String())
		}
	}
}
