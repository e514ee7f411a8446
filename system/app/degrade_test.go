package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

// sale is a world whose users buy one after the other.
type sale struct {
	*world
	user     int64            // the last who asked
	accepted map[int64]string // reservation by user
	codes    map[seckill.Code]int
}

// ask sends the next user's request.
func (s *sale) next() seckill.Answer {
	s.t.Helper()
	s.user++
	return s.again(s.user)
}

// again sends a user's request, maybe once more.
func (s *sale) again(user int64) seckill.Answer {
	s.t.Helper()
	_, a := s.buy(user, requestOf(user))
	s.codes[a.Code]++
	switch {
	case a.Code.Accepted():
		if first := s.accepted[user]; first != "" && first != a.ReservationID {
			s.t.Errorf("user %d was told reservation %s, then %s", user, first, a.ReservationID)
		}
		s.accepted[user] = a.ReservationID
	case a.Code == seckill.CodeRateLimited, a.Code == seckill.CodeUnavailable:
	default:
		s.t.Errorf("user %d was answered %+v", user, a)
	}
	return a
}

// until sends requests until one is answered so.
func (s *sale) until(what string, limit time.Duration, holds func(seckill.Answer) bool) {
	s.t.Helper()
	began := time.Now()
	eventually(s.t, what, limit, func() bool { return holds(s.next()) })
	s.t.Logf("%s: after %v, codes so far %v", what, time.Since(began).Round(time.Millisecond), s.codes)
}

func queued(a seckill.Answer) bool { return a.Code == seckill.CodeQueued }

func refusedFor(reason string) func(seckill.Answer) bool {
	return func(a seckill.Answer) bool { return a.Code == seckill.CodeUnavailable && a.Reason == reason }
}

// refuses checks that nobody gets in now, at most some who try.
func (s *sale) refuses(reason string, probes int) {
	s.t.Helper()
	in := 0
	for range 20 {
		switch a := s.next(); {
		case a.Code.Accepted():
			in++
		case !strings.HasPrefix(a.Reason, reason):
			s.t.Errorf("refused with %+v, want reason %q", a, reason)
		}
	}
	if in > probes {
		s.t.Errorf("%d of 20 got in while closed, want at most %d", in, probes)
	}
}

