package telemetry_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/telemetry"
)

func userKey(t *testing.T, text string) telemetry.UserKey {
	t.Helper()
	k, err := telemetry.ParseUserKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

const aUserKey = "00112233445566778899aabbccddeeff"

// R12.6: a key line has every field of the specification, and no user id.
func TestAKeyLineHasEveryField(t *testing.T) {
	var out bytes.Buffer
	key := userKey(t, aUserKey)
	log := slog.New(telemetry.NewLogHandler(&out, slog.LevelInfo, key)).With("role", "consumer", "availability_zone", "z1")
	id := seckill.NewIDGenerator(time.Now, [32]byte{1}).NewReservationID()
	log.LogAttrs(t.Context(), slog.LevelInfo, "order created", telemetry.Subject{RequestID: "r1", ReservationID: id, MessageID: seckill.MessageIDOf(id),
		ActivityID: 10001, SKUID: 20001, UserID: 300012345, OrderID: "ord_1", TokenID: 77, ConsumerGroup: "g", RetryCount: 2, ResultCode: "ORDER_CREATED"}.Attrs()...)
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"trace_id", "span_id", "request_id", "reservation_id", "message_id", "activity_id", "sku_id", "user_id_hash", "order_id",
		"inventory_token_id", "consumer_group", "retry_count", "result_code", "error_class", "availability_zone"} {
		if _, ok := line[field]; !ok {
			t.Errorf("no %s in %s", field, out.String())
		}
	}
	if strings.Contains(out.String(), "300012345") || line["user_id_hash"] != key.Hash(300012345) {
		t.Errorf("user is given away or misnamed: %s", out.String())
	}
	if trace := seckill.TraceOf(id, false); line["trace_id"] != trace.TraceID() || line["span_id"] != trace.SpanID() {
		t.Errorf("trace of %s: %s", id, out.String())
	}
}

// R12.6: whoever logs a user, and however, writes a hash.
func TestNoWayToLogAUserLeavesItsID(t *testing.T) {
	const user = 300012345
	for name, say := range map[string]func(*slog.Logger){
		"attribute":     func(l *slog.Logger) { l.Info("x", "user_id", int64(user)) },
		"int":           func(l *slog.Logger) { l.Info("x", "user_id", user) },
		"text":          func(l *slog.Logger) { l.Info("x", "user_id", "300012345") },
		"of the logger": func(l *slog.Logger) { l.With("user_id", int64(user)).Info("x") },
		"in a group":    func(l *slog.Logger) { l.WithGroup("g").Info("x", slog.Group("h", "user_id", int64(user))) },
		"resolved":      func(l *slog.Logger) { l.Info("x", "user_id", lazily{}) },
	} {
		var out bytes.Buffer
		say(slog.New(telemetry.NewLogHandler(&out, slog.LevelInfo, userKey(t, aUserKey))))
		if strings.Contains(out.String(), "300012345") || !strings.Contains(out.String(), `"user_id_hash":`) {
			t.Errorf("%s: %s", name, out.String())
		}
	}
}

type lazily struct{}

func (lazily) LogValue() slog.Value { return slog.Int64Value(300012345) }

func TestUserKeys(t *testing.T) {
	a, b := userKey(t, aUserKey), userKey(t, "ff112233445566778899aabbccddeeff")
	if again := userKey(t, aUserKey); a.Hash(1) != again.Hash(1) || a.Hash(1) == a.Hash(2) || a.Hash(1) == b.Hash(1) || len(a.Hash(1)) != 16 {
		t.Errorf("hashes are %s %s %s", a.Hash(1), a.Hash(2), b.Hash(1))
	}
	if slices.Equal(userKey(t, ""), userKey(t, "")) {
		t.Error("two random keys are one")
	}
	for _, text := range []string{"00", "xyz", aUserKey[:30]} {
		if _, err := telemetry.ParseUserKey(text); err == nil || strings.Contains(err.Error(), text) {
			t.Errorf("%q: error is %v", text, err)
		}
	}
}
