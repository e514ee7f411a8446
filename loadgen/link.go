package loadgen

import "github.com/hotsku/hotsku/loadgen/wire"

// link is a connection slot as the sender sees it: a wire.Conn, or one that
// speaks through another client.
type link interface {
	// Of the sender alone; see wire.Conn.
	Room() int
	Offer(n int, f wire.Filler)
	Flush(f wire.Filler) bool
	Reclaim(dst []wire.Request) []wire.Request

	// Of anyone.
	Sweep(now int64)
	Outstanding() int
	Up() bool
	DialError() error
	Stats() wire.Stats
	Close()
}

var (
	_ link = (*wire.Conn)(nil)
	_ link = (*fastLink)(nil)
)

// Client says what speaks HTTP.
type Client string

// Clients.
const (
	// ClientWire is the package's own: many requests in flight on a connection,
	// none sent twice.
	ClientWire Client = "wire"
	// ClientFast is fasthttp's, one request in flight on a connection, for
	// comparison. It cannot tell whether anything was written: a request that
	// finds no connection counts as failed.
	ClientFast Client = "fasthttp"
)
