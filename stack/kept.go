package stack

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/hotsku/hotsku/stack/proc"
)

// ErrNoStack says that the base folder holds no stack of that name.
var ErrNoStack = errors.New("no such stack")

// Info is what can be told about a stack from outside.
type Info struct {
	Name string `json:"name"`
	// Kept stacks run until taken down; others end with their owner, whose pid is OwnerPID.
	Kept      bool         `json:"kept"`
	OwnerPID  int          `json:"owner_pid,omitempty"`
	CreatedAt time.Time    `json:"created_at"`
	Dir       string       `json:"dir"`
	Servers   []ServerInfo `json:"servers"`
	Addresses Addresses    `json:"addresses"`
}

// ServerInfo is one server of a stack. PID is 0 if it does not run.
type ServerInfo struct {
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	Addr    string `json:"addr"`
	LogPath string `json:"log_path"`
}

// List describes the stacks in base, by name. An empty base is no error.
func List(base string) ([]Info, error) {
	locks, err := readLocks(base)
	if err != nil {
		return nil, err
	}
	infos := make([]Info, 0, len(locks))
	for _, l := range locks {
		infos = append(infos, l.info(filepath.Join(base, l.Name)))
	}
	return infos, nil
}

func (l lock) info(dir string) Info {
	info := Info{Name: l.Name, Kept: l.Owner == nil, CreatedAt: l.CreatedAt, Dir: dir, Addresses: l.Addresses}
	if l.Owner != nil {
		info.OwnerPID = l.Owner.PID
	}
	lay := layout{dir: dir}
	for _, server := range []struct{ name, addr string }{
		{RedisName, l.Addresses.Redis}, {PostgresName, loopback(l.Ports.Postgres)},
		{NameServerName, l.Addresses.NameServer}, {BrokerName, l.Addresses.BrokerDirect},
	} {
		si := ServerInfo{Name: server.name, Addr: server.addr, LogPath: lay.log(server.name)}
		if id := l.Children[server.name]; id.Alive() {
			si.PID = id.PID
		}
		info.Servers = append(info.Servers, si)
	}
	return info
}

// OpenKept returns a handle on a kept stack, for its addresses and for faults; servers that it starts
// again outlive this process too. ErrNoStack if there is none of that name; an error if it is not a kept
// one. Close the handle when done; the stack goes on.
func OpenKept(ctx context.Context, base, name string, b Binaries) (*Stack, error) {
	if !validName.MatchString(name) {
		return nil, Options{Name: name}.Validate()
	}
	b, err := b.find()
	if err != nil {
		return nil, err
	}
	l, err := readLock(filepath.Join(base, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("stack: %w: %s in %s", ErrNoStack, name, base)
	}
	if err != nil {
		return nil, err
	}
	if l.Owner != nil {
		return nil, ownedError(l)
	}
	dsn, err := url.Parse(l.Addresses.Postgres)
	if err != nil {
		return nil, fmt.Errorf("stack: read lock of %s: %w", name, err)
	}
	password, _ := dsn.User.Password()
	s, err := build(layout{name: name, dir: filepath.Join(base, name), ports: l.Ports, proxied: l.Proxied,
		postgresPassword: password, detached: true, binaries: b}, l)
	if err != nil {
		return nil, err
	}
	for _, server := range s.natives {
		if err := server.attach(l.Children[server.name]); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

func ownedError(l lock) error {
	if l.leftover() {
		return fmt.Errorf("stack: %s was left behind by a process that died; hotsku down removes it", l.Name)
	}
	return fmt.Errorf("stack: %s belongs to the running process %d, which starts, uses or removes it", l.Name, l.Owner.PID)
}

// attach takes up a server that another process started; one that has ended can be started again.
func (s *native) attach(id proc.Identity) error {
	p, err := proc.Attach(s.name, id, s.LogPath())
	if errors.Is(err, proc.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.p = p
	return nil
}

// Close ends the watch over the servers of a kept stack and leaves them running. It does nothing for
// servers that this process started.
func (s *Stack) Close() error {
	for _, server := range s.natives {
		if p := server.process(); p != nil {
			p.Release()
		}
	}
	return nil
}

// ErrOtherPorts says that a stack exists, on other ports than those asked for.
var ErrOtherPorts = errors.New("stack: it is on other ports")

// UpKept is Up for a kept stack that may exist already: then servers of it that do not run are started,
// with their data and on their ports, and o's other fields are not used; ErrOtherPorts if they are not the
// ports asked for. The bool says whether all of it ran before.
func UpKept(ctx context.Context, o Options) (*Stack, bool, error) {
	o.Keep = true
	if err := o.Validate(); err != nil {
		return nil, false, err
	}
	if o.Base == "" {
		base, err := DefaultBase()
		if err != nil {
			return nil, false, err
		}
		o.Base = base
	}
	if _, err := CleanLeftovers(ctx, o.Base); err != nil {
		return nil, false, err
	}
	s, err := OpenKept(ctx, o.Base, o.Name, o.Binaries)
	if errors.Is(err, ErrNoStack) {
		s, err = Up(ctx, o)
		return s, false, err
	}
	if err != nil {
		return nil, false, err
	}
	if base := s.lock.Ports.base(); o.PortBase != 0 && o.PortBase != base {
		return nil, false, errors.Join(fmt.Errorf("%w: %s uses %d to %d, not those from %d: take it down first (hotsku down --stack %[2]s), or ask for no ports",
			ErrOtherPorts, o.Name, base, base+blockSize-1, o.PortBase), s.Close())
	}
	ran := true
	for _, server := range s.Servers() {
		ran = ran && server.PID() != 0
	}
	if err := s.start(ctx, o.Progress); err != nil {
		return nil, false, errors.Join(err, s.Close())
	}
	return s, ran, nil
}

// RemoveKept ends a kept stack and removes its state. ErrNoStack if there is none of that name; an
// error if a running process owns it.
func RemoveKept(ctx context.Context, base, name string) error {
	if !validName.MatchString(name) {
		return Options{Name: name}.Validate()
	}
	if _, err := os.Stat(base); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("stack: %w: %s in %s", ErrNoStack, name, base)
	}
	return withBase(ctx, base, func() error {
		dir := filepath.Join(base, name)
		l, err := readLock(dir)
		if errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("stack: %w: %s in %s", ErrNoStack, name, base)
		}
		if err != nil {
			return err
		}
		if l.Owner != nil && l.Owner.Alive() {
			return ownedError(l)
		}
		// Ours from here: if this process dies halfway, the rest is a leftover.
		owner, err := proc.Self()
		if err != nil {
			return err
		}
		l.Owner = &owner
		if err := writeLock(dir, l); err != nil {
			return err
		}
		return demolish(dir, l)
	})
}
