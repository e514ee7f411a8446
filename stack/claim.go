package stack

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/hotsku/hotsku/stack/proc"
)

// claim makes the stack's folder ours, with a lock and ports that no other stack of the base has.
func claim(ctx context.Context, o Options) (*Stack, error) {
	var s *Stack
	err := withBase(ctx, o.Base, func() error {
		if _, err := cleanLeftovers(o.Base); err != nil {
			return err
		}
		if err := reachable(o.Base); err != nil {
			return err
		}
		owner, err := proc.Self()
		if err != nil {
			return err
		}
		secret := rand.Text()
		if o.Name == "" {
			o.Name = fmt.Sprintf("run-%d-%s", owner.PID, secret[:6])
		}
		ports, err := assignPorts(o)
		if err != nil {
			return err
		}
		l := layout{name: o.Name, dir: filepath.Join(o.Base, o.Name), ports: ports, proxied: o.BrokerBehindProxy,
			postgresPassword: rand.Text(), detached: o.Keep, binaries: o.Binaries, nice: o.Nice}
		if err := os.Mkdir(l.dir, 0o755); errors.Is(err, os.ErrExist) {
			return fmt.Errorf("stack: %s exists already: end that stack first (hotsku down --stack %s) or choose another name", l.dir, o.Name)
		} else if err != nil {
			return fmt.Errorf("stack: create the stack's folder: %w", err)
		}
		if s, err = build(l, lock{Schema: lockSchema, Name: o.Name, Owner: &owner,
			Children: map[string]proc.Identity{}, Ports: ports, Proxied: o.BrokerBehindProxy,
			Addresses: l.addresses(), CreatedAt: time.Now().UTC()}); err != nil {
			return errors.Join(err, os.Remove(l.dir))
		}
		return s.update(func(*lock) {})
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func assignPorts(o Options) (Ports, error) {
	if o.PortBase != 0 {
		p := block(o.PortBase)
		return p, checkBlock(p)
	}
	locks, err := readLocks(o.Base)
	if err != nil {
		return Ports{}, err
	}
	taken := make([]Ports, len(locks))
	for i, l := range locks {
		taken[i] = l.Ports
	}
	var seed [16]byte
	rand.Read(seed[:]) // never fails
	return chooseBlock(taken, mathrand.New(mathrand.NewPCG(
		binary.LittleEndian.Uint64(seed[:8]), binary.LittleEndian.Uint64(seed[8:]))))
}

// reachable checks that the user PostgreSQL runs as can get into the base folder.
func reachable(base string) error {
	run, err := unprivileged()
	if err != nil || run == nil {
		return err
	}
	for dir := base; ; dir = filepath.Dir(dir) {
		fi, err := os.Stat(dir)
		if err != nil {
			return fmt.Errorf("stack: look at the state folder: %w", err)
		}
		if fi.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("stack: PostgreSQL's user cannot reach the state folder %s, because %s is closed to others: set HOTSKU_STATE to a folder outside of it", base, dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}
