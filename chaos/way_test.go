package chaos

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotsku/hotsku/chaos/frame"
	"github.com/hotsku/hotsku/chaos/proxy"
	"github.com/hotsku/hotsku/verify/rundir"
)

// far is a store behind a way, and a client that calls it all the time, each
// time anew when a call failed.
type far struct {
	way    *proxy.Proxy
	load   chan struct{}
	failed atomic.Int64 // calls without an answer
	passed atomic.Int64
}

// newFar answers each line with +OK; silent, it has no store.
func newFar(t *testing.T, silent bool) *far {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if silent {
		ln.Close()
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					if _, err := io.WriteString(c, "+OK\r\n"); err != nil {
						return
					}
				}
			}()
		}
	}()
	way, err := proxy.Start(proxy.Config{Name: "access-redis", Listen: proxy.AnyAddr, Upstream: ln.Addr().String(), Protocol: frame.Redis, Watchdog: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	f := &far{way: way, load: make(chan struct{})}
	close(f.load)
	ctx, cancel := context.WithCancel(t.Context())
	var calling sync.WaitGroup
	calling.Go(func() { f.call(ctx) })
	t.Cleanup(func() {
		cancel()
		calling.Wait()
		ln.Close()
		if err := way.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// patience is what the client has with a store that does not answer.
const patience = 50 * time.Millisecond

func (f *far) call(ctx context.Context) {
	for ctx.Err() == nil {
		c, err := net.DialTimeout("tcp4", f.way.Addr(), patience)
		if err != nil {
			f.failed.Add(1)
			continue
		}
		for answers := bufio.NewReader(c); err == nil && ctx.Err() == nil; {
			_ = c.SetDeadline(time.Now().Add(patience))
			if _, err = io.WriteString(c, "EVALSHA\r\n"); err == nil {
				_, err = answers.ReadString('\n')
			}
			if err == nil {
				f.passed.Add(1)
			} else {
				f.failed.Add(1)
			}
		}
		c.Close()
	}
}

// felt is what the client counts.
func (f *far) felt(context.Context) (int64, error) { return f.failed.Load(), nil }

func (f *far) evalshas(times int64) *LoseReply {
	return &LoseReply{Way: f.way, What: "EVALSHA", Moment: Moment{Load: f.load}, Felt: f.felt,
		Loss: proxy.Loss{Match: func(r *frame.Reply) bool { return r.Request == "EVALSHA" }, From: 2, Every: 3, Times: times}}
}

// drive drives a fault and returns the event of its bite, if it bit.
func drive(t *testing.T, f Fault, limits Limits) (rundir.TimelineEvent, error) {
	t.Helper()
	line, dir := newTimeline(t, time.Now)
	err := Drive(t.Context(), f, limits, line)
	if err := line.Close(); err != nil {
		t.Fatal(err)
	}
	for _, e := range events(t, dir) {
		if e.Event == "bit" {
			return e, err
		}
	}
	return rundir.TimelineEvent{}, err
}

var generous = Limits{Bite: time.Minute, Down: 0, Heal: time.Minute}

// healed wants the client to be answered again.
func (f *far) healed(t *testing.T) {
	t.Helper()
	was := f.passed.Load()
	passed := Counter(func(context.Context) (int64, error) { return f.passed.Load(), nil })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := passed.rise(ctx, was); err != nil {
		t.Errorf("nobody is answered after the fault: %v", err)
	}
}

func TestLoseReplyBitesWhenTheLastIsLost(t *testing.T) {
	f := newFar(t, false)
	l := f.evalshas(4)
	e, err := drive(t, l, generous)
	if err != nil {
		t.Fatal(err)
	}
	if e.Actor != "lose-reply@EVALSHA" || e.Target != "access-redis" || e.Hits["replies_lost"] != 4 || e.Hits["felt"] < 1 {
		t.Errorf("event is %+v", e)
	}
	if n := strings.Count(e.Detail, "on connection"); n != 4 || !strings.Contains(e.Detail, "EVALSHA reply 2 on connection") || !strings.Contains(e.Detail, "EVALSHA reply 11 on connection") {
		t.Errorf("detail is %q, want each that was lost", e.Detail)
	}
	f.healed(t)
	if e, err = drive(t, f.evalshas(1), generous); err != nil || e.Hits["replies_lost"] != 1 {
		t.Errorf("a second fault on a healed way: %+v, error %v", e, err)
	}
}

func TestLoseReplyOfWhatNobodyAsks(t *testing.T) {
	f := newFar(t, false)
	l := f.evalshas(1)
	l.Loss.Match = func(r *frame.Reply) bool { return r.Request == "COMMIT" }
	if e, err := drive(t, l, Limits{Bite: time.Millisecond, Heal: time.Minute}); !errors.Is(err, ErrNoBite) {
		t.Errorf("event %+v, error %v, want that it did not bite", e, err)
	}
}

func TestAWayThatDoesNotWorkIsLeftAlone(t *testing.T) {
	f := newFar(t, true)
	for _, fault := range []Fault{f.evalshas(1), &WayBlocked{Way: f.way, Trouble: Trouble{Cut: true}, Times: 1}} {
		if _, err := drive(t, fault, generous); !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), "access-redis") {
			t.Errorf("error is %v, want one that names the way", err)
		}
	}
}

// Each kind of trouble is felt by the client, is counted, and passes.
func TestWayBlocked(t *testing.T) {
	lost := func(d proxy.Direction) proxy.Toxic { return proxy.Toxic{Direction: d, Lost: true} }
	for name, c := range map[string]struct {
		trouble Trouble
		times   int
		hit     string
		least   int64
	}{
		"cut@access-redis":       {Trouble{Cut: true}, 1, "connections_cut", 1},
		"refuse@access-redis":    {Trouble{Refuse: true}, 3, "times", 3},
		"loss@access-redis":      {Trouble{Toxics: []proxy.Toxic{lost(proxy.ToClient)}}, 2, "bytes_hit", 5},
		"loss+loss@access-redis": {Trouble{Toxics: []proxy.Toxic{lost(proxy.ToServer), lost(proxy.ToClient)}}, 1, "bytes_hit", 9},
		"latency@access-redis": {Trouble{Toxics: []proxy.Toxic{{Direction: proxy.ToServer, Latency: 4 * patience, Jitter: patience}}},
			1, "bytes_hit", 9},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFar(t, false)
			f.healed(t) // it works before
			b := &WayBlocked{Way: f.way, Trouble: c.trouble, Moment: Moment{Load: f.load}, Times: c.times, For: time.Millisecond, Felt: f.felt}
			e, err := drive(t, b, generous)
			if err != nil {
				t.Fatal(err)
			}
			if e.Actor != name || e.Hits[c.hit] < c.least || e.Hits["times"] != int64(c.times) || e.Hits["felt"] < 1 || e.Hits["replies_before"] < 1 {
				t.Errorf("event is %+v, want %s at least %d", e, c.hit, c.least)
			}
			f.healed(t)
		})
	}
}

// A way that nobody misses proves nothing.
func TestWayBlockedThatNobodyFeels(t *testing.T) {
	f := newFar(t, false)
	b := &WayBlocked{Way: f.way, Trouble: Trouble{Refuse: true}, Moment: Moment{Load: f.load}, Times: 1,
		Felt: func(context.Context) (int64, error) { return 7, nil }}
	if _, err := drive(t, b, Limits{Bite: time.Millisecond, Heal: time.Minute}); !errors.Is(err, ErrNoBite) {
		t.Errorf("error is %v, want that it did not bite", err)
	}
	f.healed(t)
}

func TestTroubleIsOfOneKind(t *testing.T) {
	toxic := []proxy.Toxic{{Direction: proxy.ToServer, KiBPerS: 1}}
	for _, bad := range []Trouble{{}, {Cut: true, Refuse: true}, {Cut: true, Toxics: toxic}, {Toxics: []proxy.Toxic{{}}}} {
		if err := bad.Validate(); err == nil {
			t.Errorf("trouble %+v was taken", bad)
		}
	}
	for _, good := range []Trouble{{Cut: true}, {Refuse: true}, {Toxics: toxic}} {
		if err := good.Validate(); err != nil {
			t.Error(err)
		}
	}
}
