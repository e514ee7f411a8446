package reservation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

func (b *bundle) decided(r reservation.Reservation, status seckill.ReservationStatus, orderID string, returns bool) reservation.Decided {
	return reservation.Decided{ReservationID: r.ReservationID, MessageID: r.MessageID, RequestID: r.RequestID, ActivityID: b.activity, SKUID: sku,
		UserID: r.UserID, Status: status, OrderID: orderID, ReturnStock: returns, ReservedAt: r.ReservedAt, DecidedAt: r.ReservedAt.Add(time.Second)}
}

// dump is every key of the SKU but the change log, as Redis holds it.
func (b *bundle) dump(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	iter := b.raw.Scan(t.Context(), 0, b.keys.Prefix()+"*", 1000).Iterator()
	for iter.Next(t.Context()) {
		k := iter.Val()
		switch typ := b.raw.Type(t.Context(), k).Val(); typ {
		case "string":
			out[k] = b.raw.Get(t.Context(), k).Val()
		case "hash":
			out[k] = fmt.Sprint(b.raw.HGetAll(t.Context(), k).Val())
		case "zset":
			out[k] = fmt.Sprint(b.raw.ZRangeWithScores(t.Context(), k, 0, -1).Val())
		case "stream":
			out[k] = fmt.Sprint(b.raw.XLen(t.Context(), k).Val())
		default:
			t.Fatalf("%s is a %s", k, typ)
		}
		out[k] += " ends " + b.raw.ExpireTime(t.Context(), k).Val().String()
	}
	return out
}

// R7.10.8 R11.15: what Redis lost of a decided reservation comes back as it
// was, nothing else changes, and its user cannot buy again.
func TestRestorePutsBackWhatIsMissingAndNothingElse(t *testing.T) {
	cases := []struct {
		name    string
		status  seckill.ReservationStatus
		orderID string
		returns bool
		want    int // keys that come back of three
	}{
		{"an order", seckill.StatusOrderCreated, "ord_01J9ZZZZZZZZZZZZZZZZZZZZZZ", false, 3},
		{"a rejection that returned its unit", seckill.StatusRejectedLate, "", true, 3},
		{"a rejection without a unit", seckill.StatusRejectedNoFinalStock, "", false, 3},
		{"an expired order of a sale that retires", seckill.StatusExpired, "ord_01J9ZZZZZZZZZZZZZZZZZZZZZZ", false, 3},
		{"a cancelled order of a sale that resells", seckill.StatusCancelled, "ord_01J9ZZZZZZZZZZZZZZZZZZZZZZ", true, 3},
		{"a reservation set aside", seckill.StatusSetAside, "", false, 3},
		{"a second reservation of a user", seckill.StatusRejectedDuplicateUser, "", true, 2}, // the mark is the first one's
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := setup(t, 5)
			other, mine := b.candidate(1, "r-1"), b.candidate(2, "r-2")
			b.reserve(t, other, mine)
			e := event(mine, b, seckill.EventOrderCreated, seckill.StatusOrderCreated, false)
			e.OrderID = c.orderID
			if c.orderID != "" {
				apply(t, b, e)
			}
			if c.status.Compensated() {
				e = event(mine, b, seckill.EventCompensate, c.status, c.returns)
				e.OrderID = c.orderID
				apply(t, b, e)
			}
			r, _, err := b.LookupReservation(t.Context(), b.activity, sku, mine.ReservationID)
			if err != nil {
				t.Fatal(err)
			}
			before := b.dump(t)
			lost := []string{b.keys.Reservation(mine.ReservationID), b.keys.Request("r-2"), b.keys.User(2)}
			if err := b.raw.Del(t.Context(), lost[:c.want]...).Err(); err != nil {
				t.Fatal(err)
			}
			b.raw.ZRem(t.Context(), b.keys.Pending(), mine.ReservationID)
			stock := b.stock(t)
			d := b.decided(r, c.status, c.orderID, c.returns)
			for i, want := range []int{c.want, 0, 0} {
				if n, err := b.Restore(t.Context(), d); err != nil || n != want {
					t.Fatalf("call %d restored %d keys, %v, want %d", i, n, err, want)
				}
			}
			after := b.dump(t)
			for _, k := range lost {
				if _, ok := after[k]; !ok {
					t.Errorf("%s did not come back", strings.TrimPrefix(k, b.keys.Prefix()))
				}
			}
			for _, k := range append(lost, b.keys.Pending()) {
				delete(before, k)
				delete(after, k)
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("other keys changed (-before +after):\n%s", diff)
			}
			back, found, err := b.LookupRequest(t.Context(), b.activity, sku, "r-2")
			if err != nil || !found || back.Status != c.status || back.OrderID != c.orderID || back.UserID != 2 || back.MessageID != mine.MessageID ||
				back.PayloadHash != r.PayloadHash || !back.ReservedAt.Equal(r.ReservedAt) || back.CompensatedAt.IsZero() == c.status.Compensated() || back.ActivityVersion != 7 {
				t.Errorf("came back as %+v, found %t, %v", back, found, err)
			}
			if end := b.raw.ExpireTime(t.Context(), lost[0]).Val(); end != b.raw.ExpireTime(t.Context(), b.keys.Meta()).Val() {
				t.Errorf("ends at %v, not with the activity", end)
			}
			// The event again, late: the unit does not return twice.
			if c.status.Compensated() {
				apply(t, b, e, e)
			}
			if n := b.stock(t); n != stock {
				t.Errorf("stock went from %d to %d", stock, n)
			}
			// No second purchase, by whatever request.
			if got := b.reserve(t, b.candidate(2, "r-2"), b.candidate(2, "again")); got[0].Verdict != reservation.VerdictReplayed || got[1].Verdict != reservation.VerdictDuplicateUser {
				t.Errorf("the user again: %+v", got)
			}
		})
	}
}

