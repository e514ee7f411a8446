package proc

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Attach returns a handle on a running process that another one started. It counts as ready; its exit
// code and peak memory stay unknown, its CPU time is what was last seen. ErrGone if it has ended.
func Attach(name string, id Identity, logPath string) (*Process, error) {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("proc: attach to %s (pid %d): %w", name, id.PID, err)
	}
	// Checked after opening: the descriptor names whoever had the pid then.
	if !id.Alive() {
		_ = unix.Close(fd)
		return nil, ErrGone
	}
	p := &Process{name: name, logPath: logPath, id: id,
		ready: make(chan struct{}), done: make(chan struct{})}
	close(p.ready)
	r, w, err := os.Pipe()
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("proc: attach to %s (pid %d): %w", name, id.PID, err)
	}
	p.release = func() { _ = w.Close() } // closing it again is harmless
	go p.watch(fd, r)
	return p, nil
}

// Release stops watching an attached process and leaves it running; its Done is not closed any more. It
// does nothing for a process that this one started.
func (p *Process) Release() { p.release() }

// watch ends with the process it watches, or when the other end of released is closed.
func (p *Process) watch(pidfd int, released *os.File) {
	defer unix.Close(pidfd)
	defer p.release()
	defer released.Close()
	p.exit = ExitState{Code: -1}
	for {
		fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}, {Fd: int32(released.Fd()), Events: unix.POLLIN}}
		// The timeout only bounds the age of the CPU time.
		_, err := unix.Poll(fds, int(time.Second/time.Millisecond))
		if t, terr := ReadTable(); terr == nil {
			if u, uerr := p.usage(t); uerr == nil {
				p.exit.User, p.exit.System = u.User, u.System
			}
		}
		switch {
		case fds[0].Revents != 0, err != nil && !errors.Is(err, unix.EINTR):
			close(p.done)
			return
		case fds[1].Revents != 0:
			return
		}
	}
}

// Usage is the CPU time used so far by a process, its living descendants, and those it waited for.
type Usage struct{ User, System time.Duration }

// Usage reads the CPU time used so far; after the end it is ExitState's.
func (p *Process) Usage() (Usage, error) {
	t, err := ReadTable()
	if err != nil {
		return Usage{}, err
	}
	return p.UsageIn(t)
}

// UsageIn is Usage with the descendants that a table holds.
func (p *Process) UsageIn(t Table) (Usage, error) {
	if e, ended := p.ExitState(); ended {
		return Usage{User: e.User, System: e.System}, nil
	}
	return p.usage(t)
}

func (p *Process) usage(t Table) (Usage, error) {
	own, err := readStat(p.id.PID)
	if err != nil {
		return Usage{}, err
	}
	if own.start != p.id.Start {
		return Usage{}, ErrGone
	}
	u := Usage{User: own.user, System: own.system}
	for _, st := range t.below(p.id.PID) {
		u.User += st.user
		u.System += st.system
	}
	return u, nil
}
