// Package submit takes admitted requests through the synchronous path
// (specification 7.2): reserve in Redis, send to the broker, answer. It
// touches Redis and RocketMQ only.
//
// Requests wait in one bounded queue and are judged in batches; created
// reservations wait in another and are sent in batches. A request that waits
// too long before its batch was dispatched is turned away unjudged
// (RATE_LIMITED, nothing changed); after dispatch a failure is unknown
// (UNAVAILABLE; the same request_id will tell). Once a reservation exists
// nothing takes it back here: what is not confirmed in time is answered
// QUEUED_PENDING_MESSAGE, and the scanner owns it.
//
// While the broker's breaker is open or a valve is closed (package valve)
// requests are refused as UNAVAILABLE before anything is reserved, and
// reservations still to be sent are left to the scanner.
//
// Imports allowed: system/seckill, system/reservation.
package submit
