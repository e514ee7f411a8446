// Package orders is the user's window: what became of my request. It asks
// Redis first, which knows a reservation from its first moment, and then
// PostgreSQL, which decides; only the owner is told (R7.4.7).
//
// Not finding something proves nothing: a reservation may be on its way, or
// Redis may have forgotten it. So an unknown id is PROCESSING, and no answer
// invites a second purchase (R15.11), except after the activity has ended
// and conservation proves that no reservation is undecided anywhere.
package orders

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// Cache is what Redis knows. found is false, without an error, for what it
// does not know.
type Cache interface {
	LookupRequest(ctx context.Context, activityID, skuID int64, requestID string) (r reservation.Reservation, found bool, err error)
	LookupReservation(ctx context.Context, activityID, skuID int64, reservationID string) (r reservation.Reservation, found bool, err error)
	// Restore puts back what Redis lost of a decided reservation.
	Restore(ctx context.Context, d reservation.Decided) (restored int, err error)
	// Apply writes a decision where the projector has not yet.
	Apply(ctx context.Context, activityID, skuID int64, events []seckill.Event) (reservation.Applied, error)
	// Stock is the number of units that may still be reserved.
	Stock(ctx context.Context, activityID, skuID int64) (int64, error)
}

// Defaults of Config.
const (
	CacheTimeoutDefault  = 100 * time.Millisecond
	StoreTimeoutDefault  = 500 * time.Millisecond
	FallbackLimitDefault = 4
	FallbackWaitDefault  = 100 * time.Millisecond
	AskAfterDefault      = time.Second
	SettleAfterDefault   = 10 * time.Minute
	EndLimitDefault      = 4
	EndWaitDefault       = time.Second
)

// retryAfterMS is what a caller turned away by a limit is told, or one whose
// order could not be looked at.
const retryAfterMS = 500

// Config is what a Service works with. Zero values take the defaults where
// there are any.
type Config struct {
	Cache Cache
	Pool  *pgxpool.Pool
	// Ender pays and cancels orders.
	Ender Ender
	// EndLimit bounds how many orders are ended at once; a call that finds no
	// place within EndWait is RATE_LIMITED.
	EndLimit int
	EndWait  time.Duration
	// CacheTimeout and StoreTimeout bound one look into Redis and PostgreSQL.
	CacheTimeout, StoreTimeout time.Duration
	// FallbackLimit bounds how many queries ask PostgreSQL at once, so that
	// an outage of Redis does not become one of PostgreSQL (R7.11.6). One
	// that finds no place within FallbackWait is RATE_LIMITED.
	FallbackLimit int
	FallbackWait  time.Duration
	// AskAfter is the age from which a reservation still undecided in Redis
	// is looked up in PostgreSQL: its result may be late, or lost.
	AskAfter time.Duration
	// SettleAfter is how long an activity must have been closed before
	// anything may be NOT_ACCEPTED.
	SettleAfter time.Duration
	// Now is compared with reservation times; default time.Now.
	Now func() time.Time
	// Log takes a line for each failure of a store; default is to discard.
	Log *slog.Logger
}

// Stats counts where answers came from. Safe for concurrent use.
type Stats struct {
	CacheAnswers atomic.Int64 // decided by what Redis knew
	CacheFails   atomic.Int64
	Fallbacks    atomic.Int64 // looks into PostgreSQL
	StoreFails   atomic.Int64
	RateLimited  atomic.Int64
	Rebuilt      atomic.Int64 // keys put back into Redis, or decisions written there
	RebuildFails atomic.Int64
	EndFails     atomic.Int64 // payments and cancellations with unknown outcome
}

// Service answers queries. Safe for concurrent use.
type Service struct {
	cfg     Config
	stats   Stats
	places  chan struct{} // one for each query that may ask PostgreSQL
	ending  chan struct{} // one for each payment and cancellation under way
	settled sync.Map      // sku -> struct{}: proved once, true for ever
}

type sku struct{ activityID, skuID int64 }

