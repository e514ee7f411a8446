package scenarios

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hotsku/hotsku/chaos"
	"github.com/hotsku/hotsku/stack"
)

// Servers keeps a run's servers for the next one, which finds nothing of it
// in them. Close it when the last run is over. The zero value holds none; a
// nil *Servers keeps none. Not safe for concurrent use.
type Servers struct {
	idle    *stack.Stack
	options stack.Options
}

// keeps says that the next take finds servers.
func (k *Servers) keeps() bool { return k != nil && k.idle != nil }

// take returns servers as Up starts them: those that were kept, emptied, or
// new ones.
func (k *Servers) take(ctx context.Context, o stack.Options) (*stack.Stack, error) {
	if !k.keeps() {
		return stack.Up(ctx, o)
	}
	if alike := k.options.BrokerBehindProxy == o.BrokerBehindProxy && maps.Equal(k.options.Nice, o.Nice); !alike {
		if err := k.Close(); err != nil {
			return nil, err
		}
		return stack.Up(ctx, o)
	}
	s := k.idle
	k.idle = nil
	err := s.Reset(ctx)
	if err == nil {
		return s, nil
	}
	// They are fit for nothing now; the run can have others, unless it is over.
	if err := errors.Join(err, down(s)); ctx.Err() != nil || errors.Is(err, ErrLeft) {
		return nil, err
	}
	return stack.Up(ctx, o)
}

// give takes servers back after a run that went well and had no fault in a
// server. Others end at once.
func (k *Servers) give(s *stack.Stack, o stack.Options, sound bool) error {
	if k == nil || !sound {
		return down(s)
	}
	k.idle, k.options = s, o
	return nil
}

// Close ends the servers that are kept.
func (k *Servers) Close() error {
	if !k.keeps() {
		return nil
	}
	s := k.idle
	k.idle = nil
	return down(s)
}

// down ends servers, whatever became of the run's context.
func down(s *stack.Stack) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := s.Down(ctx); err != nil {
		return fmt.Errorf("%w: %w; hotsku down removes what is left", ErrLeft, err)
	}
	return nil
}

// found is which process each server is now, by name; 0 where there is none.
func found(s *stack.Stack) map[string]int {
	out := map[string]int{}
	for _, one := range s.Servers() {
		out[one.Name()] = one.PID()
	}
	return out
}

// sound says that the servers are those the run began with, and that no fault
// was theirs: what such a one left in them is more than data.
func (r *runner) sound() bool {
	for name, pid := range found(r.stack) {
		if pid == 0 || pid != r.began[name] {
			return false
		}
	}
	return !slices.ContainsFunc(r.faults, func(f chaos.Fault) bool {
		_, server := r.began[f.Target()]
		return server
	})
}
