// Package proc runs and supervises child processes: the servers of package stack and the roles of the
// product under test. A Process is started once, can be awaited until ready, signalled, paused,
// stopped with a grace or killed with all its descendants, and tells afterwards how it ended and what
// CPU time it used.
//
// Each child leads its own process group, so that Ctrl-C in a terminal reaches the parent alone, which
// then stops its children in order. A child that belongs to its parent (the default) is signalled by
// the kernel when the parent dies, however it dies; a Detached one outlives it.
//
// Linux only: identities, trees and CPU times come from /proc.
package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process is one started process. All methods are safe for concurrent use.
type Process struct {
	name, logPath string
	id            Identity
	logStart      int64

	ready chan struct{} // closed when ready
	done  chan struct{} // closed when ended and exit is set
	// release ends the watch of an attached process.
	release func()

	// signals serialises signal sequences over the process's tree (stop's, continue's, kill's).
	signals sync.Mutex
	exit    ExitState // set before done is closed
}

// Start runs the process described by spec and returns once it was executed; it may not be ready yet.
// The caller ends it with Stop or Kill.
func Start(spec Spec) (*Process, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	cmd, log, err := command(spec)
	if err != nil {
		return nil, fmt.Errorf("proc: start %s: %w", spec.Name, err)
	}
	logStart, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		_ = log.Close()
		return nil, fmt.Errorf("proc: start %s: %w", spec.Name, err)
	}
	p := &Process{name: spec.Name, logPath: spec.LogPath, logStart: logStart,
		ready: make(chan struct{}), done: make(chan struct{}), release: func() {}}
	if spec.Ready == nil {
		close(p.ready)
	} else {
		cmd.Stdout = &lineWatcher{log: log, match: spec.Ready, found: p.ready}
	}
	started := make(chan error, 1)
	go p.run(cmd, log, spec.Nice, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("proc: start %s: %w", spec.Name, err)
	}
	return p, nil
}

func command(spec Spec) (*exec.Cmd, *os.File, error) {
	log, err := os.OpenFile(spec.LogPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(spec.Path, spec.Args...)
	if spec.Nice > 0 { // nice(1) becomes the program: same pid
		cmd = exec.Command("nice", append([]string{"-n", strconv.Itoa(spec.Nice), spec.Path}, spec.Args...)...)
	}
	cmd.Env = spec.Env
	cmd.Dir = spec.Dir
	cmd.Stdout = log
	cmd.Stderr = log
	// A grandchild that keeps stdout open must not keep Wait from returning.
	cmd.WaitDelay = 2 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: spec.Credential}
	if spec.Detached {
		cmd.SysProcAttr.Setsid = true
		return cmd, log, nil
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = spec.ParentDeath
	if spec.ParentDeath == 0 {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	return cmd, log, nil
}

// run forks and waits on one OS thread: the kernel ties the parent-death signal to the thread that
// forked, so this thread must live as long as the child.
func (p *Process) run(cmd *exec.Cmd, log *os.File, nice int, started chan<- error) {
	defer log.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		started <- err
		return
	}
	// The child is not reaped before Wait below, so its pid is still its own.
	id, err := Identify(cmd.Process.Pid)
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		started <- err
		return
	}
	p.id = id
	started <- nil
	if nice > 0 {
		go keepSessions(id.PID, nice, p.done)
	}
	_ = cmd.Wait() // the error repeats ProcessState
	p.exit = exitState(cmd.ProcessState)
	close(p.done)
}

func exitState(ps *os.ProcessState) ExitState {
	e := ExitState{Code: ps.ExitCode(), User: ps.UserTime(), System: ps.SystemTime()}
	if ws, ok := ps.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Signal = ws.Signal()
	}
	if ru, ok := ps.SysUsage().(*syscall.Rusage); ok {
		e.MaxRSSBytes = ru.Maxrss << 10
	}
	return e
}

// Name returns Spec.Name.
func (p *Process) Name() string { return p.name }

// PID returns the process id.
func (p *Process) PID() int { return p.id.PID }

// Identity returns the pid with its start time, to be recorded and attached to later.
func (p *Process) Identity() Identity { return p.id }

// LogPath returns the file that holds stdout and stderr.
func (p *Process) LogPath() string { return p.logPath }

// Done is closed when the process has ended and ExitState tells how.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitState returns how the process ended; false while it runs.
func (p *Process) ExitState() (ExitState, bool) {
	select {
	case <-p.done:
		return p.exit, true
	default:
		return ExitState{}, false
	}
}

// WaitReady returns nil once Spec.Ready accepted a line, an *ExitError if the process ended before
// that, and the context's cause if that came first.
func (p *Process) WaitReady(ctx context.Context) error {
	select {
	case <-p.ready:
		return nil
	case <-p.done:
		return p.EarlyExit()
	case <-ctx.Done():
		return fmt.Errorf("proc: %s (pid %d) is not ready: %w", p.name, p.id.PID, context.Cause(ctx))
	}
}

// Signal sends sig to the process alone; ErrGone if it has ended.
func (p *Process) Signal(sig syscall.Signal) error {
	p.signals.Lock()
	defer p.signals.Unlock()
	if !p.running() {
		return ErrGone
	}
	return signalOne(p.id.PID, unix.Signal(sig))
}

// Pause stops the process and its descendants by SIGSTOP; ErrGone if it has ended.
func (p *Process) Pause() error { return p.tree(unix.SIGSTOP) }

// Resume lets a paused process go on; ErrGone if it has ended. Harmless on a running one.
func (p *Process) Resume() error { return p.tree(unix.SIGCONT) }

// Kill ends the process and its descendants by SIGKILL and waits for its end.
// Killing an ended process is not an error.
func (p *Process) Kill() error {
	if err := p.tree(unix.SIGKILL); err != nil && !errors.Is(err, ErrGone) {
		return err
	}
	<-p.done
	return nil
}

// Stop asks the process to end by SIGTERM and waits; after grace, or when ctx ends, it is killed and an
// error says so. Stopping an ended process is not an error.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	return p.StopBy(ctx, syscall.SIGTERM, grace)
}

// StopBy is Stop by another signal than SIGTERM.
func (p *Process) StopBy(ctx context.Context, sig syscall.Signal, grace time.Duration) error {
	// The signal first, then SIGCONT: a paused process sees it as soon as it goes on.
	if err := p.Signal(sig); errors.Is(err, ErrGone) {
		return nil
	} else if err != nil {
		return err
	}
	if err := p.Resume(); err != nil && !errors.Is(err, ErrGone) {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, grace, fmt.Errorf("no end within %v", grace))
	defer cancel()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		cause := context.Cause(ctx)
		if err := p.Kill(); err != nil {
			return err
		}
		return fmt.Errorf("proc: %s (pid %d) was killed: %w", p.name, p.id.PID, cause)
	}
}

func (p *Process) tree(sig unix.Signal) error {
	p.signals.Lock()
	defer p.signals.Unlock()
	if !p.running() {
		return ErrGone
	}
	return signalTree(p.id, sig)
}

// running checks the start time too: between the reaping of a child and the closing of done its pid
// may already be another's.
func (p *Process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return p.id.Alive()
	}
}
