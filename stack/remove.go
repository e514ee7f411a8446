package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// CleanLeftovers ends and removes the stacks in base whose owner died without doing so, and returns
// their names. Only processes whose pid and start time are in the stack's lock are touched.
func CleanLeftovers(ctx context.Context, base string) (removed []string, err error) {
	if _, err := os.Stat(base); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	err = withBase(ctx, base, func() error {
		removed, err = cleanLeftovers(base)
		return err
	})
	return removed, err
}

// cleanLeftovers needs the base's guard.
func cleanLeftovers(base string) (removed []string, err error) {
	locks, err := readLocks(base)
	if err != nil {
		return nil, err
	}
	for _, l := range locks {
		if !l.leftover() {
			continue
		}
		if err := demolish(filepath.Join(base, l.Name), l); err != nil {
			return removed, err
		}
		removed = append(removed, l.Name)
	}
	return removed, nil
}

// demolish kills what the lock names and removes the folder. The state is thrown away, so nothing is
// given time to save it.
func demolish(dir string, l lock) error {
	var errs []error
	for _, id := range l.Children {
		errs = append(errs, id.Kill())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stack: end the processes of %s: %w", l.Name, err)
	}
	if err := freeSharedMemory(filepath.Join(dir, PostgresName, "data")); err != nil {
		return fmt.Errorf("stack: free the shared memory of %s: %w", l.Name, err)
	}
	if err := removeLockLast(dir); err != nil {
		return fmt.Errorf("stack: remove %s: %w", dir, err)
	}
	return nil
}

// removeLockLast keeps a folder that could not be removed whole recognisable as a leftover.
func removeLockLast(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == lockFile {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}

// freeSharedMemory removes the small System V segment that a killed PostgreSQL leaves: the one with the
// key and id that line 7 of postmaster.pid names, if the process of line 1 created it (negative for the
// single process that initdb runs).
func freeSharedMemory(data string) error {
	b, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	lines := strings.Split(string(b), "\n")
	if len(lines) < 7 || strings.TrimSpace(lines[6]) == "" {
		return nil // it died before it had one
	}
	var pid int32
	var key uint64 // printed as unsigned long
	var id int
	if _, err := fmt.Sscan(lines[0], &pid); err != nil {
		return fmt.Errorf("read postmaster.pid: %w", err)
	}
	if _, err := fmt.Sscan(lines[6], &key, &id); err != nil {
		return fmt.Errorf("read postmaster.pid: %w", err)
	}
	var seg unix.SysvShmDesc
	if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &seg); errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EIDRM) {
		return nil
	} else if err != nil {
		return fmt.Errorf("look at shared memory %d: %w", id, err)
	}
	if uint64(int64(seg.Perm.Key)) != key || max(pid, -pid) != seg.Cpid {
		return nil
	}
	if _, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("remove shared memory %d: %w", id, err)
	}
	return nil
}
