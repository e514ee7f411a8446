package seckill

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// Prefixes of the ids, so that a reader of a log knows what an id names.
const (
	ReservationIDPrefix = "resv_"
	MessageIDPrefix     = "msg_"
	OrderIDPrefix       = "ord_"
	OperationIDPrefix   = "cmp_"
	EndIDPrefix         = "end_"
)

// IDGenerator makes reservation and order ids. They are made before the
// script runs (R7.7.1) so that a crash after it loses nothing. Safe for
// concurrent use.
type IDGenerator struct {
	mu      sync.Mutex
	now     func() time.Time
	entropy *ulid.MonotonicEntropy
}

// NewIDGenerator returns a generator over the given clock and 32-byte seed.
// Two processes must not share a seed: give each its own.
func NewIDGenerator(now func() time.Time, seed [32]byte) *IDGenerator {
	var source io.Reader = rand.NewChaCha8(seed)
	return &IDGenerator{now: now, entropy: ulid.Monotonic(source, 1<<32)}
}

// NewReservationID returns a new "resv_" id; ids of one generator ascend.
func (g *IDGenerator) NewReservationID() string { return ReservationIDPrefix + g.next() }

// NewOrderID returns a new "ord_" id.
func (g *IDGenerator) NewOrderID() string { return OrderIDPrefix + g.next() }

func (g *IDGenerator) next() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	// Time is read under the lock: monotonic entropy needs non-descending
	// milliseconds to keep ids ascending.
	id, err := ulid.New(ulid.Timestamp(g.now()), g.entropy)
	if err != nil {
		// Only an overflow of 80 bits within one millisecond, or a year
		// beyond 10889, gets here: the process cannot go on naming things.
		panic(fmt.Sprintf("seckill: make id: %v", err))
	}
	return id.String()
}

// MessageIDOf returns the business message id of a reservation. There is
// exactly one, a function of the reservation, so that no resend can invent
// another (R7.7.3, R8.3.2).
func MessageIDOf(reservationID string) string {
	return MessageIDPrefix + strings.TrimPrefix(reservationID, ReservationIDPrefix)
}

// OperationIDOf returns the operation id under which the compensation of a
// reservation is applied once (invariant I9).
func OperationIDOf(reservationID string) string {
	return OperationIDPrefix + strings.TrimPrefix(reservationID, ReservationIDPrefix)
}

// EndIDOf returns the inbox id under which the order of a reservation is
// paid, cancelled or expired: whichever comes first.
func EndIDOf(reservationID string) string {
	return EndIDPrefix + strings.TrimPrefix(reservationID, ReservationIDPrefix)
}

// ValidOrderID says whether id has the shape of an order id.
func ValidOrderID(id string) bool {
	ulid, ok := strings.CutPrefix(id, OrderIDPrefix)
	return ok && ValidReservationID(ReservationIDPrefix+ulid)
}

// ReservationTag is a reservation id's 16 bytes, as kept in history records.
// ok is false if id is no reservation id in its canonical (upper-case) form.
func ReservationTag(id []byte) (tag [16]byte, ok bool) {
	if len(id) != len(ReservationIDPrefix)+ulid.EncodedSize || string(id[:len(ReservationIDPrefix)]) != ReservationIDPrefix {
		return tag, false
	}
	var u ulid.ULID
	if err := u.UnmarshalText(id[len(ReservationIDPrefix):]); err != nil {
		return tag, false
	}
	// The codec reads lower case and what is no digit; one tag must not have
	// two ids.
	var canonical [ulid.EncodedSize]byte
	if err := u.MarshalTextTo(canonical[:]); err != nil || string(canonical[:]) != string(id[len(ReservationIDPrefix):]) {
		return tag, false
	}
	return u, true
}

// ReservationIDOfTag is the inverse of ReservationTag.
func ReservationIDOfTag(tag [16]byte) string {
	return ReservationIDPrefix + ulid.ULID(tag).String()
}

// ValidReservationID says whether id has the shape of a reservation id.
func ValidReservationID(id string) bool {
	_, ok := ReservationTag([]byte(id))
	return ok
}
