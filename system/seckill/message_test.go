package seckill

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

const exampleReservation = "resv_01HZZZZZZZZZZZZZZZZZZZZZZZ"

func exampleMessage() OrderCreateMessage {
	cmd := SubmitCommand{ActivityID: 7, SKUID: 11, UserID: 1000, RequestID: "r7-1", Quantity: 1}
	at := time.Date(2026, 3, 1, 9, 30, 0, 123456000, time.UTC)
	return OrderCreateMessage{
		SchemaVersion: MessageSchemaVersion, EventType: EventTypeOrderCreateRequested,
		MessageID: MessageIDOf(exampleReservation), MessageKey: exampleReservation,
		RequestID: cmd.RequestID, ReservationID: exampleReservation,
		ActivityID: cmd.ActivityID, SKUID: cmd.SKUID, UserID: cmd.UserID,
		ReservedAt: at, ReservationExpiresAt: at.Add(time.Minute), RetryCount: 0,
		PayloadHash: PayloadHashPrefix + cmd.PayloadHash(), ActivityVersion: 1, CreatedAt: at,
	}
}

func exampleEvent() Event {
	return Event{SchemaVersion: EventSchemaVersion, EventType: EventCompensate, OperationID: OperationIDOf(exampleReservation),
		ReservationID: exampleReservation, ActivityID: 7, SKUID: 11, UserID: 1000, Status: StatusRejectedLate, ReturnStock: true}
}

func TestMessagesKeepTheirFormat(t *testing.T) { // R8.3.1, R8.5
	m := exampleMessage()
	body, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	event, err := json.Marshal(exampleEvent())
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/messages.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(body) + "\n" + string(event) + "\n"; got != string(want) {
		t.Errorf("messages are now\n%swant\n%s", got, want)
	}
	if back, err := DecodeOrderCreate(body); err != nil || back != m {
		t.Errorf("read back as %+v, %v", back, err)
	}
	if back, err := DecodeEvent(event); err != nil || back != exampleEvent() {
		t.Errorf("read back as %+v, %v", back, err)
	}
}

func TestPoisonMessagesNameTheField(t *testing.T) {
	for field, spoil := range map[string]func(*OrderCreateMessage){
		"schema_version":         func(m *OrderCreateMessage) { m.SchemaVersion = 0 },
		"event_type":             func(m *OrderCreateMessage) { m.EventType = "X" },
		"reservation_id":         func(m *OrderCreateMessage) { m.ReservationID = "x" },
		"message_key":            func(m *OrderCreateMessage) { m.MessageKey = "x" },
		"message_id":             func(m *OrderCreateMessage) { m.MessageID = "x" },
		"activity_id":            func(m *OrderCreateMessage) { m.ActivityID = 0 },
		"sku_id":                 func(m *OrderCreateMessage) { m.SKUID = -1 },
		"user_id":                func(m *OrderCreateMessage) { m.UserID = 0 },
		"reserved_at":            func(m *OrderCreateMessage) { m.ReservedAt = time.Time{} },
		"reservation_expires_at": func(m *OrderCreateMessage) { m.ReservationExpiresAt = m.ReservedAt.Add(-1) },
		"request_id":             func(m *OrderCreateMessage) { m.RequestID = "a b" },
		"payload_hash":           func(m *OrderCreateMessage) { m.UserID++ },
	} {
		m := exampleMessage()
		spoil(&m)
		body, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		var fe *FieldError
		back, err := DecodeOrderCreate(body)
		if !errors.Is(err, ErrPoison) || !errors.As(err, &fe) || fe.Field != field {
			t.Errorf("%s: %v", field, err)
		}
		if back != m {
			t.Errorf("%s: what could be read is lost: %+v", field, back)
		}
	}
}

func TestANewerSchemaIsNeverGuessedAt(t *testing.T) { // R8.3.7
	m := exampleMessage()
	m.SchemaVersion++
	body, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeOrderCreate(body); !errors.Is(err, ErrNewerSchema) || errors.Is(err, ErrPoison) {
		t.Errorf("message: %v", err)
	}
	e := exampleEvent()
	e.SchemaVersion++
	if body, err = json.Marshal(e); err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeEvent(body); !errors.Is(err, ErrNewerSchema) {
		t.Errorf("event: %v", err)
	}
}

func TestDataAfterAMessageIsPoison(t *testing.T) {
	m := exampleMessage()
	body, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, tail := range []string{"x", "{}", string(body)} {
		if _, err := DecodeOrderCreate(append(body[:len(body):len(body)], tail...)); !errors.Is(err, ErrPoison) {
			t.Errorf("%.10q after it: %v", tail, err)
		}
	}
}

func TestIncompleteEventsArePoison(t *testing.T) {
	for name, spoil := range map[string]func(*Event){
		"type": func(e *Event) { e.EventType = "" }, "reservation": func(e *Event) { e.ReservationID = "" },
		"activity": func(e *Event) { e.ActivityID = 0 }, "sku": func(e *Event) { e.SKUID = 0 },
		"user": func(e *Event) { e.UserID = 0 }, "status": func(e *Event) { e.Status = "" },
		"operation": func(e *Event) { e.OperationID = "" },
	} {
		e := exampleEvent()
		spoil(&e)
		body, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeEvent(body); !errors.Is(err, ErrPoison) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecodeOrderCreate(f *testing.F) {
	m := exampleMessage()
	body, err := m.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte(`{"schema_version":2}`))
	f.Add([]byte(strings.Repeat("[", 100)))
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := DecodeOrderCreate(body)
		if err != nil {
			if !errors.Is(err, ErrPoison) && !errors.Is(err, ErrNewerSchema) {
				t.Fatalf("unclassified: %v", err)
			}
			return
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := DecodeOrderCreate(again); err != nil || back.ReservationID != m.ReservationID {
			t.Fatalf("a good message does not survive its own encoding: %v", err)
		}
	})
}

func FuzzDecodeEvent(f *testing.F) {
	body, err := json.Marshal(exampleEvent())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := DecodeEvent(body); err != nil && !errors.Is(err, ErrPoison) && !errors.Is(err, ErrNewerSchema) {
			t.Fatalf("unclassified: %v", err)
		}
	})
}
