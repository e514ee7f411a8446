package app_test

import (
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/telemetry"
)

// span is one that was exported.
type span struct{ trace, id, parent, name string }

// spans is an OTLP collector.
type spans struct {
	mu  sync.Mutex
	all []span
}

func collect(t *testing.T) (*spans, string) {
	t.Helper()
	s := new(spans)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			var err error
			if in, err = gzip.NewReader(r.Body); err != nil {
				t.Error(err)
				return
			}
		}
		body, err := io.ReadAll(in)
		if err != nil {
			t.Error(err)
			return
		}
		var req collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &req); err != nil {
			t.Error(err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, resource := range req.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, sp := range scope.Spans {
					s.all = append(s.all, span{hex.EncodeToString(sp.TraceId), hex.EncodeToString(sp.SpanId), hex.EncodeToString(sp.ParentSpanId), sp.Name})
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	return s, server.URL
}

// of are the spans of a trace.
func (s *spans) of(trace string) (found []span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sp := range s.all {
		if sp.trace == trace {
			found = append(found, sp)
		}
	}
	return found
}

// projected waits until the projector has seen n events: a query may have
// shown their results before.
func (p *process) projected(n float64) {
	p.t.Helper()
	eventually(p.t, "events applied", 30*time.Second, func() bool {
		return p.metric("projector_applied_total", "")+p.metric("projector_repeated_total", "") >= n
	})
}

// R12.6 R8.3.1: one reservation is one trace from the edge to Redis, its
// spans and its log lines agree, each key line has every field, and no line
// of any role gives a user away.
func TestAReservationCanBeFollowed(t *testing.T) {
	const stock, tokens, firstUser = 4, 3, 300012340
	w := setup(t, stock, tokens)
	collected, endpoint := collect(t)
	w.cfg.OrdersListen = "127.0.0.1:0"
	w.cfg.Trace = telemetry.TraceConfig{Ratio: 1, Endpoint: endpoint}
	all := start(t, part{Role: roleAll, Config: w.cfg, SKU: w.sku, Seed: 5, Debug: true})
	w.access, w.orders = "http://"+all.ready["access"].Listen, "http://"+all.ready["orders"].Listen
	reservations := map[string]int64{}
	for user := int64(firstUser); user < firstUser+stock; user++ {
		reservations[w.bought(user, requestOf(user-firstUser)).ReservationID] = user
	}
	for user := int64(firstUser); user < firstUser+stock; user++ {
		eventually(t, "an end", 30*time.Second, func() bool {
			_, a := w.ask(user, requestOf(user-firstUser))
			return a.Status == "ORDER_CREATED" || a.Status == "COMPENSATED"
		})
	}
	_, _ = w.buy(firstUser, "another") // a refusal may not name its user either
	all.projected(stock)
	all.drain()

	logs := all.logs.String()
	for user := int64(firstUser); user < firstUser+stock; user++ {
		if strings.Contains(logs, strconv.FormatInt(user, 10)) {
			t.Errorf("the logs name user %d", user)
		}
	}
	key, err := telemetry.ParseUserKey(logKey)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]map[string]int{} // message -> reservation -> lines
	for text := range strings.Lines(logs) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		id, isKey := line["reservation_id"].(string)
		user, ours := reservations[id]
		if !isKey || !ours {
			continue
		}
		for _, field := range []string{"trace_id", "span_id", "request_id", "message_id", "activity_id", "sku_id", "user_id_hash", "order_id", "inventory_token_id",
			"consumer_group", "retry_count", "result_code", "error_class", "availability_zone", "role"} {
			if _, ok := line[field]; !ok {
				t.Errorf("no %s in %s", field, text)
			}
		}
		if want := seckill.TraceOf(id, true); line["trace_id"] != want.TraceID() || line["user_id_hash"] != key.Hash(user) {
			t.Errorf("of another trace or user: %s", text)
		}
		msg := line["msg"].(string)
		if lines[msg] == nil {
			lines[msg] = map[string]int{}
		}
		lines[msg][id]++
	}
	for _, msg := range []string{"reservation answered", "message sent", "reservation decided", "event published", "event applied"} {
		if len(lines[msg]) != stock {
			t.Errorf("%q is said of %d reservations, want %d", msg, len(lines[msg]), stock)
		}
	}

	for id := range reservations {
		trace := seckill.TraceOf(id, true)
		var names []string
		for _, s := range collected.of(trace.TraceID()) {
			switch {
			case s.name == "seckill.submit" && (s.id != trace.SpanID() || s.parent != ""):
				t.Errorf("the first span of %s is %+v", id, s)
			case s.name != "seckill.submit" && s.parent != trace.SpanID():
				t.Errorf("a span beside the first of %s: %+v", id, s)
			}
			names = append(names, s.name)
		}
		slices.Sort(names)
		if want := []string{"order.transaction", "outbox.publish", "projector.apply", "redis.reserve", "rocketmq.send", "seckill.submit"}; !slices.Equal(slices.Compact(names), want) {
			t.Errorf("%s has spans %v, want %v", id, names, want)
		}
	}
}
