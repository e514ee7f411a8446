package loadgen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/hotsku/hotsku/loadgen/pace"
)

// Defaults of Config. 32 connections with 2,048 requests in flight each hold
// what a server at 300,000 requests a second owes at a latency of 200 ms; less
// would turn the server's slowness into send lag.
const (
	ConnsDefault       = 32
	DepthDefault       = 2048
	TimeoutDefault     = 5 * time.Second
	CatchUpDefault     = 5 * time.Second
	GraceDefault       = 5 * time.Second
	TickDefault        = time.Millisecond
	DialTimeoutDefault = time.Second
	ConnectWaitDefault = 2 * time.Second
)

// Limits of Config.
const (
	ConnsMax = 10_000
	DepthMax = 1 << 16
)

// ErrConfig is in the chain of every error about a Config.
var ErrConfig = errors.New("load generator config")

// Source makes requests. A Source is used by one goroutine; see
// Config.NewSource.
type Source interface {
	// Append appends request n, whole: request line, headers and body of an
	// HTTP/1.1 request that keeps the connection alive and is not HEAD. It
	// returns on whose behalf it is sent and its ordinal: requests of equal
	// ordinal are repeats of one request id. It must describe the same request
	// whenever it is asked for the same n, and must not allocate if the run is
	// to be cheap. n is below the Total of the schedule, or of the whole one of
	// which the run offers a shard.
	Append(dst []byte, n uint64) (out []byte, subject uint64, ordinal uint32)
}

// Extractor boils an answer down to a code of the caller's own and a tag for
// the history. It is called from several goroutines and must not retain body.
type Extractor func(status int, body []byte) (code uint8, tag [16]byte)

// Clock is the generator's time; tests replace it.
type Clock interface {
	Now() time.Time // with a monotonic reading
	Sleep(time.Duration)
}

// Config says what to offer to whom. Zero values mean the defaults; Addrs,
// Schedule and NewSource are required.
type Config struct {
	// Addrs are the servers (host:port); connections are spread over them in
	// turn.
	Addrs []string

	// Schedule says how many requests are due when, such as pace.NewConstant.
	// The requests of a pace.Shard keep the numbers they have in the whole.
	Schedule pace.Schedule

	// NewSource makes a Source for a goroutine that sends.
	NewSource func() Source

	// Extract may be nil: every answer then has code 0.
	Extract Extractor

	// Accepted are the codes whose latency is also kept as one class apart.
	Accepted []uint8

	// Conns is the number of connections, Depth the number of requests in
	// flight on each, at most (1: no pipelining). When all are full, requests
	// wait, and their latency runs on.
	Conns, Depth int

	// ConnRamp is how long into the run connections are opened: the first is
	// there from the start, the others follow evenly. 0 opens all before the
	// run begins.
	ConnRamp time.Duration

	// TLS makes the connections TLS ones; nil means plain TCP.
	TLS *tls.Config

	// Client is what speaks HTTP; ClientFast needs Depth 1.
	Client Client

	// LocalPorts are the first and last local port to use (Linux 6.3 or later);
	// zero means the system's range.
	LocalPorts [2]uint16

	// Timeout is how long a written request may wait for its answer.
	Timeout time.Duration

	// CatchUp is how long after the schedule's end requests that were due and
	// are waiting may still be written; what is left then is dropped. Negative
	// means not at all.
	CatchUp time.Duration

	// Grace is how long to wait for answers after the last write; what is left
	// then is unfinished. Negative means not at all.
	Grace time.Duration

	// Tick is the time between two wake-ups of the sender, down to half of it
	// where requests are further apart. All that are due are released at each.
	Tick time.Duration

	// DialTimeout bounds one attempt to connect.
	DialTimeout time.Duration

	// ConnectWait is how long to wait for all connections before the run
	// begins. If there is none by then, Run fails and nothing was scheduled.
	// Negative means to begin at once, whatever there is.
	ConnectWait time.Duration

	// HistoryDir is a folder for the history, made if missing; it must hold
	// none yet. Empty means none is kept.
	HistoryDir string

	// OnReady, if set, is called once the connections are up.
	OnReady func()

	// Start, if set, is waited for before the run begins: close it.
	Start <-chan struct{}

	// OnProgress, if set, is called about four times a second from its own
	// goroutine, and once at the end. It must return quickly.
	OnProgress func(Live)

	// Clock replaces the machine's.
	Clock Clock
}

