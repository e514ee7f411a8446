package slo_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/hotsku/hotsku/loadgen/slo"
)

func TestParse(t *testing.T) {
	got, err := slo.Parse("p99<100ms, service.p99.9 <= 1.5s,max<2s,lag.mean<1ms,errors<0.1%,5xx<=0.002,rate>=900")
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		of      string
		percent float64
		kind    slo.Kind
		op      string
		target  float64
	}{
		{"", 99, slo.Latency, "<", 100}, {"service", 99.9, slo.Latency, "<=", 1500}, {"", 100, slo.Latency, "<", 2000},
		{"lag", -1, slo.Latency, "<", 1}, {kind: slo.Share, op: "<", target: 0.001}, {kind: slo.Share, op: "<=", target: 0.002}, {kind: slo.Rate, op: ">=", target: 900},
	}
	if len(got) != len(want) {
		t.Fatalf("%d objectives, want %d", len(got), len(want))
	}
	for i, o := range got {
		w := want[i]
		if o.Kind != w.kind || o.Op != w.op || o.Target != w.target {
			t.Errorf("%s: %+v", o.Text, o)
		}
		if o.Kind == slo.Latency {
			if of, percent := o.Quantile(); of != w.of || percent != w.percent {
				t.Errorf("%s: %q at %v %%, want %q at %v %%", o.Text, of, percent, w.of, w.percent)
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "p99", "p99<", "p99=1ms", "p99<100", "p101<1s", "p999<1s", "p<1s", "p99<-1s", "errors<5", "errors<-1%", "errors<x", "errors<NaN",
		"speed<1s", "rate>x", "rate>NaN", "p99<1s,", "P99<1s", "service.errors<1%", "p99<1s;rm"} {
		if got, err := slo.Parse(text); !errors.Is(err, slo.ErrSLO) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestJudge(t *testing.T) {
	for _, tc := range []struct {
		text   string
		figure float64
		want   slo.Status
	}{
		{"p99<100ms", 99.9, slo.Met}, {"p99<100ms", 100, slo.Missed}, {"p99<=100ms", 100, slo.Met}, {"p99<=100ms", 100.1, slo.Missed},
		{"rate>100", 100, slo.Missed}, {"rate>100", 101, slo.Met}, {"rate>=100", 100, slo.Met}, {"rate>=100", 99, slo.Missed},
	} {
		o, err := slo.Parse(tc.text)
		if err != nil {
			t.Fatal(err)
		}
		if r := o[0].Judge(tc.figure, true); r.Status != tc.want || r.Measured != tc.figure {
			t.Errorf("%s at %v: %+v, want %s", tc.text, tc.figure, r, tc.want)
		}
		if r := o[0].Judge(tc.figure, false); r.Status != slo.Unmeasured {
			t.Errorf("%s without a figure: %+v", tc.text, r)
		}
	}
}
