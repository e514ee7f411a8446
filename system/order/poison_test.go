package order

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hotsku/hotsku/system/seckill"
)

func TestOnePoisonMessageSinksNoNeighbour(t *testing.T) { // R7.4.5, R7.4.8
	f := setup(t)
	sku := f.sku(200)
	// What the validation in Go cannot know, the database refuses.
	f.exec(`ALTER TABLE orders ADD CHECK (user_id NOT IN (13, 57, 58))`)
	var m []seckill.OrderCreateMessage
	for user := int64(1); user <= 100; user++ {
		m = append(m, f.reserve(sku, user))
	}
	p := f.processor()
	f.process(p, f.deliver(m...))
	f.process(p, f.deliver(m...))
	want := statuses{seckill.StatusOrderCreated: 97, seckill.StatusRejectedPoison: 3}
	if diff := cmp.Diff(want, f.statuses(sku)); diff != "" {
		t.Fatal(diff)
	}
	f.assertConserved(sku)
	if n := f.count(`SELECT count(*) FROM dead_letter WHERE class = 'refused_by_database'`); n != 3 {
		t.Errorf("%d dead letters, want 3", n)
	}
	if n := f.count(`SELECT count(*) FROM inventory_reservation WHERE status = 'REJECTED_POISON' AND return_stock`); n != 3 {
		t.Errorf("%d of 3 poisoned units return", n)
	}
	if s := p.Stats(); s.Parked.Load() != 3 || s.Bisections.Load() == 0 || s.TransientFails.Load() != 0 {
		t.Errorf("parked %d, bisections %d, back-offs %d", s.Parked.Load(), s.Bisections.Load(), s.TransientFails.Load())
	}
}

func TestBrokenMessagesAreParkedAsFarAsTheyCanBeRead(t *testing.T) { // R8.3.7, I12
	f := setup(t)
	spoilt := func(change func(map[string]any)) func(m seckill.OrderCreateMessage) []byte {
		return func(m seckill.OrderCreateMessage) []byte {
			body, err := m.Encode()
			if err != nil {
				t.Fatal(err)
			}
			var fields map[string]any
			d := json.NewDecoder(strings.NewReader(string(body)))
			d.UseNumber()
			if err := d.Decode(&fields); err != nil {
				t.Fatal(err)
			}
			change(fields)
			if body, err = json.Marshal(fields); err != nil {
				t.Fatal(err)
			}
			return body
		}
	}
	raw := func(s string) func(seckill.OrderCreateMessage) []byte {
		return func(seckill.OrderCreateMessage) []byte { return []byte(s) }
	}
	for name, test := range map[string]struct {
		body     func(seckill.OrderCreateMessage) []byte
		class    string
		rejected bool
	}{
		"empty":                      {raw(""), classPoison, false},
		"no JSON":                    {raw("{"), classPoison, false},
		"bytes":                      {raw("\x00\xff\xfe"), classPoison, false},
		"another JSON":               {raw(`{"hello":"world"}`), classPoison, false},
		"a newer schema":             {spoilt(func(m map[string]any) { m["schema_version"] = 2 }), classNewerSchema, false},
		"another payload hash":       {spoilt(func(m map[string]any) { m["payload_hash"] = "sha256:00" }), classPoison, true},
		"another event type":         {spoilt(func(m map[string]any) { m["event_type"] = "HELLO" }), classPoison, true},
		"no user":                    {spoilt(func(m map[string]any) { m["user_id"] = 0 }), classPoison, false},
		"a user of another type":     {spoilt(func(m map[string]any) { m["user_id"] = "seven" }), classPoison, false},
		"an ill reservation id":      {spoilt(func(m map[string]any) { m["reservation_id"] = "resv_\x00" }), classPoison, false},
		"a NUL in the message id":    {spoilt(func(m map[string]any) { m["message_id"] = "msg_\x00" }), classPoison, false},
		"expiry before reservation":  {spoilt(func(m map[string]any) { m["reservation_expires_at"] = "2001-01-01T00:00:00Z" }), classPoison, true},
		"an activity nobody created": {spoilt(func(m map[string]any) { m["activity_id"], m["payload_hash"] = 1, hashOf(1, m) }), classRefused, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			f.exec(`TRUNCATE dead_letter, consumer_inbox`)
			sku := f.sku(3)
			good, bad := f.reserve(sku, 1), f.reserve(sku, 2)
			deliveries := append(f.deliver(good), f.raw(test.body(bad)))
			p := f.processor()
			f.process(p, deliveries)
			f.process(p, deliveries)
			if n := f.count(`SELECT count(*) FROM orders WHERE activity_id = $1`, sku.ActivityID); n != 1 {
				t.Errorf("the sound neighbour has %d orders", n)
			}
			if n := f.count(`SELECT count(*) FROM dead_letter WHERE class = $1 AND body = $2`, test.class, deliveries[1].Body); n != 1 {
				t.Errorf("%d dead letters of class %s with the body", n, test.class)
			}
			n := f.count(`SELECT count(*) FROM inventory_reservation WHERE reservation_id = $1 AND status = 'REJECTED_POISON'`, bad.ReservationID)
			if (n == 1) != test.rejected {
				t.Errorf("rejected: %v, want %v", n == 1, test.rejected)
			}
			f.assertConserved(sku)
		})
	}
}

