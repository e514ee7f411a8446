package proc

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Table is what the kernel said of all processes at one time. Reading it once
// for several questions costs what one question does.
type Table struct {
	children map[int][]stat // by parent
}

// ReadTable reads it now.
func ReadTable() (Table, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return Table{}, fmt.Errorf("proc: list processes: %w", err)
	}
	names, err := dir.Readdirnames(-1)
	_ = dir.Close()
	if err != nil {
		return Table{}, fmt.Errorf("proc: list processes: %w", err)
	}
	t := Table{children: make(map[int][]stat)}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		st, err := readStat(pid)
		if errors.Is(err, ErrGone) {
			continue
		}
		if err != nil {
			return Table{}, err
		}
		t.children[st.ppid] = append(t.children[st.ppid], st)
	}
	return t, nil
}

// below returns the processes below root, parents before children. A process group would not do:
// PostgreSQL's backends each lead one of their own.
func (t Table) below(root int) []stat {
	found := append([]stat(nil), t.children[root]...)
	for i := 0; i < len(found); i++ {
		found = append(found, t.children[found[i].pid]...)
	}
	return found
}

func descendants(root int) ([]stat, error) {
	t, err := ReadTable()
	if err != nil {
		return nil, err
	}
	return t.below(root), nil
}

// signalTree signals root and what runs below it; SIGSTOP and SIGKILL have taken effect when it returns.
func signalTree(id Identity, sig unix.Signal) error {
	root := id.PID
	// A stop first, so that no fork falls between the listing and a stop or kill; and the listing before
	// a kill, which hands the descendants to another parent.
	if sig == unix.SIGSTOP || sig == unix.SIGKILL {
		if err := signalOne(root, unix.SIGSTOP); err != nil {
			return err
		}
	}
	below, listErr := descendants(root)
	errs := []error{listErr, signalOne(root, sig)}
	for _, st := range below {
		if now, err := readStat(st.pid); err != nil || now.start != st.start {
			continue
		}
		errs = append(errs, signalOne(st.pid, sig))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	switch sig {
	case unix.SIGSTOP:
		return await(append(below, stat{pid: root, start: id.Start}), "freeze", "TZX")
	case unix.SIGKILL:
		return await(append(below, stat{pid: root, start: id.Start}), "end", "ZX")
	}
	return nil
}

// effectTimeout bounds the wait for a signal's effect: a process in the middle of an fsync finishes it first.
const effectTimeout = 30 * time.Second

// await returns when each process is gone or in one of these states: a signal takes effect a little after
// it was sent.
func await(procs []stat, what, states string) error {
	deadline := time.Now().Add(effectTimeout)
	for _, p := range procs {
		for {
			st, err := readStat(p.pid)
			if errors.Is(err, ErrGone) || strings.IndexByte(states, st.state) >= 0 || st.start != p.start {
				break
			}
			if err != nil {
				return err
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("proc: %d does not %s within %v (state %c)", p.pid, what, effectTimeout, st.state)
			}
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

func signalOne(pid int, sig unix.Signal) error {
	if err := unix.Kill(pid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("proc: signal %d with %s: %w", pid, unix.SignalName(sig), err)
	}
	return nil
}
