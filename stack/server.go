package stack

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/hotsku/hotsku/stack/proc"
)

// Names of the servers of a stack.
const (
	RedisName      = "redis"
	PostgresName   = "postgres"
	NameServerName = "namesrv"
	BrokerName     = "broker"
)

const (
	// startTimeout bounds one server's start, a crash recovery on busy cores included.
	startTimeout = 60 * time.Second
	// stopGrace is how long a clean shutdown of Redis or PostgreSQL may take before the server is killed.
	stopGrace = 20 * time.Second
	// readyPoll is the time between two looks at a starting server.
	readyPoll = 20 * time.Millisecond
)

// Server is one running store, whatever runs it. Methods are safe for concurrent use; faults (Kill,
// Pause, Resume) take effect before they return.
type Server interface {
	// Name is one of the names above.
	Name() string
	// Start returns when the server answers its protocol. After Stop or Kill it starts the server again
	// with the same data on the same port. It is an error to start a running server.
	Start(ctx context.Context) error
	// Stop shuts the server down cleanly; an error says that it had to be killed.
	// Stopping a stopped server is not an error.
	Stop(ctx context.Context) error
	// Kill ends the server at once, as SIGKILL or a power cut would. Killing a stopped server is not an error.
	Kill() error
	// Pause freezes the server: connections stay open and nothing is answered until Resume.
	Pause() error
	Resume() error
	// Answers is nil if the server answers its protocol now, within a second or so.
	Answers(ctx context.Context) error
	// Addr is where the server listens itself, host:port.
	Addr() string
	// PID is the main process, 0 while there is none.
	PID() int
	// LogPath is the file the server logs to; restarts append.
	LogPath() string
	// Done is closed when the server, as last started, has ended, by whatever cause; nil before Start.
	Done() <-chan struct{}
}

// Processed is the capability of servers that are native processes: what a report wants to know.
type Processed interface {
	// Usage is the CPU time the server used since its last start, by a table of processes read now.
	Usage(proc.Table) (proc.Usage, error)
}

// native is a Server that is a child process.
type native struct {
	name, addr string
	// spec is built anew for each start.
	spec func() proc.Spec
	// prepare, if set, runs before the first start's process, e.g. to create the data.
	prepare func(ctx context.Context) error
	// answers returns nil when the server answers; an error means not yet.
	answers func(ctx context.Context, p *proc.Process) error
	// stopSignal asks for a clean shutdown.
	stopSignal syscall.Signal
	stopGrace  time.Duration
	// record is told each started process before anything waits for it.
	record func(name string, id proc.Identity) error

	// starting serialises Start.
	starting sync.Mutex
	mu       sync.Mutex
	p        *proc.Process
	// retired servers are not started again: their folder goes away.
	retired bool
}

var (
	_ Server    = (*native)(nil)
	_ Processed = (*native)(nil)
)

func (s *native) Name() string    { return s.name }
func (s *native) Addr() string    { return s.addr }
func (s *native) LogPath() string { return s.spec().LogPath }

func (s *native) process() *proc.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.p
}

func (s *native) Done() <-chan struct{} {
	if p := s.process(); p != nil {
		return p.Done()
	}
	return nil
}

func (s *native) running() bool {
	p := s.process()
	if p == nil {
		return false
	}
	_, ended := p.ExitState()
	return !ended
}

func (s *native) PID() int {
	if !s.running() {
		return 0
	}
	return s.process().PID()
}

func (s *native) Usage(t proc.Table) (proc.Usage, error) {
	p := s.process()
	if p == nil {
		return proc.Usage{}, fmt.Errorf("stack: %s was not started", s.name)
	}
	return p.UsageIn(t)
}

func (s *native) Start(ctx context.Context) error {
	s.starting.Lock()
	defer s.starting.Unlock()
	if s.running() {
		return fmt.Errorf("stack: %s runs already (pid %d)", s.name, s.PID())
	}
	if s.isRetired() {
		return s.retiredError()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready within %v", startTimeout))
	defer cancel()
	if s.prepare != nil {
		if err := s.prepare(ctx); err != nil {
			return fmt.Errorf("stack: prepare %s: %w", s.name, err)
		}
	}
	p, err := proc.Start(s.spec())
	if err != nil {
		return fmt.Errorf("stack: start %s: %w", s.name, err)
	}
	s.mu.Lock()
	s.p = p
	s.mu.Unlock()
	if s.isRetired() { // while its process was started
		return errors.Join(s.retiredError(), p.Kill())
	}
	if err := s.record(s.name, p.Identity()); err != nil {
		return errors.Join(fmt.Errorf("stack: start %s: %w", s.name, err), p.Kill())
	}
	if err := s.awaitReady(ctx, p); err != nil {
		return errors.Join(fmt.Errorf("stack: start %s: %w", s.name, err), p.Kill())
	}
	return nil
}

func (s *native) Answers(ctx context.Context) error {
	p := s.process()
	if p == nil {
		return fmt.Errorf("stack: %s was not started", s.name)
	}
	if _, ended := p.ExitState(); ended {
		return fmt.Errorf("stack: %s: %w", s.name, p.EarlyExit())
	}
	if err := s.answers(ctx, p); err != nil {
		return fmt.Errorf("stack: %s does not answer: %w", s.name, err)
	}
	return nil
}

// awaitReady polls the server's own protocol until it answers, the process ends or ctx does.
func (s *native) awaitReady(ctx context.Context, p *proc.Process) error {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		last := s.answers(ctx, p)
		if last == nil {
			// Another process may answer on the port of one that could not bind it.
			select {
			case <-p.Done():
				return p.EarlyExit()
			default:
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-p.Done():
			return p.EarlyExit()
		case <-ctx.Done():
			return fmt.Errorf("%w (last answer: %w; log: %s)", context.Cause(ctx), last, p.LogPath())
		}
	}
}

func (s *native) Stop(ctx context.Context) error {
	p := s.process()
	if p == nil {
		return nil
	}
	if err := p.StopBy(ctx, s.stopSignal, s.stopGrace); err != nil {
		return fmt.Errorf("stack: stop %s: %w", s.name, err)
	}
	return nil
}

func (s *native) Kill() error {
	p := s.process()
	if p == nil {
		return nil
	}
	if err := p.Kill(); err != nil {
		return fmt.Errorf("stack: kill %s: %w", s.name, err)
	}
	return nil
}

func (s *native) isRetired() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.retired
}

func (s *native) retiredError() error {
	return fmt.Errorf("stack: start %s: its stack was taken down", s.name)
}

// retire kills the server for good; when it returns no Start is in progress.
func (s *native) retire() error {
	s.mu.Lock()
	s.retired = true
	s.mu.Unlock()
	err := s.Kill() // which makes a Start in progress fail
	s.starting.Lock()
	defer s.starting.Unlock()
	return errors.Join(err, s.Kill())
}

func (s *native) Pause() error  { return s.fault("pause", (*proc.Process).Pause) }
func (s *native) Resume() error { return s.fault("resume", (*proc.Process).Resume) }

func (s *native) fault(what string, do func(*proc.Process) error) error {
	p := s.process()
	if p == nil {
		return fmt.Errorf("stack: %s %s: %w", what, s.name, proc.ErrGone)
	}
	if err := do(p); err != nil {
		return fmt.Errorf("stack: %s %s: %w", what, s.name, err)
	}
	return nil
}
