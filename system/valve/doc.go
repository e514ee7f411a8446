// Package valve stops new reservations while what comes after them cannot
// take them (specification 7.11, architecture.md section 5). What was reserved
// before stays where it is: with the scanner, the broker, the consumers.
//
// A Breaker is one access process's own knowledge of the broker: it opens when
// sends keep failing for longer than a jitter lasts, and closes at the first
// confirmation.
//
// A Watcher knows what an access process cannot see by itself: how many create
// messages wait, how old the oldest is, how old the oldest reservation without
// a confirmed message is, and for how long the database has been away. A
// Publisher beside the scanner measures them and posts them to Redis; every
// access process reads them there. A figure over its limit has closed every
// watcher within SpreadMax of being measurable.
//
// Nobody publishing is no proof of health. The figures may be missing for
// Limits.Stale, which is what a rolling restart of the scanners takes; then
// the watcher closes, for nobody knows any more whether what is reserved
// becomes an order (R16.11). Redis itself not answering closes it at once.
//
// Authoritative store: Redis, for the figures only; they decide nothing about
// any reservation.
//
// Imports allowed: system/seckill, system/reservation.
package valve
