package admission

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// The set agrees with a map, whatever the ids look like.
func TestMembersAgreeWithAMap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		// Few ids collide in a map's sense only; strides and high bits collide
		// in the table's.
		id := rapid.OneOf(rapid.Int64Range(1, 50), rapid.Int64Min(1),
			rapid.Map(rapid.Int64Range(1, 1<<20), func(n int64) int64 { return n << 40 }))
		added := rapid.SliceOfN(id, 0, 3*memberSetMin).Draw(rt, "added")
		asked := rapid.SliceOfN(id, 0, 100).Draw(rt, "asked")
		m, want := newMemberSet(), map[int64]bool{}
		for _, u := range added {
			m.add(u)
			want[u] = true
		}
		if m.size != len(want) {
			rt.Fatalf("size is %d, want %d", m.size, len(want))
		}
		for _, u := range append(asked, added...) {
			if m.has(u) != want[u] {
				rt.Fatalf("has(%d) is %v", u, !want[u])
			}
		}
	})
}

// Readers beside the writer: whoever was added before a look-up began is
// found by it, through every growth of the table.
func TestMembersAreReadWhileTheyGrow(t *testing.T) {
	const users = 20 * memberSetMin
	m := newMemberSet()
	user := func(i int64) int64 { return i*7_919 + 1 }
	var added atomic.Int64 // users 0 … added-1 are in
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for r := range int64(4) {
		readers.Go(func() {
			for i := r; ; i += 3 {
				select {
				case <-stop:
					return
				default:
				}
				n := added.Load()
				if n > 0 && !m.has(user(i%n)) {
					t.Errorf("user %d of %d is not found", i%n, n)
					return
				}
				if m.has(math.MaxInt64 - i) {
					t.Error("a stranger is found")
					return
				}
			}
		})
	}
	for i := range int64(users) {
		m.add(user(i))
		added.Store(i + 1)
	}
	close(stop)
	readers.Wait()
	if m.size != users {
		t.Errorf("size is %d, want %d", m.size, users)
	}
}

func BenchmarkMember(b *testing.B) {
	m := newMemberSet()
	for u := range int64(10_000) {
		m.add(u + 1)
	}
	for i := int64(1); b.Loop(); i++ {
		m.has(i)
	}
}
