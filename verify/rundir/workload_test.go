package rundir

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func drawWorkload(t *rapid.T) Workload {
	repeat := rapid.Uint32Range(0, 400).Draw(t, "repeat")
	return Workload{
		Seed:             rapid.Uint64().Draw(t, "seed"),
		FirstUser:        rapid.Int64Range(1, 1<<40).Draw(t, "first user"),
		RepeatPermille:   repeat,
		ConflictPermille: rapid.Uint32Range(0, repeat).Draw(t, "conflict"),
		SameUserPermille: rapid.Uint32Range(0, 200).Draw(t, "same user"),
	}
}

func TestPickIsPureAndReferencesPointToEarlierFreshRequests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorkload(t)
		n := rapid.Uint64Range(0, 1<<22).Draw(t, "n")
		p, again := w.Pick(n), w
		if q := again.Pick(n); q != p {
			t.Fatalf("Pick(%d) is %+v, then %+v", n, p, q)
		}
		own, of := w.FirstUser+int64(n), uint64(p.Ordinal)
		switch p.Kind {
		case KindFresh:
			if p.User != own || of != n {
				t.Fatalf("fresh request %d: %+v", n, p)
			}
			return
		case KindRepeat: // the same user's same request
			if of >= n || p.User != w.FirstUser+int64(of) {
				t.Fatalf("repeat %d: %+v", n, p)
			}
		case KindConflict: // another user's request id
			if of >= n || p.User != own {
				t.Fatalf("conflict %d: %+v", n, p)
			}
		case KindSameUser: // a known user's new request id
			of = uint64(p.User - w.FirstUser)
			if of >= n || uint64(p.Ordinal) != n {
				t.Fatalf("same user %d: %+v", n, p)
			}
		}
		if q := w.Pick(of); q.Kind != KindFresh {
			t.Fatalf("request %d (%+v) refers to request %d, which is %+v", n, p, of, q)
		}
	})
}

func TestRequestIDsAreEqualExactlyWhenOrdinalsAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorkload(t)
		a, b := rapid.Uint32().Draw(t, "a"), rapid.Uint32().Draw(t, "b")
		if (w.RequestID(a) == w.RequestID(b)) != (a == b) {
			t.Fatalf("%d and %d: %s, %s", a, b, w.RequestID(a), w.RequestID(b))
		}
		if got, ok := w.Ordinal(w.RequestID(a)); !ok || got != a {
			t.Fatalf("Ordinal(%s) is %d, %v", w.RequestID(a), got, ok)
		}
	})
}

func TestOrdinalRefusesRequestIDsOfNobody(t *testing.T) {
	w := Workload{Seed: 7}
	for _, id := range []string{"", "r", "r7", "r7-", "r8-1", "7-1", "r7-01", "r7-+1", "r7--1", "r7-4294967296", "r7-1x", "rr7-1"} {
		if n, ok := w.Ordinal(id); ok {
			t.Errorf("Ordinal(%q) is %d", id, n)
		}
	}
}

func TestUsersOfACrowdSendTheirRequestsInARow(t *testing.T) {
	w := Workload{Seed: 3, FirstUser: 100, RepeatPermille: 500, RequestsPerUser: 50}
	requests, ids := map[int64]int{}, map[uint32]bool{}
	for n := range uint64(1000) {
		p := w.Pick(n)
		if (p.Kind == KindFresh) != (requests[p.User] == 0) || ids[p.Ordinal] {
			t.Errorf("request %d: %+v", n, p)
		}
		requests[p.User]++
		ids[p.Ordinal] = true
	}
	for user, n := range requests {
		if n != 50 || len(requests) != 20 || (user-100)%50 != 0 {
			t.Errorf("user %d of %d: %d requests", user, len(requests), n)
		}
	}
}

func TestSharesAreNearTheirPermilles(t *testing.T) {
	const total = 400_000
	w := Workload{Seed: 3, FirstUser: 1, RepeatPermille: 100, ConflictPermille: 5, SameUserPermille: 20}
	var got [4]int
	for n := range uint64(total) {
		got[w.Pick(n).Kind]++
	}
	// Five standard deviations of a binomial share, and the fresh-by-lack at the start.
	for kind, want := range map[Kind]float64{KindRepeat: 0.095, KindConflict: 0.005, KindSameUser: 0.02, KindFresh: 0.88} {
		if share := float64(got[kind]) / total; share < want-0.0026 || share > want+0.0026 {
			t.Errorf("kind %d: share %.4f, want about %.4f", kind, share, want)
		}
	}
}

func TestNearReferencesAreHalf(t *testing.T) {
	w := Workload{Seed: 9, FirstUser: 1, RepeatPermille: 500}
	near, all := 0, 0
	for n := uint64(1_000_000); n < 1_100_000; n++ {
		if p := w.Pick(n); p.Kind == KindRepeat {
			all++
			if n-uint64(p.Ordinal) <= NearWindow {
				near++
			}
		}
	}
	if share := float64(near) / float64(all); share < 0.48 || share > 0.52 {
		t.Errorf("near share %.3f of %d", share, all)
	}
}

func TestAppendRequestIDIsAValidRequestID(t *testing.T) {
	w := Workload{Seed: 1<<64 - 1}
	id := w.RequestID(1<<32 - 1)
	if len(id) > 64 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		t.Errorf("request id %q", id)
	}
}

func BenchmarkPick(b *testing.B) {
	w := Workload{Seed: 3, FirstUser: 1, RepeatPermille: 100, ConflictPermille: 5, SameUserPermille: 20}
	for n := uint64(0); b.Loop(); n++ {
		w.Pick(n)
	}
}
