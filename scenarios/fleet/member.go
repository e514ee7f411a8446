package fleet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hotsku/hotsku/stack/proc"
	"github.com/hotsku/hotsku/system/seckill"
)

// Member is one role's process, through its restarts. Safe for concurrent
// use.
type Member struct {
	fleet *Fleet
	role  Role

	mu      sync.Mutex
	starts  int
	process *proc.Process
	ready   seckill.Ready // zero until the present process is ready
	listen  string        // kept through restarts: clients know it
	armed   []string
	used    time.Duration // CPU of the processes before the present one
}

// Name is the role's name in the fleet.
func (m *Member) Name() string { return m.role.Name }

// Kind is the role.
func (m *Member) Kind() string { return m.role.Kind }

// Starts is how often the member's process was started: another number is
// another process, whose counts begin at 0.
func (m *Member) Starts() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.starts
}

// Listen is where the member serves, empty if it does not or is not ready.
func (m *Member) Listen() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.listen
}

// Admin is where the member's metrics are, empty if it is not ready.
func (m *Member) Admin() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ready.Admin
}

// Arm has the next start armed with a fault point, once.
func (m *Member) Arm(spec, file string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.armed = []string{"--faultpoint", spec, "--faultpoint-file", file}
}

func (m *Member) start(ctx context.Context) error {
	f := m.fleet
	m.mu.Lock()
	if m.process != nil && !ended(m.process) {
		m.mu.Unlock()
		return fmt.Errorf("start %s: it is running", m.role.Name)
	}
	path := f.cfg.Binaries.Plain
	if m.role.Chaos || len(m.armed) > 0 {
		path = f.cfg.Binaries.Chaos
	}
	args := append([]string{m.role.Kind, "--id-seed", f.idSeed(m.role.Name, m.starts), "--admin", "127.0.0.1:0"}, m.role.Args...)
	if m.role.Kind == "access" || m.role.Kind == "orders" {
		listen := m.listen
		if listen == "" {
			listen = "127.0.0.1:0"
		}
		args = append(args, "--listen", listen)
	}
	args = append(args, m.armed...)
	m.armed = nil
	m.starts++
	var ready seckill.Ready
	p, err := proc.Start(proc.Spec{Name: m.role.Name, Nice: m.role.Nice, Path: path, Args: slices.Concat(f.cfg.Binaries.Before, args), Env: append(f.environment(m.role.Addresses), m.role.Env...),
		LogPath: filepath.Join(f.cfg.LogDir, m.role.Name+".log"),
		Ready: func(line []byte) bool {
			r, ok := readyLine(line)
			if ok {
				ready = r
			}
			return ok
		}})
	if err != nil {
		m.mu.Unlock()
		return fmt.Errorf("start %s: %w", m.role.Name, err)
	}
	if m.process != nil {
		m.used += used(m.process, proc.Table{}) // it has ended: no table is looked at
	}
	m.process, m.ready = p, seckill.Ready{}
	m.mu.Unlock()

	wait, cancel := context.WithTimeoutCause(ctx, f.cfg.StartTimeout, fmt.Errorf("no ready line within %v: see its log %s", f.cfg.StartTimeout, p.LogPath()))
	defer cancel()
	if err := p.WaitReady(wait); err != nil {
		return fmt.Errorf("start %s: %w", m.role.Name, err)
	}
	m.mu.Lock()
	m.ready, m.listen = ready, ready.Listen
	m.mu.Unlock()
	return nil
}

// Stop ends the process by SIGTERM; one that does not end in time is killed,
// and the error says so. It is no error if it does not run.
func (m *Member) Stop(ctx context.Context) error {
	if p := m.current(); p != nil {
		return p.Stop(ctx, m.fleet.cfg.StopGrace)
	}
	return nil
}

// Kill ends the process by SIGKILL.
func (m *Member) Kill() error {
	if p := m.current(); p != nil {
		return p.Kill()
	}
	return nil
}

// Pause freezes the process until Resume: its connections stay open.
func (m *Member) Pause() error {
	if p := m.current(); p != nil {
		return p.Pause()
	}
	return fmt.Errorf("pause %s: %w", m.role.Name, proc.ErrGone)
}

// Resume lets a frozen process go on. It is no error if it was not frozen.
func (m *Member) Resume() error {
	if p := m.current(); p != nil {
		return p.Resume()
	}
	return fmt.Errorf("resume %s: %w", m.role.Name, proc.ErrGone)
}

func (m *Member) current() *proc.Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.process
}

// closedAlready is the Ended of a process that never started.
func closedAlready() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// Ended is closed when the process, as last started, has ended.
func (m *Member) Ended() <-chan struct{} {
	if p := m.current(); p != nil {
		return p.Done()
	}
	return closedAlready()
}

// EndSignal is the signal that ended the process, 0 if none did or it runs.
func (m *Member) EndSignal() syscall.Signal {
	if p := m.current(); p != nil {
		state, _ := p.ExitState()
		return state.Signal
	}
	return 0
}

// Restart starts the process again after its end, on the same address, as who
// runs processes does: one that ends before it is ready, for want of a server,
// is started again until ctx ends.
func (m *Member) Restart(ctx context.Context) error {
	if m.current() == nil {
		return fmt.Errorf("restart %s: it never ran", m.role.Name)
	}
	for {
		err := m.start(ctx)
		if err == nil || !errors.As(err, new(*proc.ExitError)) {
			return err
		}
		pause := time.NewTimer(restartAfter)
		select {
		case <-ctx.Done():
			pause.Stop()
			return err
		case <-pause.C:
		}
	}
}

// restartAfter is the time between two attempts of Restart.
const restartAfter = 500 * time.Millisecond

// CPU is the time all processes of this member used, by a table of processes
// read now.
func (m *Member) CPU(t proc.Table) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process == nil {
		return m.used
	}
	return m.used + used(m.process, t)
}

// used is a process's CPU time so far, 0 if it cannot be told.
func used(p *proc.Process, t proc.Table) time.Duration {
	usage, err := p.UsageIn(t)
	if err != nil {
		return 0
	}
	return usage.User + usage.System
}

func ended(p *proc.Process) bool {
	_, is := p.ExitState()
	return is
}
