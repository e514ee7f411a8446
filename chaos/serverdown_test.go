package chaos

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// server is a Breakable without a process.
type server struct {
	calls []string
	down  bool
	deaf  bool // it cannot be broken
	slow  int  // looks until it answers after it was healed
}

func (s *server) Name() string { return "redis" }
func (s *server) Answers(context.Context) error {
	if s.down {
		return errBroken
	}
	if s.slow > 0 {
		s.slow--
		return errBroken
	}
	return nil
}
func (s *server) call(what string, down bool) error {
	s.calls = append(s.calls, what)
	s.down = down && !s.deaf
	return nil
}
func (s *server) Kill() error                 { return s.call("kill", true) }
func (s *server) Stop(context.Context) error  { return s.call("stop", true) }
func (s *server) Pause() error                { return s.call("pause", true) }
func (s *server) Resume() error               { return s.call("resume", false) }
func (s *server) Start(context.Context) error { return s.call("start", false) }

// R13.4, R16.11: a server breaks at its moment of the load, is missed, and
// comes back.
func TestAServerGoesDownAtItsMomentAndComesBack(t *testing.T) {
	for how, want := range map[Halt][]string{HaltKill: {"kill", "start"}, HaltStop: {"stop", "start"}, HaltPause: {"pause", "resume"}} {
		t.Run(string(how), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, load, felt := &server{slow: 3}, make(chan struct{}), int64(10)
				d := &ServerDown{Server: s, How: how, Moment: Moment{load, time.Second}, Felt: func(context.Context) (int64, error) {
					if s.down {
						felt++
					}
					return felt, nil
				}}
				s.slow = 0
				began := time.Now()
				go func() { time.Sleep(2 * time.Second); close(load) }()
				if err := d.Works(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := d.Inject(t.Context()); err != nil || time.Since(began) != 3*time.Second {
					t.Errorf("broken after %v: %v", time.Since(began), err)
				}
				hits, _, err := d.WaitUntilItBites(t.Context())
				if err != nil || !maps.Equal(hits, map[string]int64{"down": 1, "felt": 1}) {
					t.Errorf("hits %v, %v", hits, err)
				}
				if d.Works(t.Context()) == nil {
					t.Error("it works while it is down")
				}
				s.slow = 3
				if err := d.Heal(t.Context()); err != nil || !slices.Equal(s.calls, want) {
					t.Errorf("calls were %v, %v", s.calls, err)
				}
				if err := d.WaitUntilHealed(t.Context()); err != nil || s.slow != 0 {
					t.Errorf("healed before it answers: %v", err)
				}
				if d.Name() != string(how)+"@redis" || d.Target() != "redis" {
					t.Errorf("it is %s of %s", d.Name(), d.Target())
				}
			})
		})
	}
}

func TestAServerThatNobodyMissesDoesNotBite(t *testing.T) {
	for rule, c := range map[string]struct {
		change func(*ServerDown, *server)
		is     error
	}{
		"it still answers":      {func(_ *ServerDown, s *server) { s.deaf = true }, nil},
		"the product is silent": {func(d *ServerDown, _ *server) { d.Felt = func(context.Context) (int64, error) { return 7, nil } }, context.DeadlineExceeded},
		"nobody can be asked":   {func(d *ServerDown, _ *server) { d.Felt = func(context.Context) (int64, error) { return 0, errBroken } }, errBroken},
		"in a way there is not": {func(d *ServerDown, _ *server) { d.How = "insult" }, nil},
	} {
		t.Run(rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				load, s := make(chan struct{}), &server{}
				close(load)
				d := &ServerDown{Server: s, How: HaltKill, Moment: Moment{load, time.Second}}
				c.change(d, s)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := d.Inject(ctx)
				if err == nil {
					_, _, err = d.WaitUntilItBites(ctx)
				}
				if err == nil || c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("error is %v, want %v", err, c.is)
				}
			})
		})
	}
}

func TestAServerWhoseMomentNeverCameIsLeftAlone(t *testing.T) {
	s := &server{}
	d := &ServerDown{Server: s, How: HaltKill, Moment: Moment{make(chan struct{}), time.Hour}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Inject(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("inject: %v", err)
	}
	if err := d.Heal(t.Context()); err != nil || len(s.calls) > 0 {
		t.Errorf("heal: %v after %v", err, s.calls)
	}
	s.down = true
	if err := d.WaitUntilHealed(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, errBroken) {
		t.Errorf("a server that stays away: %v", err)
	}
}
