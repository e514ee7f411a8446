package valve_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotsku/hotsku/system/valve"
)

var (
	breakerConfig = valve.BreakerConfig{Window: 2 * time.Second, Failures: 3, OpenFor: time.Second, Probes: 2, ProbeEvery: 500 * time.Millisecond}
	errSend       = errors.New("timeout")
)

// clock is moved by the test.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time          { return c.now }
func (c *clock) advance(d time.Duration) { c.now = c.now.Add(d) }

func newBreaker(t testing.TB, c valve.BreakerConfig, now func() time.Time) (*valve.Breaker, *[]string) {
	t.Helper()
	var moves []string
	b, err := valve.NewBreaker(c, now, func(from, to valve.BreakerState) { moves = append(moves, fmt.Sprintf("%v to %v", from, to)) })
	if err != nil {
		t.Fatal(err)
	}
	return b, &moves
}

// R7.11.2: failures that last less than the window are jitter, however many;
// so are few, however long they take.
func TestABreakerBearsJitter(t *testing.T) {
	for rule, sends := range map[string][]struct {
		took time.Duration
		err  error
	}{
		"many failures within the window": slices.Repeat([]struct {
			took time.Duration
			err  error
		}{{19 * time.Millisecond, errSend}}, 100),
		"few failures beyond the window":       {{1500 * time.Millisecond, errSend}, {1500 * time.Millisecond, errSend}},
		"a confirmation begins the count anew": {{900 * time.Millisecond, errSend}, {900 * time.Millisecond, errSend}, {time.Millisecond, nil}, {900 * time.Millisecond, errSend}, {900 * time.Millisecond, errSend}},
	} {
		c := &clock{now: time.Unix(1_800_000_000, 0)}
		b, moves := newBreaker(t, breakerConfig, c.Now)
		for _, s := range sends {
			began := c.now
			c.advance(s.took)
			b.Sent(began, s.err)
			if !b.Allow() {
				t.Fatalf("%s: it opened: %v", rule, *moves)
			}
		}
	}
}

// R7.11.3: broken for longer than the window it opens, tries a few requests
// after a while, and closes at the first confirmation.
func TestABreakerOpensTriesAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, moves := newBreaker(t, breakerConfig, time.Now)
		fail := func() {
			began := time.Now()
			time.Sleep(time.Second)
			b.Sent(began, errSend)
		}
		var senders sync.WaitGroup // two at a time, as the access process does
		for range 2 {
			senders.Go(func() { fail(); fail() })
		}
		senders.Wait()
		if b.Allow() || !b.Refusing() || b.Opened.Load() != 1 {
			t.Fatalf("after 2 s without a confirmation it is %v", valve.BreakerState(b.State.Load()))
		}
		time.Sleep(breakerConfig.OpenFor - 1)
		if b.Allow() {
			t.Error("let something through while open")
		}
		time.Sleep(time.Nanosecond)
		for i, want := range []bool{true, true, false, false} {
			if b.Allow() != want {
				t.Errorf("request %d of a try: let through %t", i, !want)
			}
		}
		time.Sleep(breakerConfig.ProbeEvery) // none of them became a send
		for i, want := range []bool{true, true, false} {
			if b.Allow() != want {
				t.Errorf("request %d: a try without a verdict must be made again, as small as the first", i)
			}
		}
		fail() // one did
		if b.Allow() || b.Opened.Load() != 2 {
			t.Error("a failed try must open it again")
		}
		time.Sleep(breakerConfig.OpenFor)
		if !b.Allow() {
			t.Error("no second try")
		}
		b.Sent(time.Now(), nil)
		for range 10 {
			if !b.Allow() {
				t.Error("a confirmation must close it")
			}
		}
		if want := []string{"closed to open", "open to half-open", "half-open to open", "open to half-open", "half-open to closed"}; !slices.Equal(*moves, want) {
			t.Errorf("moves are %q, want %q", *moves, want)
		}
	})
}

