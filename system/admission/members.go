package admission

import "sync/atomic"

// memberSet is a set of positive user ids that grows and never shrinks:
// open addressing over atomic words. One writer; any number of readers, each
// of one lock-free look-up. Zero is an empty slot.
type memberSet struct {
	table atomic.Pointer[[]atomic.Int64]
	size  int // writer's
}

const memberSetMin = 1 << 10

func newMemberSet() *memberSet {
	m := &memberSet{}
	t := make([]atomic.Int64, memberSetMin)
	m.table.Store(&t)
	return m
}

// has says whether user was added before the call began. Safe for
// concurrent use.
func (m *memberSet) has(user int64) bool {
	t := *m.table.Load()
	mask := uint64(len(t) - 1)
	for i := slot(user) & mask; ; i = (i + 1) & mask {
		switch t[i].Load() {
		case user:
			return true
		case 0:
			return false
		}
	}
}

// add adds user. Only one goroutine may add.
func (m *memberSet) add(user int64) {
	t := *m.table.Load()
	if 2*(m.size+1) > len(t) { // at most half full: look-ups stay short and always end
		bigger := make([]atomic.Int64, 2*len(t))
		for i := range t {
			if u := t[i].Load(); u != 0 {
				insert(bigger, u)
			}
		}
		m.table.Store(&bigger)
		t = bigger
	}
	if insert(t, user) {
		m.size++
	}
}

func insert(t []atomic.Int64, user int64) bool {
	mask := uint64(len(t) - 1)
	for i := slot(user) & mask; ; i = (i + 1) & mask {
		switch t[i].Load() {
		case user:
			return false
		case 0:
			t[i].Store(user)
			return true
		}
	}
}

// slot spreads ids that differ in their low bits only (Fibonacci hashing).
func slot(user int64) uint64 { return uint64(user) * 0x9e3779b97f4a7c15 >> 17 }
