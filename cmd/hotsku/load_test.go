package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hotsku/hotsku/loadgen/pace"
	"github.com/hotsku/hotsku/loadgen/summary"
)

// punctual is what keeps a busy machine from making a run inconclusive.
const punctual = "--lag-limit=1h"

func httpServer(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(handle)
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestLoadTakesOneLine(t *testing.T) {
	url := httpServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	code, out, errs := hotsku(t.Context(), "load", punctual, "--duration", "500ms", url)
	for _, want := range []string{"GET " + url, "scheduled 50 = completed 50 + failed 0 + timed out 0 + dropped 0 + unfinished 0", "200: 50", "send lag", "verdict: pass"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit %d, output without %q:\n%s%s", code, want, out, errs)
		}
	}
}

func TestLoadSendsWhatItIsTold(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]bool{}
	srv := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		seen[fmt.Sprint(r.Method, r.URL, r.Header.Get("X-User"), string(body))] = true
	}))
	t.Cleanup(srv.Close)
	file := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(file, []byte(`{"n":{{n}}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, errs := hotsku(t.Context(), "load", punctual, "--rate", "50", "--duration", "200ms", "--method", "PUT", "--insecure", "-H", "X-User: {{user}}",
		"--users", "1", "--body", "@"+file, "--json", srv.URL+"/{{n:3}}")
	var s summary.Summary
	if err := json.Unmarshal([]byte(out), &s); code != 0 || err != nil || s.Account.Completed != 10 {
		t.Fatalf("exit %d, %v, %+v\n%s", code, err, s.Account, errs)
	}
	for n := range 10 {
		if want := fmt.Sprintf("PUT/%03d0{\"n\":%d}", n, n); !seen[want] {
			t.Errorf("%s was not sent, but %v", want, seen)
		}
	}
}

func TestLoadOfAnOverloadedServerIsReportedAsSuch(t *testing.T) {
	t.Parallel()
	url := httpServer(t, func(http.ResponseWriter, *http.Request) { time.Sleep(time.Second) })
	code, out, _ := hotsku(t.Context(), "load", "--rate", "5", "--duration", "3s", "--conns", "1", "--catch-up", "1s", "--timeout", "30s", url)
	backlog := regexp.MustCompile(`the server did not sustain the load: the backlog reached (\d+) requests`).FindStringSubmatch(out)
	if code == 0 || backlog == nil || !strings.Contains(out, "scheduled 15 = ") || !strings.Contains(out, "were never sent") || !strings.Contains(out, "all connections were full") {
		t.Fatalf("exit %d:\n%s", code, out)
	}
	if n, _ := strconv.Atoi(backlog[1]); n < 9 {
		t.Errorf("a backlog of %d, want about 11:\n%s", n, out)
	}
}

func TestLoadExitsByItsObjectives(t *testing.T) {
	url := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "7") {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	for slo, want := range map[string]int{"errors<=10%,p99<1h,rate>1": 0, "errors<10%": 1, "p50<1ns": 1} {
		if code, out, errs := hotsku(t.Context(), "load", punctual, "--duration", "1s", "--slo", slo, url+"/{{n}}"); code != want {
			t.Errorf("--slo %s: exit %d, want %d\n%s%s", slo, code, want, out, errs)
		}
	}
}

// Ctrl-C against a server that never answers: every request is accounted for.
func TestLoadInterruptedPrintsTheExactAccount(t *testing.T) {
	t.Parallel()
	got := make(chan struct{}, 1000)
	released := make(chan struct{})
	url := httpServer(t, func(http.ResponseWriter, *http.Request) { got <- struct{}{}; <-released })
	t.Cleanup(func() { close(released) })
	dir := filepath.Join(t.TempDir(), "out")
	cmd := process(t, "load", "--rate", "100", "--duration", "1h", "--conns", "20", "--timeout", "2s", "--out", dir, url)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		<-got
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its exit code is looked at
	equation := regexp.MustCompile(`scheduled ([\d,]+) = completed ([\d,]+) \+ failed ([\d,]+) \+ timed out ([\d,]+) \+ dropped ([\d,]+) \+ unfinished ([\d,]+)`).FindStringSubmatch(out.String())
	if cmd.ProcessState.ExitCode() != 2 || equation == nil || !strings.Contains(out.String(), "the run was interrupted") {
		t.Fatalf("%v:\n%s%s", cmd.ProcessState, out.String(), errs.String())
	}
	var n [7]int
	for i := 1; i < 7; i++ {
		n[i], _ = strconv.Atoi(strings.ReplaceAll(equation[i], ",", ""))
	}
	if n[1] != 360_000 || n[1] != n[2]+n[3]+n[4]+n[5]+n[6] || n[4]+n[6] < 20 || n[2] != 0 {
		t.Errorf("%s", equation[0])
	}
	s, err := summary.Load(dir)
	if err != nil || s.Account.Scheduled != 360_000 || !s.Interrupted {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestLoadInShardsMergesIntoTheWhole(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	requests := map[string]int{}
	shardOf := map[string]map[int]bool{} // by user
	url := httpServer(t, func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests[r.URL.Path]++
		n, _ := strconv.Atoi(strings.Trim(r.URL.Path, "/"))
		user := r.Header.Get("X-User")
		if shardOf[user] == nil {
			shardOf[user] = map[int]bool{}
		}
		shardOf[user][n%2] = true
	})
	base := t.TempDir()
	a, b, both := filepath.Join(base, "a"), filepath.Join(base, "b"), filepath.Join(base, "both")
	start := time.Now().Add(time.Second).Format(time.RFC3339Nano)
	var wg sync.WaitGroup
	for i, dir := range []string{a, b} {
		wg.Go(func() {
			code, out, errs := hotsku(t.Context(), "load", punctual, "--rate", "300", "--duration", "1s", "--users", "20", "-H", "X-User: {{user}}",
				"--shape", "poisson", "--start-at", start, "--shard", fmt.Sprintf("%d/2", i+1), "--out", dir, url+"/{{n}}")
			if code != 0 || !strings.Contains(out, "scheduled 150 = completed 150 ") {
				t.Errorf("shard %d: exit %d\n%s%s", i+1, code, out, errs)
			}
		})
	}
	wg.Wait()
	code, out, errs := hotsku(t.Context(), "merge", "--out", both, b, a)
	if code != 0 || !strings.Contains(out, "scheduled 300 = completed 300 ") || !strings.Contains(out, "2 shards merged") {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	if len(requests) != 300 || len(shardOf) != 20 {
		t.Errorf("%d requests of %d users were seen, want 300 of 20", len(requests), len(shardOf))
	}
	for user, shards := range shardOf {
		if len(shards) != 1 {
			t.Errorf("user %s is of both shards", user)
		}
	}
	if code, out, _ := hotsku(t.Context(), "load", "--dump", both); code != 0 || strings.Count(out, ",completed,200,2\n") != 300 {
		t.Errorf("exit %d, the dump holds %d answers of 300", code, strings.Count(out, ",completed,200,2\n"))
	}
	if code, _, errs := hotsku(t.Context(), "merge", "--out", filepath.Join(base, "c"), a); code != 2 || !strings.Contains(errs, "shard 2 of 2 is missing") {
		t.Errorf("one shard alone: exit %d, %s", code, errs)
	}
}

func TestConnectionsFollowThePeak(t *testing.T) {
	for shape, want := range map[string]int{"constant:100:10s": 16, "constant:5000:10s": 50, "ramp:0:5000:1m": 50, "constant:100:10s+burst:900:5s:10s": 91, "constant:300000:10s": 1000,
		"constant:1:1s": 16} {
		s, err := pace.Parse(shape, pace.Defaults{})
		if err != nil {
			t.Fatal(err)
		}
		if got := connsFor(s); got < want || got > want+2 {
			t.Errorf("%s: %d connections, want %d", shape, got, want)
		}
	}
}

func TestLoadRefusesWhatItCannotDo(t *testing.T) {
	url := httpServer(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{}, {url, url}, {"ftp://x/"}, {"--rate", "0", url}, {"--rate", "-1", url}, {"--rate", "x", url}, {"--duration", "0s", url}, {"--shape", "square", url},
		{"--slo", "p99", url}, {"--shard", "3/2", url}, {"--shard", "1/2", url}, {"--shard", "1/2", "--users", "3", "--out", t.TempDir(), url}, {"--shard", "1/2x", url},
		{"--json", "--csv", url}, {"--out", full, url}, {"--body", "@/nowhere", url}, {"--body", "{{what}}", url}, {"-H", "nonsense", url}, {"--depth", "0", url},
		{"--conns", "-1", url}, {"--client", "curl", url}, {"--client", "fasthttp", "--depth", "4", url}, {"--start-at", "noon", url}, {"--local-ports", "1", url},
		{"--local-ports", "9-1", url}, {"--conn-ramp", "1h", url}, {"--timeout", "0.1ms", url}, {"--timeout", "0", url}, {"--dump", full, url}, {"--what", url},
	} {
		code, out, errs := hotsku(t.Context(), append([]string{"load"}, args...)...)
		if code != exitUsage || out != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("load %q: exit %d, want %d and one line\n%s%s", args, code, exitUsage, out, errs)
		}
	}
	for _, args := range [][]string{{}, {"--out", full}, {full}} {
		if code, _, errs := hotsku(t.Context(), append([]string{"merge"}, args...)...); code != exitUsage {
			t.Errorf("merge %q: exit %d, want %d: %s", args, code, exitUsage, errs)
		}
	}
	if code, _, errs := hotsku(t.Context(), "load", "--dump", full); code != exitEnvironment || !strings.Contains(errs, "hotsku load --out") {
		t.Errorf("a dump of nothing: exit %d, %s", code, errs)
	}
}
