// Package stack brings up the real stores the product needs, Redis, PostgreSQL and RocketMQ's name
// server and broker, and takes them down again without a trace. Today each is a native child process
// behind the Server interface; containers and servers that run elsewhere can stand behind it as well.
//
// A stack lives in one folder below a base folder: data, configuration, logs, and lock.json, which names
// the owner and every child by pid and start time. An owned stack ends with its owner: by Down, or by
// the kernel (parent-death signals) when the owner is killed, after which the next Up, Down or status in
// the same base removes the folder. A kept stack has no owner and runs until RemoveKept.
//
// Imports nothing of the system.
package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/hotsku/hotsku/stack/proc"
	"golang.org/x/sync/errgroup"
)

// Options of Up. The zero value is an owned stack with a generated name on ports of its own choice.
type Options struct {
	// Base is the folder that holds one folder a stack; empty means DefaultBase.
	Base string
	// Name is the stack's folder; empty means generated. Letters, digits, '.', '_', '-'; at most 64.
	Name string
	// Keep lets the servers outlive this process. Name is required then.
	Keep bool
	// PortBase is the first of eight ports in a row; 0 means chosen.
	PortBase int
	// BrokerBehindProxy makes the broker listen on 127.0.0.2 while it tells clients to dial 127.0.0.1, same
	// port: the caller runs a proxy there. Until it does, clients cannot reach the broker.
	BrokerBehindProxy bool
	// Binaries overrides where the servers' programs are.
	Binaries Binaries
	// Nice is the niceness of servers by name, 0 to 19. A server that a kept stack's handle starts again has
	// none.
	Nice map[string]int
	// Progress, if set, is called as servers become ready; calls may be concurrent.
	Progress func(server string, took time.Duration)
}

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Validate reports the first thing wrong with the Options.
func (o Options) Validate() error {
	switch {
	case o.Name != "" && !validName.MatchString(o.Name):
		return fmt.Errorf("stack: name %q: want a letter or digit, then letters, digits, '.', '_' or '-', at most 64", o.Name)
	case o.Keep && o.Name == "":
		return errors.New("stack: a stack that is kept needs a name")
	case o.Base != "" && !filepath.IsAbs(o.Base):
		return fmt.Errorf("stack: the state folder must be an absolute path, not %q", o.Base)
	case o.PortBase != 0 && (o.PortBase < 1024 || o.PortBase > 65535-blockSize):
		return fmt.Errorf("stack: port base %d: want 1024 to %d", o.PortBase, 65535-blockSize)
	}
	return nil
}

// Addresses is where clients find the servers.
type Addresses struct {
	Redis string `json:"redis"`
	// Postgres is the URL of the superuser on Database.
	Postgres   string `json:"postgres"`
	NameServer string `json:"name_server"`
	// Broker is what the broker tells clients to dial; BrokerDirect is where it listens. They differ when a
	// proxy is to stand between.
	Broker       string `json:"broker"`
	BrokerDirect string `json:"broker_direct"`
	// BrokerMetrics is the URL of the broker's Prometheus metrics.
	BrokerMetrics string `json:"broker_metrics"`
}

// Stack is a set of running servers. Methods are safe for concurrent use.
type Stack struct {
	Redis, Postgres, NameServer, Broker Server

	dir       string
	addresses Addresses
	natives   []*native // in the order of Servers

	mu   sync.Mutex // guards lock and its file
	lock lock
	down bool
}

type recordFunc func(name string, id proc.Identity) error

// Up starts a stack and returns when all its servers answer. When it fails or ctx ends before, everything
// started is ended and removed again.
func Up(ctx context.Context, o Options) (*Stack, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	var err error
	if o.Base == "" {
		if o.Base, err = DefaultBase(); err != nil {
			return nil, err
		}
	}
	if o.Binaries, err = o.Binaries.find(); err != nil {
		return nil, err
	}
	s, err := claim(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := s.start(ctx, o.Progress); err != nil {
		return nil, errors.Join(err, s.demolish())
	}
	if o.Keep {
		if err := s.update(func(l *lock) { l.Owner = nil }); err != nil {
			return nil, errors.Join(err, s.demolish())
		}
	}
	return s, nil
}

// build lays out the servers of a stack without starting any.
func build(l layout, lk lock) (*Stack, error) {
	s := &Stack{dir: l.dir, addresses: lk.Addresses, lock: lk}
	postgres, err := newPostgres(l, s.record)
	if err != nil {
		return nil, err
	}
	s.natives = []*native{newRedis(l, s.record), postgres, newNameServer(l, s.record), newBroker(l, s.record)}
	s.Redis, s.Postgres, s.NameServer, s.Broker = s.natives[0], s.natives[1], s.natives[2], s.natives[3]
	return s, nil
}

func (l layout) addresses() Addresses {
	return Addresses{
		Redis:         loopback(l.ports.Redis),
		Postgres:      dsn(l.ports.Postgres, l.postgresPassword, Database),
		NameServer:    loopback(l.ports.NameServer),
		Broker:        loopback(l.ports.Broker),
		BrokerDirect:  l.brokerAddr(),
		BrokerMetrics: "http://" + loopback(l.ports.BrokerMetrics) + "/metrics",
	}
}

// start starts the servers that do not run, side by side. The broker is ready only when the name server
// knows it, so the order among them does not matter.
func (s *Stack) start(ctx context.Context, progress func(string, time.Duration)) error {
	begin := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for _, server := range s.Servers() {
		if server.PID() != 0 {
			continue
		}
		g.Go(func() error {
			if err := server.Start(ctx); err != nil {
				return err
			}
			if progress != nil {
				progress(server.Name(), time.Since(begin))
			}
			return nil
		})
	}
	return g.Wait()
}

// Name returns the stack's name.
func (s *Stack) Name() string { return filepath.Base(s.dir) }

// Dir returns the stack's folder, which Down removes: copy logs out of it before.
func (s *Stack) Dir() string { return s.dir }

// Addresses returns where clients find the servers. They stay the same when servers are restarted.
func (s *Stack) Addresses() Addresses { return s.addresses }

// Servers returns the four servers in the order in which they depend on each other.
func (s *Stack) Servers() []Server {
	return []Server{s.Redis, s.Postgres, s.NameServer, s.Broker}
}

// Down ends the servers at once and removes the stack's folder. The state is thrown away, so the servers
// get no time to save it; Stop them before to see a clean shutdown. A second call does nothing.
func (s *Stack) Down(ctx context.Context) error {
	base := filepath.Dir(s.dir)
	return withBase(ctx, base, s.demolish)
}

func (s *Stack) demolish() error {
	var errs []error
	for _, server := range s.natives {
		errs = append(errs, server.retire())
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil
	}
	if err := demolish(s.dir, s.lock); err != nil {
		return err
	}
	s.down = true
	return nil
}

func (s *Stack) record(name string, id proc.Identity) error {
	return s.update(func(l *lock) { l.Children[name] = id })
}

func (s *Stack) update(change func(*lock)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return errors.New("stack: it was taken down")
	}
	// A kept stack may have been changed through another handle.
	if l, err := readLock(s.dir); err == nil {
		s.lock = l
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	change(&s.lock)
	return writeLock(s.dir, s.lock)
}
