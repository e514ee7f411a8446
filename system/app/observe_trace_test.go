package app_test

import (
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/telemetry"
)

// R12.6 R7.7.4: an access process died between the script and the send. The
// scanner's message continues the trace of the request, which a gateway began
// and chose to sample.
func TestAResendContinuesTheTrace(t *testing.T) {
	const gateway = seckill.Traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	const user = 300012350
	w := setup(t, 1, 1)
	collected, endpoint := collect(t)
	w.cfg.OrdersListen = "127.0.0.1:0"
	w.cfg.Trace = telemetry.TraceConfig{Endpoint: endpoint} // the gateway's choice alone
	id := seckill.NewIDGenerator(time.Now, [32]byte{9}).NewReservationID()
	own := gateway.Child(id, true)
	cmd := seckill.SubmitCommand{ActivityID: w.sku.ActivityID, SKUID: w.sku.SKUID, UserID: user, RequestID: requestOf(user), Quantity: 1}
	if b, err := w.redis.Reserve(t.Context(), w.sku.ActivityID, w.sku.SKUID, []reservation.Candidate{{RequestID: cmd.RequestID, UserID: user,
		PayloadHash: cmd.PayloadHash(), ReservationID: id, MessageID: seckill.MessageIDOf(id), Traceparent: string(own)}}); err != nil || b.Outcomes[0].Verdict != reservation.VerdictCreated {
		t.Fatalf("%+v, %v", b, err)
	}
	all := start(t, part{Role: roleAll, Config: w.cfg, SKU: w.sku, Seed: 6, Debug: true})
	w.orders = "http://" + all.ready["orders"].Listen
	w.await(user, "ORDER_CREATED")
	all.projected(1)
	all.drain()

	var names []string
	for _, s := range collected.of(own.TraceID()) {
		if s.parent != own.SpanID() {
			t.Errorf("a span beside the request's: %+v", s)
		}
		names = append(names, s.name)
	}
	slices.Sort(names)
	if want := []string{"order.transaction", "outbox.publish", "projector.apply", "rocketmq.send"}; !slices.Equal(slices.Compact(names), want) {
		t.Errorf("spans are %v, want %v", names, want)
	}
	resent := false
	for text := range strings.Lines(all.logs.String()) {
		var line struct {
			Msg           string
			ReservationID string `json:"reservation_id"`
			Trace         string `json:"trace_id"`
			Retries       int    `json:"retry_count"`
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if line.Msg == "message sent" && line.ReservationID == id {
			resent = line.Retries > 0 && line.Trace == own.TraceID()
		}
	}
	if !resent {
		t.Errorf("no line tells of the resend:\n%s", all.logs)
	}
}

// A collector that takes connections and never answers costs spans, and
// holds up neither the orders nor the end of the process.
func TestACollectorThatHangsHoldsNothingUp(t *testing.T) {
	const stock = 3
	hangs, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	w := setup(t, stock, stock)
	w.cfg.OrdersListen = "127.0.0.1:0"
	w.cfg.Trace = telemetry.TraceConfig{Ratio: 1, Endpoint: "http://" + hangs.Addr().String()}
	all := start(t, part{Role: roleAll, Config: w.cfg, SKU: w.sku, Seed: 7})
	w.access, w.orders = "http://"+all.ready["access"].Listen, "http://"+all.ready["orders"].Listen
	for user := int64(1); user <= stock; user++ {
		w.ordered(user)
	}
	if recorded := all.metric("trace_spans_recorded_total", ""); recorded < stock {
		t.Errorf("%v spans recorded", recorded)
	}
	if exported := all.metric("trace_spans_exported_total", ""); exported != 0 {
		t.Errorf("%v spans exported, to nobody", exported)
	}
	all.drain()
	if !strings.Contains(all.logs.String(), "spans do not reach the collector") {
		t.Errorf("nobody was told:\n%s", all.logs)
	}
}

// R12.6: whatever a client calls its request, a line of the log stays a line.
func TestNoRequestIDWritesALogLine(t *testing.T) {
	w := setup(t, 1, 1)
	access := start(t, part{Role: "access", Config: w.cfg, SKU: w.sku, Seed: 8, Debug: true})
	w.access = "http://" + access.Listen
	for _, id := range []string{"a\n{\"msg\":\"forged\"}", "a\r\nforged", "\x1b[2Jforged", "a b forged", "forged\u2028", strings.Repeat("forged", 20)} {
		if status, a := w.buy(1, id); status != http.StatusBadRequest || a.Code != seckill.CodeInvalidRequest {
			t.Errorf("%q: %d %+v", id, status, a)
		}
	}
	access.drain()
	if strings.Contains(access.logs.String(), "forged") {
		t.Errorf("the log repeats a client's words:\n%s", access.logs)
	}
}
