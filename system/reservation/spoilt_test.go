package reservation_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// Keys that somebody else wrote to are their SKU's or their reservation's
// trouble, and no other's.

// An entry of the index that names no SKU hides none.
func TestAnIndexEntryThatIsNoneHidesNoSKU(t *testing.T) {
	b := setup(t, 1)
	const junk = "tampered with"
	if err := b.raw.SAdd(t.Context(), seckill.ActivityIndexKey, junk).Err(); err != nil {
		t.Fatal(err)
	}
	defer b.raw.SRem(t.Context(), seckill.ActivityIndexKey, junk)
	skus, err := b.Activities(t.Context())
	if !errors.Is(err, reservation.ErrUnreadable) || !slices.Contains(skus, reservation.SKU{ActivityID: b.activity, SKUID: sku}) {
		t.Errorf("listed %v, %v", skus, err)
	}
}

// A pending index that is none leaves the other SKUs their counts.
func TestAPendingIndexThatIsNoneHidesNoOther(t *testing.T) {
	sound, spoilt := setup(t, 1), setup(t, 1)
	sound.reserve(t, sound.candidate(1, "r-1"))
	if err := spoilt.raw.Set(t.Context(), spoilt.keys.Pending(), "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	counts, err := sound.PendingCounts(t.Context(), []reservation.SKU{{ActivityID: spoilt.activity, SKUID: sku}, {ActivityID: sound.activity, SKUID: sku}})
	if !errors.Is(err, reservation.ErrUnreadable) || !slices.Equal(counts, []int64{0, 1}) {
		t.Errorf("counted %v, %v", counts, err)
	}
}

// A reservation whose key is of another type is leased like any unreadable
// one: those due after it are claimed.
func TestAReservationOfAnotherTypeSinksNoOther(t *testing.T) {
	b := setup(t, 5, dueNow)
	broken, sound := b.candidate(1, "r-1"), b.candidate(2, "r-2")
	b.reserve(t, broken)
	b.reserve(t, sound)
	key := b.keys.Reservation(broken.ReservationID)
	if err := errors.Join(b.raw.Del(t.Context(), key).Err(), b.raw.Set(t.Context(), key, "x", 0).Err()); err != nil {
		t.Fatal(err)
	}
	var claimed []string
	for unreadable := 0; len(claimed) == 0; { // it may be due in an earlier claim
		due, err := b.claim(t)
		if errors.Is(err, reservation.ErrUnreadable) {
			if unreadable++; unreadable > 1 {
				t.Fatal("the spoilt one was claimed twice: it is not leased")
			}
		} else if err != nil {
			t.Fatal(err)
		}
		for _, r := range due {
			claimed = append(claimed, r.ReservationID)
		}
	}
	if !slices.Equal(claimed, []string{sound.ReservationID}) {
		t.Errorf("claimed %v", claimed)
	}
}

// R8.2.1: a return that cannot be entered in full moves no stock, however
// often it is tried, and the neighbours of its batch are applied.
func TestAReturnIsEnteredInFullOrNotAtAll(t *testing.T) {
	for rule, spoil := range map[string]func(t *testing.T, b *bundle, resv string) error{
		"a reservation without its user": func(t *testing.T, b *bundle, resv string) error {
			return b.raw.HDel(t.Context(), resv, "user_id").Err()
		},
		"a reservation without its id": func(t *testing.T, b *bundle, resv string) error {
			return b.raw.HDel(t.Context(), resv, "reservation_id").Err()
		},
		"a reservation of another type": func(t *testing.T, b *bundle, resv string) error {
			return b.raw.Set(t.Context(), resv, "x", 0).Err()
		},
	} {
		b := setup(t, 5)
		broken, sound := b.candidate(1, "r-1"), b.candidate(2, "r-2")
		b.reserve(t, broken, sound)
		if err := spoil(t, b, b.keys.Reservation(broken.ReservationID)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got, err := b.Apply(t.Context(), b.activity, sku, []seckill.Event{
				event(broken, b, seckill.EventCompensate, seckill.StatusRejectedLate, true),
				event(sound, b, seckill.EventCompensate, seckill.StatusRejectedLate, true)})
			if err != nil || got.Missing != 1 || b.stock(t) != 4 {
				t.Errorf("%s: %+v, %v, stock %d, want 4", rule, got, err, b.stock(t))
			}
		}
	}
	for rule, key := range map[string]func(seckill.Keys) string{
		"a description of another type": seckill.Keys.Meta, "a pending index of another type": seckill.Keys.Pending, "a log of another type": seckill.Keys.Log,
	} {
		b := setup(t, 5)
		c := b.candidate(1, "r-1")
		b.reserve(t, c)
		if err := b.raw.Set(t.Context(), key(b.keys), "x", 0).Err(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, err := b.Apply(t.Context(), b.activity, sku, []seckill.Event{event(c, b, seckill.EventCompensate, seckill.StatusRejectedLate, true)})
			if !errors.Is(err, reservation.ErrUnreadable) || b.stock(t) != 4 {
				t.Errorf("%s: %v, stock %d, want 4", rule, err, b.stock(t))
			}
		}
	}
}