func TestTraceparentOfAnyShapeHarmsNothing(t *testing.T) {
	f := setup(t)
	sku := f.sku(1)
	m := f.reserve(sku, 1)
	m.Traceparent = "00-\x00'"
	p := f.processor()
	f.process(p, f.deliver(m))
	if diff := cmp.Diff(statuses{seckill.StatusOrderCreated: 1}, f.statuses(sku)); diff != "" {
		t.Error(diff)
	}
}

func TestABrokenCopyCannotUndoADecision(t *testing.T) {
	f := setup(t)
	sku := f.sku(2)
	m := f.reserve(sku, 1)
	copied := m
	copied.EventType = "HELLO"
	p := f.processor()
	// In one batch the sound one is decided first; afterwards, whatever
	// message id the copy has, the reservation stays as it is.
	f.process(p, f.deliver(copied, m))
	copied.MessageID = "msg_copy"
	f.process(p, f.deliver(copied))
	if diff := cmp.Diff(statuses{seckill.StatusOrderCreated: 1}, f.statuses(sku)); diff != "" {
		t.Error(diff)
	}
	if n := f.count(`SELECT count(*) FROM dead_letter`); n != 2 {
		t.Errorf("%d dead letters, want 2", n)
	}
	f.assertConserved(sku)
}

func TestWhereEvenTheRejectionIsRefusedTheLetterStandsAlone(t *testing.T) {
	f := setup(t)
	sku := f.sku(2)
	f.exec(`ALTER TABLE inventory_reservation ADD CHECK (user_id <> 13)`)
	p := f.processor()
	f.process(p, f.deliver(f.reserve(sku, 13), f.reserve(sku, 14)))
	if diff := cmp.Diff(statuses{seckill.StatusOrderCreated: 1}, f.statuses(sku)); diff != "" {
		t.Error(diff)
	}
	if n := f.count(`SELECT count(*) FROM dead_letter`); n != 1 {
		t.Errorf("%d dead letters, want 1", n)
	}
	f.assertConserved(sku)
}

func hashOf(activityID int64, m map[string]any) string {
	number := func(name string) int64 {
		n, err := m[name].(json.Number).Int64()
		if err != nil {
			panic(err)
		}
		return n
	}
	c := seckill.SubmitCommand{ActivityID: activityID, SKUID: number("sku_id"), UserID: number("user_id"), Quantity: 1}
	return seckill.PayloadHashPrefix + c.PayloadHash()
}
