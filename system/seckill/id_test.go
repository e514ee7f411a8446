package seckill

import (
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func clock() func() time.Time {
	at := time.Unix(1772357400, 0)
	return func() time.Time { return at }
}

func TestIDsAreUniqueAscendAndAreNamed(t *testing.T) { // R7.7.1
	g := NewIDGenerator(clock(), [32]byte{1})
	last := ""
	for range 10_000 {
		id := g.NewReservationID()
		if id <= last || !ValidReservationID(id) {
			t.Fatalf("%s after %s", id, last)
		}
		last = id
	}
	if id := g.NewOrderID(); len(id) != len(OrderIDPrefix)+26 || id[:4] != OrderIDPrefix {
		t.Errorf("order id %s", id)
	}
}

func TestGeneratorsOfOneSeedAgreeAndOfTwoDiffer(t *testing.T) {
	a, b, c := NewIDGenerator(clock(), [32]byte{1}), NewIDGenerator(clock(), [32]byte{1}), NewIDGenerator(clock(), [32]byte{2})
	if x, y, z := a.NewReservationID(), b.NewReservationID(), c.NewReservationID(); x != y || x == z {
		t.Errorf("%s %s %s", x, y, z)
	}
}

func TestIDGeneratorIsSafeForConcurrentUse(t *testing.T) {
	g := NewIDGenerator(time.Now, [32]byte{3})
	var mu sync.Mutex
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				id := g.NewReservationID()
				mu.Lock()
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(seen) != 4000 {
		t.Errorf("%d different ids of 4000", len(seen))
	}
}

func TestTagIsTheReservationIDInSixteenBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tag [16]byte
		copy(tag[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "tag"))
		id := ReservationIDOfTag(tag)
		if got, ok := ReservationTag([]byte(id)); !ok || got != tag {
			t.Fatalf("%s: %x, %v", id, got, ok)
		}
	})
}

func TestReservationTagRefusesWhatIsNoReservationID(t *testing.T) {
	good := NewIDGenerator(clock(), [32]byte{1}).NewReservationID()
	for _, id := range []string{"", "resv_", good[5:], "ordr_" + good[5:], good + "0", good[:len(good)-1],
		"resv_8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "resv_01HZZZZZZZZZZZZZZZZZZZZZZ!"} {
		if tag, ok := ReservationTag([]byte(id)); ok {
			t.Errorf("%q has tag %x", id, tag)
		}
	}
}

func FuzzReservationTagNamesOneID(f *testing.F) {
	f.Add("resv_01HZZZZZZZZZZZZZZZZZZZZZZZ")
	f.Add("resv_01hzzzzzzzzzzzzzzzzzzzzzzz")
	f.Fuzz(func(t *testing.T, id string) {
		if tag, ok := ReservationTag([]byte(id)); ok && ReservationIDOfTag(tag) != id {
			t.Errorf("%q and %q are one tag", id, ReservationIDOfTag(tag))
		}
	})
}

func TestMessageAndOperationIDsAreFunctionsOfTheReservation(t *testing.T) { // R7.7.3, R8.3.2, R15.3
	const id = "resv_01HZZZZZZZZZZZZZZZZZZZZZZZ"
	if got := MessageIDOf(id); got != "msg_01HZZZZZZZZZZZZZZZZZZZZZZZ" {
		t.Error(got)
	}
	if got := OperationIDOf(id); got != "cmp_01HZZZZZZZZZZZZZZZZZZZZZZZ" {
		t.Error(got)
	}
}
