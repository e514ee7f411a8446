package chaos

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// script is a fault that notes its steps and does as told.
type script struct {
	steps []string
	on    map[string]func(context.Context) error
}

func (s *script) do(ctx context.Context, step string) error {
	s.steps = append(s.steps, step)
	if f := s.on[step]; f != nil {
		return f(ctx)
	}
	return nil
}

func (s *script) Name() string                     { return "fault" }
func (s *script) Target() string                   { return "target" }
func (s *script) Setup(ctx context.Context) error  { return s.do(ctx, "setup") }
func (s *script) Works(ctx context.Context) error  { return s.do(ctx, "works") }
func (s *script) Inject(ctx context.Context) error { return s.do(ctx, "inject") }
func (s *script) WaitUntilItBites(ctx context.Context) (map[string]int64, string, error) {
	return map[string]int64{"killed": 2}, "twice", s.do(ctx, "bite")
}
func (s *script) Heal(ctx context.Context) error            { return s.do(ctx, "heal") }
func (s *script) WaitUntilHealed(ctx context.Context) error { return s.do(ctx, "healed") }

func untilDone(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

var errBroken = errors.New("broken")

func fail(context.Context) error { return errBroken }

// failAgain is fine the first time.
func failAgain() func(context.Context) error {
	calls := 0
	return func(context.Context) error {
		if calls++; calls > 1 {
			return errBroken
		}
		return nil
	}
}

var quick = Limits{Bite: time.Minute, Down: time.Millisecond, Heal: time.Minute}

func TestDrive(t *testing.T) {
	all := []string{"works", "inject", "bite", "heal", "healed", "works"}
	for _, c := range []struct {
		rule   string
		on     map[string]func(context.Context) error
		limits Limits
		is     error // in the error's chain; nil means that there is no error
		not    error
		steps  []string
		events []string
	}{
		{rule: "all steps in order", limits: quick, steps: all,
			events: []string{"injected", "bit", "healing", "healed"}},
		{rule: "no bite in time is ErrNoBite, and it is healed all the same",
			on:     map[string]func(context.Context) error{"bite": untilDone},
			limits: Limits{Bite: time.Millisecond, Heal: time.Minute}, is: ErrNoBite, steps: all,
			events: []string{"injected", "did not bite", "healing", "healed"}},
		{rule: "a wait that fails is no missing bite",
			on:     map[string]func(context.Context) error{"bite": fail},
			limits: quick, is: errBroken, not: ErrNoBite, steps: all,
			events: []string{"injected", "failed", "healing", "healed"}},
		{rule: "a deadline of its own within the wait is no missing bite",
			on:     map[string]func(context.Context) error{"bite": func(context.Context) error { return context.DeadlineExceeded }},
			limits: quick, is: context.DeadlineExceeded, not: ErrNoBite, steps: all,
			events: []string{"injected", "failed", "healing", "healed"}},
		{rule: "an inject that failed halfway is healed",
			on:     map[string]func(context.Context) error{"inject": fail},
			limits: quick, is: errBroken, steps: []string{"works", "inject", "heal", "healed", "works"},
			events: []string{"failed", "healing", "healed"}},
		{rule: "a heal that fails is an error", on: map[string]func(context.Context) error{"heal": fail},
			limits: quick, is: errBroken, steps: []string{"works", "inject", "bite", "heal"},
			events: []string{"injected", "bit", "healing", "not healed"}},
		{rule: "a target that does not recover is an error",
			on:     map[string]func(context.Context) error{"healed": untilDone},
			limits: Limits{Bite: time.Minute, Heal: time.Millisecond}, is: context.DeadlineExceeded, steps: all[:5],
			events: []string{"injected", "bit", "healing", "not healed"}},
		{rule: "a target that does not work before is left alone", on: map[string]func(context.Context) error{"works": fail},
			limits: quick, is: ErrUnfit, not: ErrNoBite, steps: []string{"works"},
			events: []string{"did not work before"}},
		{rule: "a target that was healed and does not work is an error", on: map[string]func(context.Context) error{"works": failAgain()},
			limits: quick, is: errBroken, not: ErrUnfit, steps: all,
			events: []string{"injected", "bit", "healing", "not healed"}},
		{rule: "a heal that fails does not hide that it did not bite",
			on:     map[string]func(context.Context) error{"bite": untilDone, "heal": fail},
			limits: Limits{Bite: time.Millisecond, Heal: time.Minute}, is: ErrNoBite, steps: []string{"works", "inject", "bite", "heal"},
			events: []string{"injected", "did not bite", "healing", "not healed"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			line, dir := newTimeline(t, time.Now)
			f := &script{on: c.on}
			err := Drive(t.Context(), f, c.limits, line)
			if broken := slices.Contains(c.events, "not healed"); errors.Is(err, ErrNotHealed) != broken {
				t.Errorf("error is %v; it was healed: %v", err, !broken)
			}
			if !errors.Is(err, c.is) || c.not != nil && errors.Is(err, c.not) {
				t.Errorf("error is %v, want %v and not %v", err, c.is, c.not)
			}
			if diff := cmp.Diff(c.steps, f.steps); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if err := line.Close(); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range events(t, dir) {
				if e.Actor != "fault" || e.Target != "target" {
					t.Errorf("event %+v is not the fault's", e)
				}
				if (e.Event == "bit") != (e.Hits["killed"] == 2 && e.Detail == "twice") {
					t.Errorf("event %+v: what it hit belongs to the bite", e)
				}
				got = append(got, e.Event)
			}
			if diff := cmp.Diff(c.events, got); diff != "" {
				t.Errorf("timeline (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDriveHealsWhenItsContextEnds(t *testing.T) {
	for _, step := range []string{"inject", "bite", "down"} {
		t.Run("during "+step, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			line, _ := newTimeline(t, time.Now)
			defer line.Close()
			ends := func(ctx context.Context) error {
				cancel()
				return untilDone(ctx)
			}
			f := &script{on: map[string]func(context.Context) error{
				"heal":   func(ctx context.Context) error { return ctx.Err() },
				"healed": func(ctx context.Context) error { return ctx.Err() },
			}}
			if step == "down" {
				f.on["bite"] = func(context.Context) error { cancel(); return nil }
			} else {
				f.on[step] = ends
			}
			err := Drive(ctx, f, Limits{Bite: time.Hour, Down: time.Hour, Heal: time.Minute}, line)
			if !errors.Is(err, context.Canceled) || errors.Is(err, ErrNoBite) {
				t.Errorf("error is %v, want that it was cancelled", err)
			}
			if !slices.Equal(f.steps[len(f.steps)-3:], []string{"heal", "healed", "works"}) {
				t.Errorf("steps were %v, want it healed", f.steps)
			}
		})
	}
}

func TestLimitsOfAFaultAreChecked(t *testing.T) {
	if err := quick.Validate(); err != nil {
		t.Error(err)
	}
	for _, l := range []Limits{{}, {Bite: 1}, {Heal: 1}, {Bite: 1, Heal: 1, Down: -1}} {
		if l.Validate() == nil {
			t.Errorf("%+v is taken", l)
		}
	}
}
