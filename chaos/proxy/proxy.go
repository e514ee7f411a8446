package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/hotsku/hotsku/chaos/frame"
)

// Errors of a proxy, for errors.Is; each comes with the proxy's name.
var (
	// ErrListen says that the proxy cannot listen where it was told to.
	ErrListen = errors.New("cannot listen")
	// ErrStuck says that a call did not end within the watchdog's time. The
	// proxy's connections were cut, and it is of no more use.
	ErrStuck = errors.New("stuck")
	// ErrClosed says that the proxy was closed.
	ErrClosed = errors.New("closed")
)

// AnyAddr listens on a port of the kernel's choice, on an address that no
// client's connection leaves from: the port stays free while the proxy refuses.
const AnyAddr = "127.0.0.3:0"

// WatchdogDefault is far above what a call takes on a busy machine.
const WatchdogDefault = 10 * time.Second

// Config of a proxy.
type Config struct {
	Name     string // in messages
	Listen   string // where clients dial, host:port
	Upstream string // where the store listens, host:port
	Protocol frame.Protocol
	Watchdog time.Duration // bound of every call
	Seed     uint64        // of the jitter
}

// Proxy is one way to one store. Safe for concurrent use.
type Proxy struct {
	cfg   Config
	relay *relay
	toxi  *toxiproxy.Proxy

	mu      sync.Mutex
	effects int // toxics added so far, each of its own name
	closed  bool
}

// Start opens a proxy that changes nothing yet. The store need not answer.
func Start(cfg Config) (*Proxy, error) {
	if cfg.Name == "" || cfg.Upstream == "" || cfg.Watchdog <= 0 {
		return nil, errors.New("proxy: needs a name, an upstream and a watchdog")
	}
	if _, err := frame.NewConversation(cfg.Protocol); err != nil {
		return nil, fmt.Errorf("proxy %s: %w", cfg.Name, err)
	}
	prepare()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.New(io.Discard).Level(zerolog.Disabled))
	p := &Proxy{cfg: cfg, toxi: toxiproxy.NewProxy(server, cfg.Name, "127.0.0.1:0", cfg.Upstream)}
	if err := p.within("start toxiproxy", p.toxi.Start); err != nil {
		return nil, err
	}
	p.relay = newRelay(cfg, p.toxi.Listen)
	if err := p.relay.accept(); err != nil {
		return nil, errors.Join(p.failed(err), p.Close())
	}
	return p, nil
}

// failed says of which proxy an error is.
func (p *Proxy) failed(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w: stop what listens there (ss -ltnp names it)", err)
	}
	return fmt.Errorf("proxy %s: %w", p.cfg.Name, err)
}

// within does what must not take longer than the watchdog allows: one reader
// that stalls blocks some of toxiproxy's calls for ever.
func (p *Proxy) within(what string, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	dog := time.NewTimer(p.cfg.Watchdog)
	defer dog.Stop()
	select {
	case err := <-done:
		if err != nil {
			return p.failed(fmt.Errorf("%s: %w", what, err))
		}
		return nil
	case <-dog.C:
		if p.relay != nil {
			p.relay.cut() // whoever waits for a reader goes on
		}
		return p.failed(fmt.Errorf("%s: %w for %v", what, ErrStuck, p.cfg.Watchdog))
	}
}

// Name is the proxy's.
func (p *Proxy) Name() string { return p.cfg.Name }

// Addr is where clients dial.
func (p *Proxy) Addr() string { return p.relay.addr() }

// Counts are what passed a proxy since it was started.
type Counts struct {
	Connections int64 // accepted
	Open        int64
	Cut         int64 // by Cut, Refuse or a lost reply
	ToServer    int64 // bytes that came from clients
	ToClient    int64 // bytes that were given to clients
	Replies     int64 // told apart and given to clients
	Unread      int64 // connections whose protocol was not understood
}

// Counts reads them.
func (p *Proxy) Counts() Counts { return p.relay.counts() }

// Cut resets every open connection and returns how many. New ones are
// accepted.
func (p *Proxy) Cut() (cut int, err error) {
	err = p.within("cut", func() error { cut = p.relay.cut(); return nil })
	return cut, err
}

// Refuse cuts every connection and listens no more, until Accept.
func (p *Proxy) Refuse() (cut int, err error) {
	err = p.within("refuse", func() error { cut = p.relay.refuse(); return nil })
	return cut, err
}

// Accept listens again. It is no error if it does.
func (p *Proxy) Accept() error { return p.within("accept", p.relay.accept) }

// Close ends the proxy and its connections. A second call does nothing.
func (p *Proxy) Close() error {
	p.mu.Lock()
	was := p.closed
	p.closed = true
	p.mu.Unlock()
	if was {
		return nil
	}
	return p.within("close", func() error {
		if p.relay != nil {
			p.relay.close()
		}
		p.toxi.Stop()
		return nil
	})
}

// listen is net.Listen with an error that says where.
func listen(addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp4", addr)
	if err != nil {
		return nil, fmt.Errorf("%w on %s: %w", ErrListen, addr, err)
	}
	return ln, nil
}
