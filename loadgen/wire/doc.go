// Package wire holds the generator's connections: keep-alive HTTP/1.1 with a
// bounded number of requests in flight on each, answered in order.
//
// A connection has two users. The sender, one goroutine for many connections,
// appends whole requests and writes what is pending without ever blocking; and
// one reader, a [Poller] for many connections, or a goroutine of its own with
// TLS. Besides, each connection has a goroutine that dials, and dials again
// after a loss. Requests are never
// sent twice: one of which any byte was written ends exactly once, at the
// [Sink]; one of which none was goes back to the sender.
//
// Nothing is allocated per request. The package knows neither what is sent
// nor what answers mean, and imports nothing of the generator.
package wire