func apply(t *testing.T, b *bundle, events ...seckill.Event) {
	t.Helper()
	if _, err := b.Apply(t.Context(), b.activity, sku, events); err != nil {
		t.Fatal(err)
	}
}

// A unit that is still to return is not forgotten: the reservation stays
// lost, so that whoever finds the sum wrong can mend it; its user is known.
func TestRestoreNeverSwallowsAReturn(t *testing.T) {
	b := setup(t, 3)
	c := b.candidate(1, "r-1")
	b.reserve(t, c)
	r, _, err := b.LookupReservation(t.Context(), b.activity, sku, c.ReservationID)
	if err != nil {
		t.Fatal(err)
	}
	b.raw.Del(t.Context(), b.keys.Reservation(c.ReservationID), b.keys.User(1), b.keys.Request("r-1"))
	n, err := b.Restore(t.Context(), b.decided(r, seckill.StatusRejectedLate, "", true))
	if err != nil || n != 2 {
		t.Errorf("restored %d keys, %v, want mark and request", n, err)
	}
	if _, found, _ := b.LookupReservation(t.Context(), b.activity, sku, c.ReservationID); found {
		t.Error("the reservation came back as compensated, and its unit never did")
	}
	if got := b.reserve(t, b.candidate(1, "again"))[0]; got.Verdict != reservation.VerdictDuplicateUser || got.ReservationID != c.ReservationID {
		t.Errorf("the user again: %+v", got)
	}
}

func TestRestoreLeavesAnUnknownActivityUnknown(t *testing.T) {
	b := setup(t, 1)
	c := b.candidate(1, "r-1")
	d := b.decided(reservation.Reservation{ReservationID: c.ReservationID, MessageID: c.MessageID, RequestID: "r-1", UserID: 1, ReservedAt: time.Now()},
		seckill.StatusOrderCreated, "ord_01J9ZZZZZZZZZZZZZZZZZZZZZZ", false)
	b.raw.Del(t.Context(), b.keys.Meta())
	if n, err := b.Restore(t.Context(), d); err != nil || n != 0 {
		t.Errorf("restored %d keys, %v", n, err)
	}
	if n := b.raw.Exists(t.Context(), b.keys.User(1), b.keys.Request("r-1"), b.keys.Reservation(c.ReservationID)).Val(); n != 0 {
		t.Errorf("%d keys without an end came into being", n)
	}
	d.Status = seckill.StatusMessageSent
	if _, err := b.Restore(t.Context(), d); err == nil {
		t.Error("an undecided reservation was restored")
	}
}
