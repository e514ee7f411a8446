package rundir

import (
	"strconv"
	"strings"
)

// Workload says which user sends which request id as request n: a pure
// function of (seed, n), so that generator and verifier agree without a list.
//
// Most requests are fresh: a new user with a new request id. A share repeats
// the request id of an earlier fresh one (same user: a client's retry), a
// small part of those with another user (an idempotency conflict), and a
// small share has the user of an earlier fresh request try again under a new
// request id. Half of the earlier requests referred to are near (the last
// NearWindow), half anywhere before.
type Workload struct {
	Seed      uint64 `json:"seed"`
	FirstUser int64  `json:"first_user"` // user ids are FirstUser + ordinal
	// Shares of all requests, in thousandths.
	RepeatPermille   uint32 `json:"repeat_permille"`    // repeated request ids, conflicts included
	ConflictPermille uint32 `json:"conflict_permille"`  // of them, with another user
	SameUserPermille uint32 `json:"same_user_permille"` // known user, new request id
	// RequestsPerUser, if set, replaces the shares: each user sends so many
	// requests in a row, each under an id of its own.
	RequestsPerUser uint32 `json:"requests_per_user,omitempty"`
}

// NearWindow is how far back a near reference reaches, in requests.
const NearWindow = 2000

// Kind is what a request is in the workload.
type Kind uint8

// The kinds.
const (
	KindFresh    Kind = iota // new user, new request id
	KindRepeat               // an earlier request id by the same user
	KindConflict             // an earlier request id by another user
	KindSameUser             // an earlier user under a new request id
)

// Pick is request n: its user and the ordinal of its request id. Two
// requests have the same request id exactly if their ordinals are equal.
type Pick struct {
	Kind    Kind
	User    int64
	Ordinal uint32
}

// Pick returns request n. O(1), no allocation, safe for concurrent use.
func (w *Workload) Pick(n uint64) Pick {
	fresh := Pick{KindFresh, w.FirstUser + int64(n), uint32(n)}
	if each := uint64(w.RequestsPerUser); each > 0 {
		if first := n - n%each; first < n {
			return Pick{KindSameUser, w.FirstUser + int64(first), uint32(n)}
		}
		return fresh
	}
	kind := w.kind(n)
	if kind == KindFresh {
		return fresh
	}
	of, ok := w.earlierFresh(n)
	if !ok {
		return fresh
	}
	switch kind {
	case KindRepeat:
		return Pick{KindRepeat, w.FirstUser + int64(of), uint32(of)}
	case KindConflict:
		return Pick{KindConflict, w.FirstUser + int64(n), uint32(of)}
	default:
		return Pick{KindSameUser, w.FirstUser + int64(of), uint32(n)}
	}
}

// AppendRequestID appends the request id of an ordinal: "r", the seed in
// base 36, "-", the ordinal.
func (w *Workload) AppendRequestID(dst []byte, ordinal uint32) []byte {
	dst = append(dst, 'r')
	dst = strconv.AppendUint(dst, w.Seed, 36)
	dst = append(dst, '-')
	return strconv.AppendUint(dst, uint64(ordinal), 10)
}

// RequestID is AppendRequestID as a string.
func (w *Workload) RequestID(ordinal uint32) string {
	return string(w.AppendRequestID(nil, ordinal))
}

// Ordinal is the inverse of RequestID; ok is false for a request id that is
// not of this workload.
func (w *Workload) Ordinal(requestID string) (ordinal uint32, ok bool) {
	seed, number, found := strings.Cut(strings.TrimPrefix(requestID, "r"), "-")
	if !found || seed != strconv.FormatUint(w.Seed, 36) {
		return 0, false
	}
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil || w.RequestID(uint32(n)) != requestID {
		return 0, false
	}
	return uint32(n), true
}

func (w *Workload) kind(n uint64) Kind {
	roll := uint32(mix(w.Seed, n) % 1000)
	switch {
	case roll < w.ConflictPermille:
		return KindConflict
	case roll < w.RepeatPermille:
		return KindRepeat
	case roll < w.RepeatPermille+w.SameUserPermille:
		return KindSameUser
	}
	return KindFresh
}

// earlierFresh finds a fresh request before n: a few draws, since most
// requests are fresh; none found (n is near 0) makes n fresh itself.
func (w *Workload) earlierFresh(n uint64) (uint64, bool) {
	if n == 0 {
		return 0, false
	}
	for try := uint64(1); try <= 8; try++ {
		h := mix(w.Seed+try, n)
		span := n
		if h&1 == 0 && span > NearWindow {
			span = NearWindow
		}
		of := n - 1 - (h>>1)%span
		if w.kind(of) == KindFresh {
			return of, true
		}
	}
	return 0, false
}

// mix is splitmix64's finaliser over seed and n (Steele, Lea, Flood 2014).
func mix(seed, n uint64) uint64 {
	z := seed*0x9e3779b97f4a7c15 + n + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
