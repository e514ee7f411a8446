package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/hotsku/hotsku/loadgen/summary"
)

// connections of every unpipelined run.
const connections = 64

// job is one run of a generator.
type job struct {
	url    string
	each   time.Duration
	rate   int // 0: as fast as it can
	depth  int // of pipelining; 1: none
	folder string
}

// peer is a generator: how it is called, and how its output is read.
type peer struct {
	name string
	args func(job) []string // nil: it cannot
	p99  func(output string, j job) (ms float64, ok bool)
	// paced is false for one that has no rate of its own.
	paced bool
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) }

// peers are those that are compared, ours first. Those that go as fast as they
// can are asked for 64 connections; ours is open loop, so it is asked for a
// rate that the machine carries.
func peers(hotsku string) []peer {
	return []peer{
		{name: hotsku, paced: true, args: func(j job) []string {
			args := []string{"load", "--quiet", "--json", "--duration", j.each.String(), "--rate", strconv.Itoa(j.rate), "--depth", strconv.Itoa(j.depth), "--out", j.folder}
			if j.depth > 1 {
				return append(args, "--conns", "32", j.url)
			}
			return append(args, "--conns", strconv.Itoa(connections), j.url)
		}, p99: func(out string, _ job) (float64, bool) {
			var s summary.Summary
			err := json.Unmarshal([]byte(out), &s)
			return s.LatencyMS.P99, err == nil
		}},
		{name: "wrk", args: func(j job) []string {
			return []string{"-t1", "-c" + strconv.Itoa(connections), "-d" + seconds(j.each) + "s", "--latency", j.url}
		}, p99: inText(`(?m)^\s*99%\s+([\d.]+)(us|ms|s)`)},
		{name: "vegeta", paced: true, args: func(j job) []string {
			workers := "-max-workers=" + strconv.Itoa(connections)
			return []string{"sh", "-c", fmt.Sprintf("echo GET %s | \"$0\" attack -duration=%ss -rate=%d %s -connections=%d | \"$0\" report", j.url, seconds(j.each), j.rate, workers, connections)}
		}, p99: inText(`(?m)^Latencies\s.*?\s[\d.µmsn]+, [\d.µmsn]+, [\d.µmsn]+, [\d.µmsn]+, [\d.µmsn]+, ([\d.]+)(µs|ms|s), [\d.µmsn]+`)},
		{name: "hey", paced: true, args: func(j job) []string {
			args := []string{"-z", seconds(j.each) + "s", "-c", strconv.Itoa(connections)}
			if j.rate > 0 { // a rate for each worker
				args = append(args, "-q", strconv.FormatFloat(float64(j.rate)/connections, 'f', -1, 64))
			}
			return append(args, j.url)
		}, p99: inText(`(?m)^\s*99%%? in ([\d.]+) (sec)s`)},
		{name: "oha", paced: true, args: func(j job) []string {
			args := []string{"--no-tui", "-z", seconds(j.each) + "s", "-c", strconv.Itoa(connections)}
			if j.rate > 0 {
				args = append(args, "-q", strconv.Itoa(j.rate), "--latency-correction")
			}
			return append(args, j.url)
		}, p99: inText(`(?m)^\s*99\.00% in ([\d.]+) (sec|ms|us|µs)`)},
		{name: "k6", paced: true, args: func(j job) []string {
			script := j.folder + ".js"
			scenario := fmt.Sprintf(`executor: "constant-vus", vus: %d, duration: "%ss"`, connections, seconds(j.each))
			if j.rate > 0 {
				scenario = fmt.Sprintf(`executor: "constant-arrival-rate", rate: %d, timeUnit: "1s", preAllocatedVUs: %d, duration: "%ss"`, j.rate, connections, seconds(j.each))
			}
			text := fmt.Sprintf("import http from \"k6/http\";\nexport const options = { discardResponseBodies: true, summaryTrendStats: [\"p(99)\"], scenarios: { s: { %s } } };\nexport default function () { http.get(%q); }\n", scenario, j.url)
			if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
				return nil
			}
			return []string{"run", "--no-usage-report", "--quiet", script}
		}, p99: inText(`(?m)http_req_duration.*?p\(99\)=([\d.]+)(µs|ms|s)`)},
	}
}

// inText finds a latency by an expression whose groups are its value and unit.
func inText(expression string) func(string, job) (float64, bool) {
	re := regexp.MustCompile(expression)
	return func(out string, _ job) (float64, bool) {
		m := re.FindStringSubmatch(out)
		if m == nil {
			return 0, false
		}
		v, err := strconv.ParseFloat(m[1], 64)
		unit := map[string]float64{"us": 1e-3, "µs": 1e-3, "ms": 1, "s": 1e3, "sec": 1e3}[strings.TrimSpace(m[2])]
		return v * unit, err == nil && unit > 0
	}
}
