package seckill

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

const someOrder = "ord_01J9ZZZZZZZZZZZZZZZZZZZZZZ"

func TestAnExpiryCheckComesBackAsItWas(t *testing.T) {
	due := time.Date(2026, 6, 25, 19, 15, 0, 123456000, time.UTC)
	c := NewExpiryCheck(due, []string{someOrder})
	body, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"schema_version":1,"event_type":"ORDER_EXPIRY_CHECK","due_at":"2026-06-25T19:15:00.123456Z","order_ids":["` + someOrder + `"]}`
	if string(body) != want {
		t.Errorf("on the wire\n%s, want\n%s", body, want)
	}
	back, err := DecodeExpiryCheck(body)
	if err != nil || !back.DueAt.Equal(due) || !slices.Equal(back.OrderIDs, c.OrderIDs) {
		t.Errorf("%+v, %v", back, err)
	}
}

func TestABrokenExpiryCheckIsNamed(t *testing.T) {
	good := NewExpiryCheck(time.Unix(1, 0), []string{someOrder})
	for name, test := range map[string]struct {
		body string
		want error
		says string
	}{
		"no JSON":         {`{"schema`, ErrPoison, ""},
		"a newer schema":  {`{"schema_version":2}`, ErrNewerSchema, "version 2"},
		"no schema":       {`{"event_type":"ORDER_EXPIRY_CHECK"}`, ErrPoison, "schema_version"},
		"another event":   {`{"schema_version":1,"event_type":"X"}`, ErrPoison, "event_type"},
		"no due time":     {`{"schema_version":1,"event_type":"ORDER_EXPIRY_CHECK","order_ids":["` + someOrder + `"]}`, ErrPoison, "due_at"},
		"no orders":       {`{"schema_version":1,"event_type":"ORDER_EXPIRY_CHECK","due_at":"2026-06-25T19:15:00Z"}`, ErrPoison, "order_ids"},
		"not an order id": {`{"schema_version":1,"event_type":"ORDER_EXPIRY_CHECK","due_at":"2026-06-25T19:15:00Z","order_ids":["x"]}`, ErrPoison, "order_ids"},
		"too many":        {string(encoded(t, NewExpiryCheck(time.Unix(1, 0), slices.Repeat(good.OrderIDs, ExpiryCheckMax+1)))), ErrPoison, "must be 1 to"},
	} {
		_, err := DecodeExpiryCheck([]byte(test.body))
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func encoded(t *testing.T, c ExpiryCheck) []byte {
	body, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func FuzzDecodeExpiryCheck(f *testing.F) {
	f.Add([]byte(`{"schema_version":1,"event_type":"ORDER_EXPIRY_CHECK","due_at":"2026-06-25T19:15:00Z","order_ids":["` + someOrder + `"]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := DecodeExpiryCheck(body)
		if err != nil {
			return
		}
		again, err := c.Encode()
		if err != nil {
			return // years beyond RFC 3339
		}
		back, err := DecodeExpiryCheck(again)
		if err != nil || !back.DueAt.Equal(c.DueAt) || !slices.Equal(back.OrderIDs, c.OrderIDs) {
			t.Errorf("%q came back as %+v, %v", bytes.TrimSpace(body), back, err)
		}
	})
}
