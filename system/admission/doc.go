// Package admission is the funnel in front of Redis: it turns requests away
// where that is cheapest (specification 7.4, 10.1). Its sold-out gate knows
// the sale from the change log and refuses in the process, without Redis.
//
// Authoritative store: none of its own; Redis is asked whenever the gate's
// knowledge is older than GateTrust.
//
// Before it stand the limits of a process, user, address and device: token
// buckets in memory fixed at the start, each process counting for itself.
//
// Imports allowed: system/seckill, system/reservation.
package admission
