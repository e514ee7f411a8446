package reconcile

import (
	"fmt"
	"time"

	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// decision is how PostgreSQL ended a reservation.
type decision struct {
	status      seckill.ReservationStatus
	returnStock bool
	age         time.Duration
}

// place is where a reservation that Redis made is: exactly one.
type place int

const (
	placeOrdered place = iota
	placeCompensated
	placeCompensationPending
	placeInProcess // undecided, and somebody looks after it
	placeSetAside
	placeStuck        // undecided, not known to be sent, and overdue
	placeLost         // undecided, though the broker confirmed it long ago
	placeVanished     // undecided, and Redis lost its record: nobody can send it
	placeContradicted // ended in Redis as PostgreSQL did not end it
	places            // how many there are
)

// limits are what judging needs beside the two records.
type limits struct {
	Config
	now time.Time // Redis' clock
	// backlog is the age of the oldest message the consumers have not taken,
	// 0 if there is none; known says that it is.
	backlog time.Duration
	known   bool
}

// finding is where a reservation is, whether its decision is long overdue in
// Redis, and what a person should read of it ("" for nothing).
type finding struct {
	place     place
	unapplied bool
	words     string
}

// judge says where a reservation is. r is nil if Redis' change log names it
// and its record is gone, d if PostgreSQL has not decided it. r must have been
// read before d: then whatever Redis shows, PostgreSQL had decided.
func judge(r *reservation.Reservation, d *decision, l *limits) finding {
	switch {
	case r == nil && d == nil:
		return finding{place: placeVanished, words: "was made, is undecided, and its record in Redis is gone"}
	case r == nil:
		return finding{place: ended(d.status)}
	case d == nil:
		return undecided(r, l)
	}
	f := finding{place: ended(d.status)}
	compensated := !r.CompensatedAt.IsZero()
	switch f.place {
	case placeCompensated:
		if !compensated {
			f.place = placeCompensationPending
			f.unapplied = d.age >= l.UnappliedAfter
		} else if r.Status != d.status || r.Returned != d.returnStock {
			return contradicted("was compensated in Redis as %s with return %t, and PostgreSQL ended it as %s with return %t",
				r.Status, r.Returned, d.status, d.returnStock)
		}
	default:
		if compensated {
			return contradicted("was compensated in Redis, and PostgreSQL ended it as %s", d.status)
		}
		f.unapplied = r.Status.Undecided() && d.age >= l.UnappliedAfter
		if !r.Status.Undecided() && r.Status != d.status && d.age >= l.UnappliedAfter {
			return contradicted("is %s in Redis, and PostgreSQL ended it as %s", r.Status, d.status)
		}
	}
	return f
}

// ended is where a decision puts a reservation, once it is applied.
func ended(s seckill.ReservationStatus) place {
	switch {
	case s == seckill.StatusSetAside:
		return placeSetAside
	case s.Compensated():
		return placeCompensated
	}
	return placeOrdered
}

func undecided(r *reservation.Reservation, l *limits) finding {
	age := l.now.Sub(r.ReservedAt)
	switch {
	case !r.Status.Undecided() || !r.CompensatedAt.IsZero():
		return contradicted("is %s in Redis, and PostgreSQL never decided it", r.Status)
	case r.Status == seckill.StatusPendingMessage:
		// A scanner that looks after it keeps moving its next retry on.
		if due := l.now.Sub(r.NextRetryAt); due >= l.StuckAfter && age >= l.StuckAfter {
			return finding{place: placeStuck, words: fmt.Sprintf("is unsent for %v and its resend overdue for %v", round(age), round(due))}
		}
	case age >= l.LostAfter && !(l.known && l.backlog >= age):
		return finding{place: placeLost, words: fmt.Sprintf("was confirmed by the broker and is undecided for %v", round(age))}
	}
	return finding{place: placeInProcess}
}

func contradicted(format string, args ...any) finding {
	return finding{place: placeContradicted, words: fmt.Sprintf(format, args...)}
}

func round(d time.Duration) time.Duration { return d.Round(time.Second / 10) }
