package telemetry_test

import (
	"bytes"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/telemetry"
)

const gateway = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func tracer(t *testing.T, ratio float64) (*telemetry.Tracer, *tracetest.SpanRecorder) {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	tr := telemetry.NewTracerTo(spans, ratio, "access", "z1")
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	return tr, spans
}

func reservationID() string {
	return seckill.NewIDGenerator(time.Now, [32]byte{7}).NewReservationID()
}

func TestWhatIsTraced(t *testing.T) {
	all, _ := tracer(t, 1)
	none, _ := tracer(t, 0)
	id := reservationID()
	unsampled := seckill.Traceparent(gateway[:53] + "00")
	for name, c := range map[string]struct {
		tracer *telemetry.Tracer
		parent seckill.Traceparent
		want   seckill.Traceparent
	}{
		"off":                             {nil, "", ""},
		"off, with the gateway's trace":   {nil, gateway, seckill.Traceparent(gateway).Child(id, false)},
		"no share":                        {none, "", ""},
		"all":                             {all, "", seckill.TraceOf(id, true)},
		"the gateway's choice":            {none, gateway, seckill.Traceparent(gateway).Child(id, true)},
		"the gateway's other choice":      {none, unsampled, unsampled.Child(id, false)},
		"the gateway's trace, our sample": {all, unsampled, unsampled.Child(id, true)},
	} {
		if got := c.tracer.Begin(c.parent, id); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// R8.3.1: the message's trace context leads back to the request's span.
func TestSpansFormOneTrace(t *testing.T) {
	tr, spans := tracer(t, 1)
	id := reservationID()
	root := tr.Begin(gateway, id)
	began := time.Now()
	tr.Record(telemetry.Span{Of: root, Name: "redis.reserve", Began: began, Ended: began.Add(time.Millisecond)})
	tr.Record(telemetry.Span{Of: root, Root: true, Parent: gateway, Name: "seckill.submit", Began: began, Ended: began.Add(time.Second)})
	tr.Record(telemetry.Span{Of: seckill.TraceOf(id, false), Name: "not sampled", Began: began, Ended: began})
	ended := spans.Ended()
	if len(ended) != 2 {
		t.Fatalf("%d spans", len(ended))
	}
	child, top := ended[0], ended[1]
	if top.SpanContext().TraceID().String() != seckill.Traceparent(gateway).TraceID() || top.SpanContext().SpanID().String() != root.SpanID() ||
		top.Parent().SpanID().String() != seckill.Traceparent(gateway).SpanID() || top.EndTime().Sub(top.StartTime()) != time.Second {
		t.Errorf("root: %+v", top)
	}
	if child.Parent().SpanID() != top.SpanContext().SpanID() || child.SpanContext().TraceID() != top.SpanContext().TraceID() ||
		child.SpanContext().SpanID() == top.SpanContext().SpanID() {
		t.Errorf("child: %+v", child)
	}
}

func TestATraceWithoutAGatewayBeginsWithItsReservation(t *testing.T) {
	tr, spans := tracer(t, 1)
	id := reservationID()
	tr.Record(telemetry.Span{Of: tr.Begin("", id), Root: true, Name: "seckill.submit", Began: time.Now(), Ended: time.Now()})
	s := spans.Ended()[0]
	if want := seckill.TraceOf(id, true); s.SpanContext().TraceID().String() != want.TraceID() || s.SpanContext().SpanID().String() != want.SpanID() || s.Parent().IsValid() {
		t.Errorf("span is %+v", s)
	}
}

func TestANilTracerDoesNothing(t *testing.T) {
	var tr *telemetry.Tracer
	tr.Record(telemetry.Span{Of: gateway})
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
	if tr, err := telemetry.NewTracer(t.Context(), telemetry.TraceConfig{}, "access", "z", slog.New(slog.DiscardHandler)); tr != nil || err != nil {
		t.Errorf("%v, %v", tr, err)
	}
	if n := testing.AllocsPerRun(100, func() { tr.Record(telemetry.Span{Of: gateway, Name: "x"}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	id := reservationID()
	if n := testing.AllocsPerRun(100, func() { tr.Begin("", id) }); n != 0 {
		t.Errorf("begin: %v allocations", n)
	}
	on := telemetry.NewTracerTo(sdktrace.NewSimpleSpanProcessor(tracetest.NewNoopExporter()), 0, "access", "z")
	defer on.Close()
	off := seckill.Traceparent(gateway[:53] + "00")
	few := telemetry.NewTracerTo(sdktrace.NewSimpleSpanProcessor(tracetest.NewNoopExporter()), 1e-12, "access", "z")
	defer few.Close()
	if n := testing.AllocsPerRun(100, func() { few.Begin("", id) }); n != 0 {
		t.Errorf("begin of what is not sampled: %v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { on.Record(telemetry.Span{Of: off, Name: "x"}) }); n != 0 {
		t.Errorf("not sampled: %v allocations", n)
	}
}

// collector is an OTLP endpoint that answers when the test lets it.
func collector(t *testing.T, answer func(path, body string) int) string {
	t.Helper()
	c := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(answer(r.URL.Path, string(body)))
	}))
	t.Cleanup(func() {
		c.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return c.URL
}

func exporting(t *testing.T, endpoint string, log io.Writer) *telemetry.Tracer {
	t.Helper()
	tr, err := telemetry.NewTracer(t.Context(), telemetry.TraceConfig{Ratio: 1, Endpoint: endpoint}, "access", "z1", slog.New(slog.NewJSONHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func record(tr *telemetry.Tracer, n int) {
	ids := seckill.NewIDGenerator(time.Now, [32]byte{7})
	for range n {
		now := time.Now()
		tr.Record(telemetry.Span{Of: tr.Begin("", ids.NewReservationID()), Root: true, Name: "seckill.submit", Began: now, Ended: now})
	}
}

// counts are the tracer's own metrics.
func counts(t *testing.T, tr *telemetry.Tracer) (recorded, exported float64) {
	t.Helper()
	r := prometheus.NewRegistry()
	tr.Register(r)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		switch f.GetName() {
		case "trace_spans_recorded_total":
			recorded = f.GetMetric()[0].GetCounter().GetValue()
		case "trace_spans_exported_total":
			exported = f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return recorded, exported
}

func TestSpansAreExported(t *testing.T) {
	got := make(chan string, 1)
	tr := exporting(t, collector(t, func(path, body string) int {
		select {
		case got <- path + " " + body:
		default:
		}
		return http.StatusOK
	}), io.Discard)
	record(tr, 1)
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	body := <-got
	for _, want := range []string{"/v1/traces ", "seckill.submit", "seckill-access", "z1"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in what was exported", want)
		}
	}
	if recorded, exported := counts(t, tr); recorded != 1 || exported != 1 {
		t.Errorf("%v recorded, %v exported", recorded, exported)
	}
}

// Spans that the collector refuses are lost, and the log says so once.
func TestACollectorThatRefusesCostsSpansOnly(t *testing.T) {
	var log bytes.Buffer
	tr := exporting(t, collector(t, func(string, string) int { return http.StatusServiceUnavailable }), &log)
	record(tr, 1000) // two batches
	_ = tr.Close()   // it says that spans were lost
	if recorded, exported := counts(t, tr); recorded != 1000 || exported != 0 {
		t.Errorf("%v recorded, %v exported", recorded, exported)
	}
	if strings.Count(log.String(), "do not reach the collector") != 1 || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("said:\n%s", log.String())
	}
}

// What a collector does not take in time is dropped: nobody waits for it, and
// nothing piles up.
func TestTheQueueOfSpansIsBounded(t *testing.T) {
	const n = 12_000
	hold := make(chan struct{})
	tr := exporting(t, collector(t, func(string, string) int { <-hold; return http.StatusOK }), io.Discard)
	record(tr, n) // returns, although the collector answers nothing
	close(hold)
	_ = tr.Close() // a slow machine may not export all that was queued
	if recorded, exported := counts(t, tr); recorded != n || exported == 0 || exported > n/2 {
		t.Errorf("%v recorded, %v exported: want what was queued, and no more", recorded, exported)
	}
}

// What is wrong with an endpoint is said in one line that names the option,
// and repeats no password.
func TestTraceConfigurationsThatAreNone(t *testing.T) {
	for _, c := range []struct {
		cfg  telemetry.TraceConfig
		hint string
	}{
		{telemetry.TraceConfig{Ratio: 2, Endpoint: "http://127.0.0.1:4318"}, "0 to 1"},
		{telemetry.TraceConfig{Ratio: math.NaN(), Endpoint: "http://127.0.0.1:4318"}, "0 to 1"},
		{telemetry.TraceConfig{Ratio: .5}, "--trace-endpoint"},
		{telemetry.TraceConfig{Endpoint: "127.0.0.1:4318"}, "http://host:port"},
		{telemetry.TraceConfig{Endpoint: "grpc://127.0.0.1:4317"}, "http://host:port"},
		{telemetry.TraceConfig{Endpoint: "http://"}, "http://host:port"},
		{telemetry.TraceConfig{Endpoint: "http://:4318"}, "http://host:port"},
		{telemetry.TraceConfig{Endpoint: "http://h:x"}, "http://host:port"},
		{telemetry.TraceConfig{Endpoint: "http://h:"}, "no port"},
		{telemetry.TraceConfig{Endpoint: "http://h:0"}, "1 to 65535"},
		{telemetry.TraceConfig{Endpoint: "http://h:70000"}, "1 to 65535"},
		{telemetry.TraceConfig{Endpoint: "http://u:geheim@h:4318"}, "OTEL_EXPORTER_OTLP_HEADERS"},
		{telemetry.TraceConfig{Endpoint: "http://u:geheim@h:%zz"}, "http://host:port"},
		{telemetry.TraceConfig{Endpoint: "http://h:4318/v1/traces?x=1"}, "without ?"},
		{telemetry.TraceConfig{Endpoint: "http://h:4318/\n"}, "http://host:port"},
	} {
		err := c.cfg.Validate()
		if err == nil || !strings.Contains(err.Error(), c.hint) || strings.Contains(err.Error(), "geheim") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v, want one line with %q", c.cfg, err, c.hint)
		}
	}
	for _, good := range []string{"http://127.0.0.1:4318", "http://h", "https://h:4318/", "http://[::1]:4318/otlp/v1/traces"} {
		if err := (telemetry.TraceConfig{Endpoint: good, Ratio: 1}).Validate(); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}
