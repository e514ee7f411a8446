package loadgen

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime"
	"time"

	"github.com/hotsku/hotsku/loadgen/hdr"
	"github.com/hotsku/hotsku/loadgen/wire"
)

// ErrNoConnection: no server could be reached before the run began.
var ErrNoConnection = errors.New("no connection")

// connect opens the connection slots and waits for them.
func (r *run) connect(ctx context.Context) error {
	slots := int((r.cfg.Schedule.Span()-1)/r.width) + 1
	for range min(r.cfg.Conns, recordersMax) {
		r.recorders = append(r.recorders, &recorder{
			extract: r.cfg.Extract, start: &r.start, resolved: &r.resolved,
			width: int64(r.width), slots: make([]slot, slots),
			givenUp: hdr.New(), service: hdr.New(),
		})
	}
	for range pollers(r.cfg.Conns) {
		p, err := wire.NewPoller()
		if err != nil {
			return err
		}
		r.pollers = append(r.pollers, p)
	}
	for i := range r.cfg.Conns {
		var hold chan struct{}
		if i > 0 && r.cfg.ConnRamp > 0 {
			hold = make(chan struct{})
			r.held = append(r.held, hold)
		}
		c, err := r.openLink(i, hold)
		if err != nil {
			return err
		}
		r.conns = append(r.conns, c)
	}
	wanted := r.conns[:len(r.conns)-len(r.held)]
	limit := r.now() + int64(r.cfg.ConnectWait)
	for {
		up := 0
		for _, c := range wanted {
			if c.Up() {
				up++
			}
		}
		switch {
		case up == len(wanted), r.cfg.ConnectWait < 0:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("connect: %w", ctx.Err())
		case r.now() > limit && up > 0:
			return nil
		case r.now() > limit:
			return r.noConnection()
		}
		r.cfg.Clock.Sleep(time.Millisecond)
	}
}

// noConnection says why none was made: the most frequent cause, and the words
// of one attempt.
func (r *run) noConnection() error {
	var all wire.Stats
	var last error
	for _, c := range r.conns {
		st := c.Stats()
		all.Add(&st)
		last = cmp.Or(c.DialError(), last)
	}
	worst := wire.CauseNone
	for cause, n := range all.Failed {
		if n > all.Failed[worst] {
			worst = wire.Cause(cause)
		}
	}
	if worst == wire.CauseNone {
		worst = wire.CauseDialTimeout
	}
	err := fmt.Errorf("%w to %v within %v: %s; %s", ErrNoConnection, r.cfg.Addrs, r.cfg.ConnectWait, worst, remedies[worst])
	if last != nil {
		err = fmt.Errorf("%w: %w", err, last)
	}
	return err
}

// remedies say what to do about a cause that keeps connections from opening.
var remedies = [wire.CauseCount]string{
	wire.CauseReset:       "something ends connections at once: check that the port speaks HTTP",
	wire.CauseClosed:      "something ends connections at once: check that the port speaks HTTP",
	wire.CauseRefused:     "start the server, or check the address",
	wire.CauseDialTimeout: "nothing answers: check the address, firewalls, and the server's accept queue",
	wire.CausePorts:       "no local port is left: open fewer connections, or widen net.ipv4.ip_local_port_range",
	wire.CauseDescriptors: "no file descriptor is left: raise ulimit -n, or open fewer connections",
	wire.CauseName:        "the host name does not resolve: check it",
	wire.CauseUnreachable: "there is no route: check the address",
	wire.CauseOther:       "check the address",
	wire.CauseTLS:         "the server does not speak TLS as asked: check the scheme, the name and the certificate",
}

func (r *run) closeConns() {
	for _, c := range r.conns {
		c.Close()
	}
	for _, p := range r.pollers {
		_ = p.Close() // it holds nothing any more
	}
	r.pollers = nil
}

// pollers is how many read: half the processors, for the other half send and
// compress, but no more than there are recorders to tell.
func pollers(conns int) int {
	return max(1, min(conns, recordersMax, runtime.GOMAXPROCS(0)/2))
}

// openLink opens slot i.
func (r *run) openLink(i int, hold <-chan struct{}) (link, error) {
	addr, sink := r.cfg.Addrs[i%len(r.cfg.Addrs)], r.recorders[i%len(r.recorders)]
	cfg := wire.Config{
		Depth: r.cfg.Depth, Timeout: r.cfg.Timeout, DialTimeout: r.cfg.DialTimeout, Now: r.now,
		Poller: r.pollers[i%len(r.pollers)], TLS: r.tls(addr), Ports: r.cfg.LocalPorts, Hold: hold,
	}
	if r.cfg.Client == ClientFast {
		return openFast(addr, cfg, sink), nil
	}
	return wire.Open(addr, cfg, sink)
}

// tls is the TLS configuration for a server: HTTP/1.1 alone, and the name of
// the address unless the caller gave one.
func (r *run) tls(addr string) *tls.Config {
	if r.cfg.TLS == nil {
		return nil
	}
	c := r.cfg.TLS.Clone()
	c.NextProtos = []string{"http/1.1"}
	if host, _, err := net.SplitHostPort(addr); err == nil && c.ServerName == "" {
		c.ServerName = host
	}
	return c
}

// openHeld lets the connections of the ramp open whose time has come.
func (r *run) openHeld(elapsed time.Duration) {
	for len(r.held) > 0 {
		n := r.cfg.Conns - len(r.held)
		if elapsed < r.cfg.ConnRamp*time.Duration(n)/time.Duration(r.cfg.Conns) {
			return
		}
		close(r.held[0])
		r.held = r.held[1:]
	}
}