// R7.11.1 R7.11.2 R7.11.3 R7.11.4 R7.11.5 R16.11 R11.2 R11.4 R11.5 R11.7: each of the three stores dies under a sale,
// and comes back. What depends on it stops in the declared time, with its
// reason and never as SOLD_OUT; what does not goes on; and in the end every
// user who was accepted has his order, one.
func TestEachStoreDiesAndComesBack(t *testing.T) { // R11.2, R11.7
	stores := ownServers(t)
	const stock = 5000
	w := setup(t, stock, stock)
	w.cfg.Valves.Limits.DatabaseDown = 3 * time.Second
	w.cfg.Scanner.Backoff.Max = 2 * time.Second
	roles := map[app.Role]*process{}
	for _, r := range []app.Role{app.RoleConsumer, app.RoleScanner, app.RoleOutbox, app.RoleAccess} {
		roles[r] = w.start(r)
	}
	access := roles[app.RoleAccess]
	w.access = "http://" + access.Listen
	s := &sale{world: w, accepted: map[int64]string{}, codes: map[seckill.Code]int{}}
	s.until("the sale is open", 30*time.Second, queued)

	// R7.11.1: without Redis nobody gets in, at once; after a while without
	// even asking it.
	stores.kill("redis")
	s.refuses(seckill.ReasonRedis, 0)
	s.until("Redis is known to be down", 20*time.Second, refusedFor(seckill.ReasonRedis))
	stores.restart()
	s.until("Redis is back", 30*time.Second, queued)

	// R7.11.2: for a moment reservations are made and pending. R7.11.3: then
	// the breaker opens, and a few try the broker from time to time.
	stores.kill("broker")
	before := s.codes[seckill.CodeQueuedPending]
	s.until("the breaker is open", 30*time.Second, refusedFor(seckill.ReasonBrokerBreaker))
	if s.codes[seckill.CodeQueuedPending] == before {
		t.Error("nobody was pending before the breaker opened")
	}
	began := time.Now()
	s.refuses(seckill.ReasonBrokerBreaker, w.cfg.Breaker.Probes*(2+int(time.Since(began)/w.cfg.Breaker.OpenFor)))
	if access.metric("broker_breaker_opened_total", "") < 1 || access.metric("seckill_breaker_refused_total", "") < 1 {
		t.Error("the breaker's metrics do not show it")
	}
	stores.restart()
	s.until("the broker is back", 60*time.Second, queued)
	eventually(t, "the scanner has brought home what was pending", 60*time.Second, func() bool {
		n, err := w.redis.PendingCount(t.Context(), w.sku.ActivityID, w.sku.SKUID)
		return err == nil && n == 0
	})
	if roles[app.RoleScanner].metric("scanner_resent_total", "") < 1 {
		t.Error("the scanner resent nothing")
	}

	// R7.11.4: without PostgreSQL reservations go on for a while. R7.11.5:
	// then they stop, and go on when it is back.
	stores.kill("postgres")
	before = s.codes[seckill.CodeQueued]
	s.until("the database is known to be down", 30*time.Second, refusedFor(seckill.ReasonOrderLag))
	if s.codes[seckill.CodeQueued] == before {
		t.Error("nobody got in while the database was down for a moment")
	}
	s.refuses(seckill.ReasonOrderLag, 0)
	if access.metric("valve_closed", `signal="database_down"`) != 1 {
		t.Error("the valve's metric does not show it")
	}
	stores.restart()
	s.until("the database is back", 60*time.Second, queued)

	// Nobody who was accepted is forgotten, not even those who were told that
	// it is unknown.
	for user := int64(1); user <= s.user; user++ {
		if s.accepted[user] == "" {
			eventually(t, fmt.Sprintf("user %d is told", user), 30*time.Second, func() bool { return s.again(user).Code.Accepted() })
		}
	}
	pool := systest.Pool(t, postgres.Config{URL: w.cfg.Postgres})
	eventually(t, "every reservation is an order", 60*time.Second, func() bool {
		var n int
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM orders WHERE status = 'CREATED'`).Scan(&n); err != nil {
			return false
		}
		return n == len(s.accepted)
	})
	if n := s.codes[seckill.CodeSoldOut]; n > 0 {
		t.Errorf("%d were told SOLD_OUT", n)
	}
	for _, r := range []app.Role{app.RoleAccess, app.RoleScanner, app.RoleConsumer, app.RoleOutbox} {
		roles[r].drain()
	}
}

// R7.11.5 R12.3 R11.12: without consumers messages grow old, without scanners
// nobody knows: both stop reservations, and both let them in again when they
// are back.
func TestValvesFollowConsumersAndScanners(t *testing.T) {
	const stock = 5000
	w := setup(t, stock, stock)
	w.cfg.Valves.Limits.OldestMessage = 2 * time.Second
	w.cfg.Valves.Limits.Stale = 3 * time.Second
	scanner, access := w.start(app.RoleScanner), w.start(app.RoleAccess)
	w.access = "http://" + access.Listen
	s := &sale{world: w, accepted: map[int64]string{}, codes: map[seckill.Code]int{}}
	over := func(signal string) bool { return access.metric("valve_closed", fmt.Sprintf("signal=%q", signal)) == 1 }

	s.until("messages nobody consumes are too old", 30*time.Second, refusedFor(seckill.ReasonOrderLag))
	if !over("oldest_message_age") || scanner.metric("oldest_message_age", "") < 2 || scanner.metric("consumer_lag", "") < 1 {
		t.Error("the metrics do not show it")
	}
	w.start(app.RoleConsumer)
	s.until("they are consumed", 30*time.Second, queued)

	scanner.killed()
	s.until("nobody knows any more", 30*time.Second, refusedFor(seckill.ReasonOrderLagUnknown))
	if !over("oldest_pending_age") || !over("consumer_lag") {
		t.Error("the metrics do not show it")
	}
	s.refuses(seckill.ReasonOrderLagUnknown, 0)
	w.start(app.RoleScanner)
	s.until("a scanner tells", 30*time.Second, queued)
}
