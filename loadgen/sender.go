package loadgen

import (
	"context"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/hotsku/hotsku/loadgen/hdr"
	"github.com/hotsku/hotsku/loadgen/pace"
	"github.com/hotsku/hotsku/loadgen/wire"
)

// A wake-up spreads what is due over about writesPerWake connections, so that
// one write carries several requests: chunkMin at least, if so many are due and
// the connection has room, and at most chunkMax. What a write and its read
// cost both sides is otherwise most of a request's price.
const (
	writesPerWake = 8
	chunkMin      = 8
	chunkMax      = 128
)

// sleepMax keeps the sender attentive to cancellation at low rates.
const sleepMax = 20 * time.Millisecond

// sender releases requests when they are due. It never blocks on a connection
// and never spins: between wake-ups it sleeps, for a tick where requests are
// close together, and then releases all that became due. Requests that find no
// room wait; the backlog is only a pair of numbers and what lost connections
// gave back.
type sender struct {
	schedule pace.Schedule
	cursor   pace.Cursor // at request next
	source   Source
	conns    []link
	tick     time.Duration
	now      func() int64
	sleep    func(time.Duration)
	start    int64         // of the run, on now
	deadline time.Duration // after which nothing more is written
	resolved func() uint64 // ends of written requests so far

	next     uint64         // first request never offered
	returned []wire.Request // offered, then given back unwritten
	turn     int            // connection to go on with

	lag         *hdrhistogram.Histogram
	sent        uint64
	lastSent    int64 // of the last request written, from the start
	backlogMax  uint64
	inFlightMax uint64
	strain      Strain
	full        time.Duration // how long something waited for room
	fullSince   time.Duration // when that began, or -1
	progress    *progress
}

var _ wire.Filler = (*sender)(nil)

// number is a request's number in the whole schedule, of which this one may be
// a shard.
func number(s pace.Schedule, n uint64) uint64 {
	if shard, ok := s.(pace.Shard); ok {
		return shard.Number(n)
	}
	return n
}

// run sends until everything is written, the deadline, or the end of ctx. It
// reports whether it was the latter.
func (s *sender) run(ctx context.Context) (interrupted bool) {
	woke := time.Duration(0)
	for {
		elapsed := time.Duration(s.now() - s.start)
		if ctx.Err() != nil {
			return true
		}
		if elapsed > s.deadline {
			return false
		}
		due := s.schedule.Due(elapsed)
		s.backlogMax = max(s.backlogMax, s.waiting(due))
		before := s.next
		idle := s.release(due)
		s.strain.Gap, woke = max(s.strain.Gap, elapsed-woke), elapsed
		s.strain.CatchUp = max(s.strain.CatchUp, s.next-before)
		s.watch(elapsed, due)
		if idle && s.next == s.schedule.Total() && len(s.returned) == 0 {
			return false
		}
		s.rest(elapsed, due, s.next-before, idle)
	}
}

// release offers what is due to the connections in turn, until nothing is left
// or none has room. It reports whether all that was offered has been written.
func (s *sender) release(due uint64) (idle bool) {
	idle = true
	for _, c := range s.conns {
		s.returned = c.Reclaim(s.returned)
		if !c.Flush(s) {
			idle = false
		}
	}
	waiting := s.waiting(due)
	chunk := min(max(waiting/writesPerWake, chunkMin), chunkMax)
	for full := 0; waiting > 0 && full < len(s.conns); {
		c := s.conns[s.turn]
		s.turn = (s.turn + 1) % len(s.conns)
		n := min(uint64(c.Room()), chunk, waiting)
		if n == 0 {
			full++
			continue
		}
		full = 0
		c.Offer(int(n), s)
		if waiting -= n; !c.Flush(s) {
			idle = false
		}
	}
	return idle
}

func (s *sender) waiting(due uint64) uint64 {
	return due - s.next + uint64(len(s.returned))
}

// rest sleeps until there is something to do. Few requests are awaited one by
// one: a wake-up that came late delays what was due then, and nothing after it.
// Of many, all that became due in a tick are released at once; the first of
// them after a pause is awaited all the same.
func (s *sender) rest(woke time.Duration, due, released uint64, idle bool) {
	until := woke + s.tick
	if idle && s.waiting(due) == 0 && due < s.schedule.Total() {
		if soon := s.schedule.Due(until) - due; released == 0 || soon < chunkMin {
			until = min(s.schedule.At(due), woke+sleepMax)
		}
	}
	if d := until - time.Duration(s.now()-s.start); d > 0 {
		s.sleep(d)
	}
}

// watch keeps the figures of a wake-up.
func (s *sender) watch(elapsed time.Duration, due uint64) {
	// Whatever was due and is still here found no connection with room.
	if s.fullSince >= 0 {
		s.full += elapsed - s.fullSince
	}
	s.fullSince = -1
	if s.waiting(due) > 0 {
		s.fullSince = elapsed
	}
	// resolved is read first: it never exceeds what was sent before.
	resolved := s.resolved()
	if s.sent > resolved {
		s.inFlightMax = max(s.inFlightMax, s.sent-resolved)
	}
	s.progress.publish(due, s.sent, s.waiting(due))
}

// Fill implements wire.Filler: returned requests first, they are older.
func (s *sender) Fill(dst []byte, r *wire.Request) []byte {
	if n := len(s.returned); n > 0 {
		*r = s.returned[n-1]
		s.returned = s.returned[:n-1]
	} else {
		r.N = number(s.schedule, s.next)
		r.Intended = s.start + int64(s.cursor.Next())
		s.next++
	}
	dst, r.Subject, r.Ordinal = s.source.Append(dst, r.N)
	return dst
}

// Sent implements wire.Filler.
func (s *sender) Sent(r *wire.Request) {
	s.sent++
	s.lastSent = r.Sent - s.start
	hdr.Observe(s.lag, r.Sent-r.Intended)
}