// withDefaults returns a copy with zero values replaced.
func (c Config) withDefaults() Config {
	orInt := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	or := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	orInt(&c.Conns, ConnsDefault)
	orInt(&c.Depth, DepthDefault)
	or(&c.Timeout, TimeoutDefault)
	or(&c.CatchUp, CatchUpDefault)
	or(&c.Grace, GraceDefault)
	or(&c.Tick, TickDefault)
	or(&c.DialTimeout, DialTimeoutDefault)
	or(&c.ConnectWait, ConnectWaitDefault)
	if c.Client == "" {
		c.Client = ClientWire
	}
	if c.Clock == nil {
		c.Clock = systemClock{}
	}
	if c.Extract == nil {
		c.Extract = func(int, []byte) (uint8, [16]byte) { return 0, [16]byte{} }
	}
	return c
}

// Validate says in one line what is wrong, or nil. Errors wrap ErrConfig.
func (c Config) Validate() error {
	c = c.withDefaults()
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...)
	}
	switch {
	case len(c.Addrs) == 0:
		return bad("no address: give at least one host:port")
	case c.Schedule == nil || c.Schedule.Total() == 0:
		return bad("the schedule offers no request: give a rate and a duration")
	case c.Schedule.Span() <= 0 || c.Schedule.Span() > pace.SpanMax:
		return bad("the schedule spans %v: give more than 0s and at most %v", c.Schedule.Span(), pace.SpanMax)
	case c.NewSource == nil:
		return bad("no source of requests")
	case c.Conns < 1 || c.Conns > ConnsMax:
		return bad("%d connections: give 1 to %d", c.Conns, ConnsMax)
	case c.Conns < len(c.Addrs):
		return bad("%d connections for %d addresses: give at least one each", c.Conns, len(c.Addrs))
	case c.Depth < 1 || c.Depth > DepthMax:
		return bad("depth %d: give 1 to %d requests in flight a connection", c.Depth, DepthMax)
	case c.Client != ClientWire && c.Client != ClientFast:
		return bad("client %q: give %s or %s", c.Client, ClientWire, ClientFast)
	case c.Client == ClientFast && c.Depth != 1:
		return bad("depth %d: the client %s has one request in flight on a connection, give 1", c.Depth, ClientFast)
	case c.ConnRamp < 0 || c.ConnRamp > c.Schedule.Span():
		return bad("connection ramp %v: give 0s to the schedule's %v", c.ConnRamp, c.Schedule.Span())
	case c.LocalPorts[0] > c.LocalPorts[1] || c.LocalPorts != [2]uint16{} && c.LocalPorts[0] == 0:
		return bad("local ports %d to %d: give the lower one first", c.LocalPorts[0], c.LocalPorts[1])
	case c.Timeout < time.Millisecond:
		return bad("timeout %v: give at least 1ms", c.Timeout)
	case c.Tick < 10*time.Microsecond || c.Tick > time.Second:
		return bad("tick %v: give 10µs to 1s", c.Tick)
	case c.DialTimeout <= 0:
		return bad("dial timeout %v: give more than 0s", c.DialTimeout)
	}
	for _, a := range c.Addrs {
		if _, port, err := net.SplitHostPort(a); err != nil || port == "" {
			return bad("address %q: give host:port", a)
		}
	}
	return nil
}

// waitStart blocks until start is closed or ctx ends; a nil start does not
// block.
func waitStart(ctx context.Context, start <-chan struct{}) error {
	if start == nil {
		return ctx.Err()
	}
	select {
	case <-start:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
