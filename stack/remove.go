package stack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hotsku/hotsku/stack/proc"
	"golang.org/x/sys/unix"
)

// endTimeout bounds the wait for killed processes, which may be in the middle of an fsync.
const endTimeout = 30 * time.Second

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
	for name, id := range l.Children {
		errs = append(errs, end(name, id))
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

func end(name string, id proc.Identity) error {
	p, err := proc.Attach(name, id, "")
	if errors.Is(err, proc.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer p.Release()
	if err := id.Kill(); err != nil {
		return err
	}
	select {
	case <-p.Done():
		return nil
	case <-time.After(endTimeout):
		return fmt.Errorf("%s (pid %d) does not end %v after SIGKILL", name, id.PID, endTimeout)
	}
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

// freeSharedMemory removes the small System V segment that a killed PostgreSQL leaves. Line 7 of
// postmaster.pid is its key and id; one that a process still uses is left alone.
func freeSharedMemory(data string) error {
	f, err := os.Open(filepath.Join(data, "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	var line string
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		if n == 7 {
			line = lines.Text()
		}
	}
	fields := strings.Fields(line)
	if len(fields) != 2 {
		return lines.Err() // it died before it had one
	}
	key, keyErr := strconv.ParseInt(fields[0], 10, 64)
	id, idErr := strconv.Atoi(fields[1])
	if err := errors.Join(keyErr, idErr); err != nil {
		return fmt.Errorf("read %s: %w", f.Name(), err)
	}
	var seg unix.SysvShmDesc
	if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &seg); errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EIDRM) {
		return nil
	} else if err != nil {
		return fmt.Errorf("look at shared memory %d: %w", id, err)
	}
	if int64(seg.Perm.Key) != key || seg.Nattch != 0 {
		return nil
	}
	if _, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("remove shared memory %d: %w", id, err)
	}
	return nil
}
