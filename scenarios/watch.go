package scenarios

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/hotsku/hotsku/stack"
)

// errServerDied wraps that a server ended which no fault had broken. Its run
// proves nothing.
var errServerDied = errors.New("ended by itself during the run")

// guarded is a server through which faults break it, so that one that ends
// otherwise is known.
type guarded struct {
	stack.Server
	mu      sync.Mutex
	broken  bool          // a fault ended it
	started chan struct{} // closed and made anew at each start
}

func guard(s stack.Server) *guarded { return &guarded{Server: s, started: make(chan struct{})} }

func (g *guarded) Kill() error {
	g.breaks()
	return g.Server.Kill()
}

func (g *guarded) Stop(ctx context.Context) error {
	g.breaks()
	return g.Server.Stop(ctx)
}

func (g *guarded) breaks() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.broken = true
}

func (g *guarded) Start(ctx context.Context) error {
	if err := g.Server.Start(ctx); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.broken = false
	close(g.started)
	g.started = make(chan struct{})
	return nil
}

// watch returns errServerDied when the server ended and no fault did it, nil
// when ctx ends.
func (g *guarded) watch(ctx context.Context) error {
	for {
		g.mu.Lock()
		ended, started := g.Done(), g.started
		g.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
		}
		g.mu.Lock()
		broken := g.broken
		g.mu.Unlock()
		if !broken && g.Done() == ended {
			return errServerDied
		}
		select {
		case <-ctx.Done():
			return nil
		case <-started:
		}
	}
}

// watchServers returns a context that ends, with that as its cause, when a
// server ends that no fault broke. done ends the watch and says if one did.
func (r *runner) watchServers(parent context.Context) (ctx context.Context, done func() error) {
	ctx, cancel := context.WithCancelCause(parent)
	var watches sync.WaitGroup
	for _, g := range r.servers {
		watches.Go(func() {
			if err := g.watch(ctx); err != nil {
				cancel(fmt.Errorf("%s %w: see its log %s", g.Name(), err, filepath.Join(r.dir.Logs(), g.Name()+".log")))
			}
		})
	}
	return ctx, func() error {
		cancel(nil)
		watches.Wait()
		if cause := context.Cause(ctx); errors.Is(cause, errServerDied) {
			return cause
		}
		return nil
	}
}
