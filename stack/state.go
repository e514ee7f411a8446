package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hotsku/hotsku/stack/proc"
)

const (
	lockFile   = "lock.json"
	guardFile  = ".guard"
	lockSchema = "hotsku.stack-lock/1"
)

// lock is what a stack's folder says about itself, written durably before and after each process starts.
type lock struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
	// Owner is the process the stack ends with; nil for a kept stack, which ends by `hotsku down`.
	Owner     *proc.Identity           `json:"owner"`
	Children  map[string]proc.Identity `json:"children"`
	Ports     Ports                    `json:"ports"`
	Proxied   bool                     `json:"broker_behind_proxy"`
	Addresses Addresses                `json:"addresses"`
	CreatedAt time.Time                `json:"created_at"`
}

// leftover reports whether the stack's owner died without ending it.
func (l lock) leftover() bool { return l.Owner != nil && !l.Owner.Alive() }

// DefaultBase returns the folder that holds one folder a stack: $HOTSKU_STATE, or /var/lib/hotsku for
// root, or $XDG_STATE_HOME/hotsku, or ~/.local/state/hotsku.
func DefaultBase() (string, error) {
	if dir := os.Getenv("HOTSKU_STATE"); dir != "" {
		if !filepath.IsAbs(dir) {
			return "", fmt.Errorf("stack: HOTSKU_STATE must be an absolute path, not %q", dir)
		}
		return dir, nil
	}
	if os.Geteuid() == 0 {
		return "/var/lib/hotsku", nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "hotsku"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("stack: find the state folder: %w; set HOTSKU_STATE", err)
	}
	return filepath.Join(home, ".local", "state", "hotsku"), nil
}

// withBase runs f while no other process changes which stacks the base folder holds.
func withBase(ctx context.Context, base string, f func() error) error {
	if err := os.MkdirAll(base, 0o755); err != nil {
		return fmt.Errorf("stack: create the state folder: %w; set HOTSKU_STATE to a folder you may write", err)
	}
	guard, err := os.OpenFile(filepath.Join(base, guardFile), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("stack: open the state folder: %w; set HOTSKU_STATE to a folder you may write", err)
	}
	defer guard.Close() // releases the lock
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(guard.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f()
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("stack: lock the state folder %s: %w", base, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("stack: wait for another hotsku that works in %s: %w", base, context.Cause(ctx))
		}
	}
}

// readLocks reads the locks of all stacks in base, in the order of their names. Folders without a lock
// are not ours.
func readLocks(base string) ([]lock, error) {
	entries, err := os.ReadDir(base)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("stack: list stacks: %w", err)
	}
	var locks []lock
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		l, err := readLock(filepath.Join(base, e.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		locks = append(locks, l)
	}
	return locks, nil
}

func readLock(dir string) (lock, error) {
	path := filepath.Join(dir, lockFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return lock{}, fmt.Errorf("stack: read lock: %w", err)
	}
	var l lock
	if err := json.Unmarshal(b, &l); err != nil {
		return lock{}, fmt.Errorf("stack: read lock %s: %w; end its processes and remove the folder by hand", path, err)
	}
	if l.Schema != lockSchema || l.Name != filepath.Base(dir) {
		return lock{}, fmt.Errorf("stack: lock %s is of schema %q and stack %q, not of this version and folder; end its processes and remove the folder by hand", path, l.Schema, l.Name)
	}
	return l, nil
}

// writeLock replaces the lock so that a crash leaves the old or the new one whole.
func writeLock(dir string, l lock) error {
	b, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return fmt.Errorf("stack: write lock: %w", err)
	}
	path := filepath.Join(dir, lockFile)
	// 0600: it holds the database's password.
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("stack: write lock: %w", err)
	}
	_, err = f.Write(append(b, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("stack: write lock: %w", err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
