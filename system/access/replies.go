package access

import (
	"sync"

	"github.com/hotsku/hotsku/system/seckill"
)

// replies is a connection's ordered reply queue. Answers known at once go to
// out while nothing is parked; a parked request holds a slot, and everything
// after it waits behind it as the slot's tail. Safe for concurrent use.
type replies struct {
	mu      sync.Mutex
	changed sync.Cond // out was taken, a slot left, or the queue died

	out    []byte  // in order, ready to be written
	slots  []*slot // parked, oldest first
	behind int     // bytes in tails
	dead   bool    // the connection is gone: drop everything

	wake chan struct{} // for the writer: out has something, capacity 1
}

// slot is one parked request and what was answered after it.
type slot struct {
	q     *replies
	stats *Stats
	last  bool
	done  bool
	head  []byte // the answer, once done
	tail  []byte
}

// Limits of what a connection may hold; above them its reader waits.
const (
	parkedMax  = 4096
	waitingMax = 1 << 20 // bytes
)

func newReplies() *replies {
	q := &replies{wake: make(chan struct{}, 1)}
	q.changed.L = &q.mu
	return q
}

// answer appends an answer behind all requests before it.
func (q *replies) answer(a *seckill.Answer, last bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.slots); n > 0 {
		s := q.slots[n-1]
		before := len(s.tail)
		s.tail = appendResponse(s.tail, a, last)
		q.behind += len(s.tail) - before
		return
	}
	q.out = appendResponse(q.out, a, last)
}

// park makes the next request's slot: its answer comes by slot.Reply.
func (q *replies) park(stats *Stats, last bool) *slot {
	s := &slot{q: q, stats: stats, last: last}
	q.mu.Lock()
	q.slots = append(q.slots, s)
	q.mu.Unlock()
	return s
}

// Reply gives a parked request its answer and lets out what waited behind
// it. It does not block.
func (s *slot) Reply(a *seckill.Answer) {
	s.stats.Answers[a.Code].Add(1)
	q := s.q
	q.mu.Lock()
	defer q.mu.Unlock()
	s.head = appendResponse(nil, a, s.last)
	s.done = true
	freed := 0
	for freed < len(q.slots) && q.slots[freed].done {
		head := q.slots[freed]
		q.out = append(append(q.out, head.head...), head.tail...)
		q.behind -= len(head.tail)
		q.slots[freed] = nil
		freed++
	}
	if freed == 0 {
		return
	}
	q.slots = append(q.slots[:0], q.slots[freed:]...)
	q.changed.Broadcast()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// waitForRoom blocks while the connection holds too much. It returns false
// when the connection is gone.
func (q *replies) waitForRoom() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.dead && (len(q.slots) >= parkedMax || len(q.out)+q.behind >= waitingMax) {
		q.changed.Wait()
	}
	return !q.dead
}

// waitForAll blocks until every parked request was answered and everything
// was taken, or the connection is gone.
func (q *replies) waitForAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.dead && (len(q.slots) > 0 || len(q.out) > 0) {
		q.changed.Wait()
	}
}

// take swaps the ready bytes for an empty buffer.
func (q *replies) take(empty []byte) []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	ready := q.out
	q.out = empty[:0]
	if len(ready) > 0 {
		q.changed.Broadcast()
	}
	return ready
}

// kill drops everything and wakes all who wait.
func (q *replies) kill() {
	q.mu.Lock()
	q.dead = true
	q.changed.Broadcast()
	q.mu.Unlock()
}