// A send that began before the try tells nothing about it.
func TestAnOldFailureDoesNotEndATry(t *testing.T) {
	c := &clock{now: time.Unix(1_800_000_000, 0)}
	b, _ := newBreaker(t, breakerConfig, c.Now)
	old := c.now
	c.advance(breakerConfig.Window)
	for range breakerConfig.Failures {
		b.Sent(old, errSend)
	}
	c.advance(breakerConfig.OpenFor)
	if !b.Allow() {
		t.Fatal("no try")
	}
	b.Sent(old, errSend)
	if !b.Allow() {
		t.Error("a failure from before the try ended it")
	}
}

// Whatever happens: it opens only after Failures failures in a row over at
// least Window; it lets nothing through for OpenFor after it opened, and at
// most Probes at each try, a try each ProbeEvery, until a confirmation; a
// confirmation closes it.
func TestABreakerKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ms := func(name string, max int) time.Duration {
			return time.Duration(rapid.IntRange(1, max).Draw(rt, name)) * time.Millisecond
		}
		cfg := valve.BreakerConfig{Window: ms("window", 50), Failures: rapid.IntRange(1, 4).Draw(rt, "failures"),
			OpenFor: ms("open for", 30), Probes: rapid.IntRange(1, 4).Draw(rt, "probes"), ProbeEvery: ms("probe every", 20)}
		c := &clock{now: time.Unix(1_800_000_000, 0)}
		var opened, probing time.Time // last opening; zero: not since the last confirmation
		var allowed []time.Time       // let through since then
		failures, broken := 0, time.Time{}
		b, err := valve.NewBreaker(cfg, c.Now, func(_, to valve.BreakerState) {
			switch to {
			case valve.BreakerOpen:
				if failures < cfg.Failures && probing.IsZero() || c.now.Sub(broken) < cfg.Window && probing.IsZero() {
					rt.Fatalf("opened after %d failures over %v", failures, c.now.Sub(broken))
				}
				opened = c.now
			case valve.BreakerHalfOpen:
				probing = c.now
			}
		})
		if err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(1, 120).Draw(rt, "steps") {
			switch rapid.IntRange(0, 3).Draw(rt, "step") {
			case 0:
				c.advance(ms("wait", 25))
			case 1, 2:
				if !b.Allow() {
					if opened.IsZero() {
						rt.Fatal("refused while closed")
					}
					continue
				}
				if opened.IsZero() {
					continue
				}
				if c.now.Sub(opened) < cfg.OpenFor {
					rt.Fatalf("let through %v after it opened", c.now.Sub(opened))
				}
				allowed = append(allowed, c.now)
				if i := len(allowed) - 1 - 2*cfg.Probes; i >= 0 && c.now.Sub(allowed[i]) < cfg.ProbeEvery { // of two tries, meeting
					rt.Fatalf("more than twice %d let through within %v", cfg.Probes, cfg.ProbeEvery)
				}
			case 3:
				began := c.now.Add(-time.Duration(rapid.IntRange(0, 60).Draw(rt, "took")) * time.Millisecond)
				if rapid.IntRange(0, 3).Draw(rt, "confirmed") == 0 {
					b.Sent(began, nil)
					opened, probing, allowed, failures = time.Time{}, time.Time{}, nil, 0
					if !b.Allow() {
						rt.Fatal("refused right after a confirmation")
					}
					continue
				}
				if failures++; failures == 1 || began.Before(broken) {
					broken = began
				}
				b.Sent(began, errSend)
			}
		}
	})
}

func TestABreakerRefusesAConfigurationThatIsNone(t *testing.T) {
	for rule, mend := range map[string]func(*valve.BreakerConfig){
		"no window":      func(c *valve.BreakerConfig) { c.Window = 0 },
		"no failures":    func(c *valve.BreakerConfig) { c.Failures = 0 },
		"no open time":   func(c *valve.BreakerConfig) { c.OpenFor = 0 },
		"no probes":      func(c *valve.BreakerConfig) { c.Probes = 0 },
		"probes at once": func(c *valve.BreakerConfig) { c.ProbeEvery = 0 },
	} {
		c := valve.BreakerConfigDefault
		mend(&c)
		if _, err := valve.NewBreaker(c, time.Now, nil); err == nil {
			t.Errorf("%s: no error", rule)
		}
	}
}

func BenchmarkAllowClosed(b *testing.B) {
	br, err := valve.NewBreaker(valve.BreakerConfigDefault, time.Now, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if !br.Allow() {
			b.Fatal("refused")
		}
	}
}
