package access

import (
	"sync"
	"time"

	"github.com/hotsku/hotsku/system/seckill"
)

// replies is a connection's ordered reply queue. Answers known at once go to
// out while nothing is parked; a parked request holds a slot, and everything
// after it waits behind it as the slot's tail. Safe for concurrent use.
type replies struct {
	mu      sync.Mutex
	changed sync.Cond // out was taken, a slot left, or the queue died

	out    output  // in order, ready to be written
	slots  []*slot // parked, oldest first
	behind int     // bytes in tails
	dead   bool    // the connection is gone: drop everything

	wake chan struct{} // for the writer: out has something, capacity 1
}

// output is answers in their order, and what is to be counted when they are
// written.
type output struct {
	bytes []byte
	marks []mark
}

// mark is a number of answers with the same code to requests of one read.
type mark struct {
	code seckill.Code
	n    int64
	read time.Duration // when they were read
}

func (o *output) mark(code seckill.Code, read time.Duration) {
	if last := len(o.marks) - 1; last >= 0 && o.marks[last].code == code && o.marks[last].read == read {
		o.marks[last].n++
		return
	}
	o.marks = append(o.marks, mark{code, 1, read})
}

// slot is one parked request and what was answered after it.
type slot struct {
	q    *replies
	sku  *SKUStats
	read time.Duration
	last bool
	done bool
	head []byte // the answer, once done
	code seckill.Code
	tail output
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

// answer appends an answer behind all requests before it. read is when its
// request was read.
func (q *replies) answer(a *seckill.Answer, f framing, read time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.slots); n > 0 {
		tail := &q.slots[n-1].tail
		before := len(tail.bytes)
		tail.bytes = appendResponse(tail.bytes, a, f)
		tail.mark(a.Code, read)
		q.behind += len(tail.bytes) - before
		return
	}
	q.out.bytes = appendResponse(q.out.bytes, a, f)
	q.out.mark(a.Code, read)
}

// raw appends a whole response behind all requests before it.
func (q *replies) raw(response []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.slots); n > 0 {
		tail := &q.slots[n-1].tail
		tail.bytes = append(tail.bytes, response...)
		q.behind += len(response)
		return
	}
	q.out.bytes = append(q.out.bytes, response...)
}

// park makes the next request's slot: its answer comes by slot.Reply.
func (q *replies) park(sku *SKUStats, last bool, read time.Duration) *slot {
	s := &slot{q: q, sku: sku, last: last, read: read}
	q.mu.Lock()
	q.slots = append(q.slots, s)
	q.mu.Unlock()
	return s
}

// Reply gives a parked request its answer and lets out what waited behind
// it. It does not block.
func (s *slot) Reply(a *seckill.Answer) {
	s.sku.answered(a)
	q := s.q
	q.mu.Lock()
	defer q.mu.Unlock()
	s.head = appendResponse(nil, a, framing{last: s.last})
	s.code = a.Code
	s.done = true
	freed := 0
	for freed < len(q.slots) && q.slots[freed].done {
		head := q.slots[freed]
		q.out.bytes = append(append(q.out.bytes, head.head...), head.tail.bytes...)
		q.out.mark(head.code, head.read)
		q.out.marks = append(q.out.marks, head.tail.marks...)
		q.behind -= len(head.tail.bytes)
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
	for !q.dead && (len(q.slots) >= parkedMax || len(q.out.bytes)+q.behind >= waitingMax) {
		q.changed.Wait()
	}
	return !q.dead
}

// waitForAll blocks until every parked request was answered and everything
// was taken, or the connection is gone.
func (q *replies) waitForAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.dead && (len(q.slots) > 0 || len(q.out.bytes) > 0) {
		q.changed.Wait()
	}
}

// take swaps what is ready for an empty output.
func (q *replies) take(empty output) output {
	q.mu.Lock()
	defer q.mu.Unlock()
	ready := q.out
	q.out = output{empty.bytes[:0], empty.marks[:0]}
	if len(ready.bytes) > 0 {
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
