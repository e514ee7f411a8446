package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/hotsku/hotsku/system/seckill"
)

// TraceConfig says which traces are recorded and where they go.
type TraceConfig struct {
	// Ratio is the share of reservations that are traced, 0 (none) to 1. It
	// is a function of the reservation. Requests whose trace context is
	// sampled are traced besides.
	Ratio float64
	// Endpoint is the OTLP/HTTP address, http(s)://host:port[/path]; without a
	// path it is /v1/traces. Empty: nothing is recorded.
	Endpoint string
}

// Validate reports what is wrong in one line.
func (c TraceConfig) Validate() error {
	if !(c.Ratio >= 0 && c.Ratio <= 1) {
		return fmt.Errorf("trace ratio %v: must be 0 to 1", c.Ratio)
	}
	if c.Endpoint == "" {
		if c.Ratio > 0 {
			return errors.New("a trace ratio without an endpoint: give --trace-endpoint http://host:4318")
		}
		return nil
	}
	_, err := c.url()
	return err
}

// url is where spans are posted. What is wrong is said without the endpoint
// itself where it may hold a password.
func (c TraceConfig) url() (string, error) {
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "", errors.New("--trace-endpoint must be http://host:port or https://host:port")
	}
	if u.User != nil {
		return "", errors.New("--trace-endpoint must not hold a user or password: give them to the process as OTEL_EXPORTER_OTLP_HEADERS")
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return "", fmt.Errorf("--trace-endpoint %q: must end with the path, without ? and #", c.Endpoint)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "", fmt.Errorf("--trace-endpoint %q: port %s is none, must be 1 to 65535", c.Endpoint, port)
		}
	} else if strings.HasSuffix(u.Host, ":") {
		return "", fmt.Errorf("--trace-endpoint %q: no port after the colon", c.Endpoint)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}

// Bounds of what tracing may hold and take: spans beyond the queue are
// dropped, nobody waits for them.
const (
	traceQueue   = 4096
	traceBatch   = 512
	traceTimeout = 2 * time.Second
)

// Tracer records spans after the fact: a span has begun and ended when it is
// made, so that none can be left open, and what is not sampled costs a look
// at one byte. A nil Tracer records nothing. Safe for concurrent use.
type Tracer struct {
	ratio    float64
	tracer   trace.Tracer
	provider *sdktrace.TracerProvider

	recorded atomic.Int64
	exported *atomic.Int64
}

// NewTracer returns a tracer that exports, or nil if c says so. It does not
// connect: a collector that is away costs spans and nothing else. Close it.
func NewTracer(ctx context.Context, c TraceConfig, process, zone string, log *slog.Logger) (*Tracer, error) {
	if err := c.Validate(); err != nil || c.Endpoint == "" {
		return nil, err
	}
	endpoint, err := c.url()
	if err != nil {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint), otlptracehttp.WithTimeout(traceTimeout),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}))
	if err != nil {
		return nil, fmt.Errorf("trace exporter: %w", err)
	}
	counted := &countedExporter{SpanExporter: exporter, log: log}
	t := NewTracerTo(sdktrace.NewBatchSpanProcessor(counted, sdktrace.WithMaxQueueSize(traceQueue), sdktrace.WithMaxExportBatchSize(traceBatch),
		sdktrace.WithExportTimeout(traceTimeout)), c.Ratio, process, zone)
	t.exported = &counted.exported
	return t, nil
}

// countedExporter counts what reached the collector, and says once when
// nothing does, and once when something does again.
type countedExporter struct {
	sdktrace.SpanExporter
	log      *slog.Logger
	exported atomic.Int64
	failing  atomic.Bool
}

func (e *countedExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		e.exported.Add(int64(len(spans)))
	}
	switch was := e.failing.Swap(err != nil); {
	case err != nil && !was:
		e.log.Warn("spans do not reach the collector and are dropped; nothing else suffers", "error", oneLine(err))
	case err == nil && was:
		e.log.Info("spans reach the collector again")
	}
	return err
}

// Register exports how many spans were recorded and how many of them reached
// the collector; the difference was dropped or is on its way.
func (t *Tracer) Register(r prometheus.Registerer) {
	if t == nil {
		return
	}
	Counter(r, "trace_spans_recorded_total", "Spans recorded.", nil, &t.recorded)
	Counter(r, "trace_spans_exported_total", "Spans that reached the collector; the others were dropped or are on their way.", nil, t.exported)
}

// NewTracerTo returns a tracer that gives its spans to p.
func NewTracerTo(p sdktrace.SpanProcessor, ratio float64, process, zone string) *Tracer {
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(p), sdktrace.WithIDGenerator(givenIDs{}),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // Record has decided
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "seckill-"+process),
			attribute.String("cloud.availability_zone", zone))))
	return &Tracer{ratio: ratio, tracer: provider.Tracer("github.com/hotsku/hotsku"), provider: provider, exported: new(atomic.Int64)}
}

// Close exports what is left, within the export's timeout.
func (t *Tracer) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), traceTimeout)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

// Begin is the trace context of a reservation that is about to be made: a
// child of the request's if that has one. "" says that nothing need be kept:
// the trace is not recorded, and the reservation's id is its context.
func (t *Tracer) Begin(parent seckill.Traceparent, reservationID string) seckill.Traceparent {
	switch {
	case t != nil && (parent.Sampled() || t.ratio > 0 && parent.ShareWith(reservationID) < t.ratio):
		return parent.Child(reservationID, true)
	case parent != "":
		return parent.Child(reservationID, false)
	}
	return "" // the way of nearly all: nothing was allocated for it
}

// Span is one step of a trace.
type Span struct {
	// Of is the trace, and the span that this one is a child of.
	Of seckill.Traceparent
	// Root says that this is Of's own span, as Begin gave it; its parent is
	// Parent's, if there is one.
	Root         bool
	Parent       seckill.Traceparent
	Name         string
	Began, Ended time.Time
	Attributes   []attribute.KeyValue
}

// Record exports a span if its trace is sampled.
func (t *Tracer) Record(s Span) {
	if t == nil || !s.Of.Sampled() {
		return
	}
	ctx := context.Background()
	above := s.Of
	if s.Root {
		ctx = context.WithValue(ctx, givenKey{}, s.Of)
		above = s.Parent
	}
	kind := trace.SpanKindInternal
	if s.Root {
		kind = trace.SpanKindServer
	}
	if parent, ok := spanContext(above); ok {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	t.recorded.Add(1)
	_, span := t.tracer.Start(ctx, s.Name, trace.WithTimestamp(s.Began), trace.WithSpanKind(kind), trace.WithAttributes(s.Attributes...))
	span.End(trace.WithTimestamp(s.Ended))
}

func spanContext(t seckill.Traceparent) (trace.SpanContext, bool) {
	traceID, err := trace.TraceIDFromHex(t.TraceID())
	if err != nil {
		return trace.SpanContext{}, false
	}
	spanID, err := trace.SpanIDFromHex(t.SpanID())
	if err != nil {
		return trace.SpanContext{}, false
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: spanID, TraceFlags: trace.FlagsSampled, Remote: true}), true
}