// New checks the configuration and returns a Service.
func New(c Config) (*Service, error) {
	setDefault(&c.CacheTimeout, CacheTimeoutDefault)
	setDefault(&c.StoreTimeout, StoreTimeoutDefault)
	setDefault(&c.FallbackWait, FallbackWaitDefault)
	setDefault(&c.AskAfter, AskAfterDefault)
	setDefault(&c.SettleAfter, SettleAfterDefault)
	setDefault(&c.EndWait, EndWaitDefault)
	if c.EndLimit == 0 {
		c.EndLimit = EndLimitDefault
	}
	if c.FallbackLimit == 0 {
		c.FallbackLimit = FallbackLimitDefault
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.Cache == nil || c.Pool == nil || c.Ender == nil:
		return nil, errors.New("orders service: cache, pool and ender are required")
	case c.EndLimit < 1 || c.EndLimit > 1000:
		return nil, fmt.Errorf("orders service: end limit %d: must be 1 to 1000", c.EndLimit)
	case c.FallbackLimit < 1 || c.FallbackLimit > 1000:
		return nil, fmt.Errorf("orders service: fallback limit %d: must be 1 to 1000", c.FallbackLimit)
	case c.CacheTimeout < 0 || c.StoreTimeout < 0 || c.FallbackWait < 0 || c.AskAfter < 0 || c.SettleAfter < 0 || c.EndWait < 0:
		return nil, errors.New("orders service: a duration is negative")
	}
	return &Service{cfg: c, places: make(chan struct{}, c.FallbackLimit), ending: make(chan struct{}, c.EndLimit)}, nil
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

// Stats returns the counters, live.
func (s *Service) Stats() *Stats { return &s.stats }

// ByRequest says what became of the request with that id.
func (s *Service) ByRequest(ctx context.Context, activityID, skuID, userID int64, requestID string) seckill.Answer {
	a := s.reservation(ctx, sku{activityID, skuID}, userID,
		func(ctx context.Context) (reservation.Reservation, bool, error) {
			return s.cfg.Cache.LookupRequest(ctx, activityID, skuID, requestID)
		},
		func(ctx context.Context) (record, bool, error) {
			return s.read(ctx, byRequest, activityID, skuID, requestID, userID)
		})
	a.RequestID = requestID
	return a
}

// ByReservation says what became of the reservation with that id.
func (s *Service) ByReservation(ctx context.Context, activityID, skuID, userID int64, reservationID string) seckill.Answer {
	a := s.reservation(ctx, sku{activityID, skuID}, userID,
		func(ctx context.Context) (reservation.Reservation, bool, error) {
			return s.cfg.Cache.LookupReservation(ctx, activityID, skuID, reservationID)
		},
		func(ctx context.Context) (record, bool, error) {
			return s.read(ctx, byReservation, activityID, skuID, reservationID)
		})
	a.ReservationID = reservationID
	return a
}

// ByOrder says in what state the order with that id is: its status is the
// order's, not the reservation's. PostgreSQL alone knows orders by their id.
// activityID is the one the caller's token speaks for.
func (s *Service) ByOrder(ctx context.Context, activityID, userID int64, orderID string) seckill.Answer {
	unknown := seckill.Answer{Code: seckill.CodeProcessing, OrderID: orderID}
	if !enter(ctx, s.places, s.cfg.FallbackWait) {
		return s.rateLimited()
	}
	defer func() { <-s.places }()
	r, found, err := s.readOrder(ctx, orderID)
	switch {
	case err != nil, !found:
		return unknown
	case r.userID != userID || r.activityID != activityID:
		return forbidden()
	}
	return r.answer()
}

// reservation is the way of a query about a reservation.
func (s *Service) reservation(ctx context.Context, k sku, userID int64,
	cached func(context.Context) (reservation.Reservation, bool, error),
	stored func(context.Context) (record, bool, error),
) seckill.Answer {
	known, inCache, cacheErr := s.lookUp(ctx, cached)
	answer := seckill.Answer{Code: seckill.CodeProcessing}
	if inCache {
		if known.UserID != userID {
			return forbidden()
		}
		answer = fromCache(&known)
		if answer.Code == seckill.CodeFound || s.cfg.Now().Sub(known.ReservedAt) < s.cfg.AskAfter {
			s.stats.CacheAnswers.Add(1)
			return answer
		}
	}
	if !enter(ctx, s.places, s.cfg.FallbackWait) {
		if inCache { // true, if not the newest
			return answer
		}
		return s.rateLimited()
	}
	defer func() { <-s.places }()
	r, found, err := stored(ctx)
	if err == nil && !found && !inCache && cacheErr == nil && s.allDecided(ctx, k) {
		// Asked again, for its decision may have come between the two.
		if r, found, err = stored(ctx); err == nil && !found {
			return seckill.Answer{Code: seckill.CodeNotAccepted}
		}
	}
	switch {
	case err != nil, !found:
		return answer
	case r.userID != userID:
		return forbidden()
	}
	if cacheErr == nil {
		s.rebuild(ctx, k, &r, inCache)
	}
	return r.answer()
}

// lookUp asks Redis. An error is the same as not knowing, but noted.
func (s *Service) lookUp(ctx context.Context, cached func(context.Context) (reservation.Reservation, bool, error)) (reservation.Reservation, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CacheTimeout)
	defer cancel()
	r, found, err := cached(ctx)
	if err != nil {
		s.stats.CacheFails.Add(1)
		s.cfg.Log.Warn("orders: redis lookup failed", "error", err)
		return reservation.Reservation{}, false, err
	}
	return r, found, nil
}

// fromCache is PROCESSING while Redis has seen no end of the reservation. Of
// one that was compensated, the reason is the end it had come to.
func fromCache(r *reservation.Reservation) seckill.Answer {
	a := seckill.Answer{
		Code: seckill.CodeFound, RequestID: r.RequestID, ReservationID: r.ReservationID,
		Status: string(r.Status), OrderID: r.OrderID,
	}
	switch {
	case r.Status.Undecided():
		a.Code = seckill.CodeProcessing
	case !r.CompensatedAt.IsZero():
		a.Status, a.Reason = seckill.StatusCompensated, string(r.Status)
	}
	return a
}

func forbidden() seckill.Answer {
	return seckill.Answer{Code: seckill.CodeForbidden, Reason: "belongs to another user"}
}

func (s *Service) rateLimited() seckill.Answer {
	s.stats.RateLimited.Add(1)
	return seckill.Answer{Code: seckill.CodeRateLimited, RetryAfterMS: retryAfterMS}
}
