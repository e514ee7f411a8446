package admission

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math/bits"
	"net/netip"
	"sync/atomic"
	"time"
)

// Table is one limit for each of many keys, in memory fixed when it is made.
// It does not allocate and does not lock. A nil Table is no limit. Safe for
// concurrent use.
//
// A key's hash names a set of eight slots and a tag. A slot whose bucket is
// full again says no more than an empty one, so it is free for the next key:
// nothing is ever evicted that still counts, and only keys that were seen
// within the limit's refill time need a slot.
//
// Where it is not exact:
//   - Two keys of one set with the same tag (one in a million), and a key that
//     finds no free slot in its set, share a bucket: stricter.
//   - A key that leaves such a shared bucket for a slot of its own, or whose
//     first requests race each other into two slots, has one burst more, once.
type Table struct {
	pace
	seed  maphash.Seed
	slots []atomic.Uint64 // tag << timeBits | the tick, modulo 2^timeBits, at which the bucket is full
	mask  uint64          // of sets
}

const (
	slotsPerSet = 8 // a cache line
	timeBits    = 44
	timeMask    = 1<<timeBits - 1
	tick        = time.Microsecond
	skewMax     = int64(time.Minute / tick) // between the times two callers take for now

	// TableRateMax bounds a table's limit: above it a microsecond is too coarse.
	TableRateMax = 100_000
	// TableSlotsDefault is a mebibyte, and far more than are in use at once
	// with a limit that refills within seconds.
	TableSlotsDefault = 1 << 17
)

// NewTable returns a table of at least the given number of slots, or nil if
// the limit is off.
func NewTable(l Limit, slots int) (*Table, error) {
	if l.Off() {
		return nil, nil
	}
	if err := l.Validate(); err != nil {
		return nil, err
	}
	if l.PerSecond > TableRateMax {
		return nil, fmt.Errorf("limit %s: the rate for one key must be at most %d a second", l, TableRateMax)
	}
	if slots < 1 || slots > 1<<24 {
		return nil, fmt.Errorf("limit %s: %d slots, must be 1 to %d", l, slots, 1<<24)
	}
	sets := 1 << bits.Len(uint((slots-1)/slotsPerSet))
	return &Table{pace: paceOf(l, tick), seed: maphash.MakeSeed(), slots: make([]atomic.Uint64, sets*slotsPerSet), mask: uint64(sets - 1)}, nil
}

// TakeUser takes a token of a user's bucket; now and result are Bucket.Take's.
func (t *Table) TakeUser(user int64, now time.Duration) (retryAfter time.Duration) {
	if t == nil {
		return 0
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(user))
	return t.take(maphash.Bytes(t.seed, b[:]), now)
}

// TakeAddr takes a token of an address's bucket. An IPv6 client has a whole
// /64 to choose from, so that is what is limited.
func (t *Table) TakeAddr(addr netip.Addr, now time.Duration) (retryAfter time.Duration) {
	if t == nil {
		return 0
	}
	b := addr.Unmap().As16()
	if !addr.Unmap().Is4() {
		clear(b[8:])
	}
	return t.take(maphash.Bytes(t.seed, b[:]), now)
}

// TakeName takes a token of the bucket of whoever goes by that name.
func (t *Table) TakeName(name []byte, now time.Duration) (retryAfter time.Duration) {
	if t == nil {
		return 0
	}
	return t.take(maphash.Bytes(t.seed, name), now)
}

func (t *Table) take(hash uint64, now time.Duration) time.Duration {
	at := uint64(now / tick)
	tag := hash >> timeBits
	set := (hash & t.mask) * slotsPerSet
	slots := t.slots[set : set+slotsPerSet]
	for {
		slot, word, found := 0, uint64(0), false
		for i := range slots {
			w := slots[i].Load()
			if w>>timeBits == tag {
				slot, word, found = i, w, true
				break
			}
			if !found && t.wait(w, at) == 0 { // free: remembered while its own is looked for
				slot, word, found = i, w, true
			}
		}
		mark := tag
		if !found {
			slot = int(hash >> 32 % slotsPerSet)
			word = slots[slot].Load()
			mark = word >> timeBits // still its owner's
		}
		wait := t.wait(word, at)
		if wait > t.tolerance {
			return time.Duration(wait-t.tolerance) * tick
		}
		if slots[slot].CompareAndSwap(word, mark<<timeBits|(at+uint64(wait+t.interval))&timeMask) {
			return 0
		}
	}
}

// wait is how many ticks a bucket is from full. Times wrap around: what seems
// further away than a whole bucket is long past.
func (t *Table) wait(word, at uint64) int64 {
	ahead := int64((word-at)&timeMask<<(64-timeBits)) >> (64 - timeBits)
	if word == 0 || ahead <= 0 || ahead > t.tolerance+t.interval+skewMax {
		return 0
	}
	return ahead
}
