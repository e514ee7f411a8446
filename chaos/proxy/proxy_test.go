package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hotsku/hotsku/chaos/frame"
)

// store answers each line it reads with a RESP integer, counting from 1.
type store struct {
	ln   net.Listener
	mu   sync.Mutex
	done int // lines answered, over all connections
}

func newStore(t *testing.T) *store {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &store{ln: ln}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go s.serve(c)
		}
	})
	t.Cleanup(func() { ln.Close(); wg.Wait() })
	return s
}

func (s *store) serve(c net.Conn) {
	defer c.Close()
	lines := bufio.NewReader(c)
	for {
		if _, err := lines.ReadString('\n'); err != nil {
			return
		}
		s.mu.Lock()
		s.done++
		n := s.done
		s.mu.Unlock()
		if _, err := fmt.Fprintf(c, ":%d\r\n", n); err != nil {
			return
		}
	}
}

func (s *store) answered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

func start(t *testing.T, change func(*Config)) (*Proxy, *store) {
	t.Helper()
	s := newStore(t)
	cfg := Config{Name: "redis", Listen: AnyAddr, Upstream: s.ln.Addr().String(), Protocol: frame.Redis, Watchdog: 30 * time.Second}
	if change != nil {
		change(&cfg)
	}
	p, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, s
}

// client is a connection through a proxy; every wait on it is bounded.
type client struct {
	net.Conn
	lines *bufio.Reader
}

func dial(t *testing.T, p *Proxy) *client {
	t.Helper()
	c, err := net.Dial("tcp4", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &client{c, bufio.NewReader(c)}
}

func (c *client) ask(request string) (string, error) {
	if _, err := io.WriteString(c, request+"\r\n"); err != nil {
		return "", err
	}
	answer, err := c.lines.ReadString('\n')
	return strings.TrimSpace(answer), err
}

func (c *client) must(t *testing.T, request, want string) {
	t.Helper()
	if got, err := c.ask(request); got != want || err != nil {
		t.Fatalf("asked %q: answer %q (%v), want %q", request, got, err, want)
	}
}

func TestAProxyChangesNothingByItself(t *testing.T) {
	p, _ := start(t, nil)
	a, b := dial(t, p), dial(t, p)
	a.must(t, "PING", ":1")
	b.must(t, "PING", ":2")
	a.must(t, "PING", ":3")
	if c := p.Counts(); c.Connections != 2 || c.Open != 2 || c.Replies != 3 || c.ToServer != 18 || c.ToClient != 12 || c.Cut != 0 || c.Unread != 0 {
		t.Errorf("counts are %+v", c)
	}
}

func TestCutResetsWhatIsOpenAndLetsNewOnesIn(t *testing.T) {
	p, _ := start(t, nil)
	a, b := dial(t, p), dial(t, p)
	a.must(t, "PING", ":1")
	b.must(t, "PING", ":2")
	if n, err := p.Cut(); n != 2 || err != nil {
		t.Fatalf("cut %d (%v), want 2", n, err)
	}
	for _, c := range []*client{a, b} {
		if answer, err := c.ask("PING"); err == nil {
			t.Errorf("a cut connection answered %q", answer)
		}
	}
	dial(t, p).must(t, "PING", ":3")
	if n := p.Counts().Cut; n != 2 {
		t.Errorf("%d connections were cut, want 2", n)
	}
}

func TestRefuseIsWhatAClientSees(t *testing.T) {
	p, _ := start(t, nil)
	dial(t, p).must(t, "PING", ":1")
	addr := p.Addr()
	for range 3 {
		if n, err := p.Refuse(); n != 1 || err != nil {
			t.Fatalf("refusing cut %d (%v), want 1", n, err)
		}
		if c, err := net.Dial("tcp4", addr); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("dialled %v, error %v, want that it is refused", c, err)
		}
		if err := errors.Join(p.Accept(), p.Accept()); err != nil {
			t.Fatal(err)
		}
		if p.Addr() != addr {
			t.Errorf("it listens on %s, clients know %s", p.Addr(), addr)
		}
		if _, err := dial(t, p).ask("PING"); err != nil {
			t.Error(err)
		}
	}
}

func evalsha(r *frame.Reply) bool { return r.Request == "EVALSHA" }

// The n-th reply is lost after its request was done; what came before it and
// other connections do not notice.
func TestALostReplyIsLostAlone(t *testing.T) {
	p, s := start(t, nil)
	other := dial(t, p)
	other.must(t, "EVALSHA", ":1")
	losing, err := p.Lose(Loss{Match: evalsha, From: 2, Every: 2, Times: 2})
	if err != nil {
		t.Fatal(err)
	}
	a := dial(t, p)
	a.must(t, "EVALSHA", ":2") // the first that matches
	a.must(t, "GET", ":3")
	// Pipelined: the reply before the lost one arrives, those behind it do not.
	if _, err := io.WriteString(a, "GET\r\nEVALSHA\r\nGET\r\n"); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(a.lines)
	if string(rest) != ":4\r\n" {
		t.Errorf("the client has %q, want the reply before the lost one", rest)
	}
	other.must(t, "EVALSHA", fmt.Sprintf(":%d", s.answered()+1)) // the third
	if losing.Lost() != 1 || losing.Seen() != 3 {
		t.Errorf("lost %d of %d", losing.Lost(), losing.Seen())
	}
	if answer, err := other.ask("EVALSHA"); err == nil { // the fourth
		t.Errorf("lost, but answered %q", answer)
	}
	<-losing.Ended()
	last := dial(t, p)
	for i := range 4 {
		if _, err := last.ask("EVALSHA"); err != nil {
			t.Errorf("call %d after the last that was to be lost: %v", i+1, err)
		}
	}
	if losing.Lost() != 2 || p.Counts().Cut != 2 {
		t.Errorf("lost %d and cut %d, want 2 and 2", losing.Lost(), p.Counts().Cut)
	}
	if said := losing.String(); !strings.HasPrefix(said, "EVALSHA reply 2 on connection 2 from 127.0.0.") || !strings.Contains(said, "; EVALSHA reply 4 on connection 1 from") {
		t.Errorf("it says %q", said)
	}
	if _, err := p.Lose(Loss{Match: evalsha, From: 1, Every: 1, Times: 1}); !errors.Is(err, ErrLosing) {
		t.Errorf("a second loss: error %v", err)
	}
	p.Keep()
	if _, err := p.Lose(Loss{Match: evalsha, From: 1, Every: 1, Times: 1}); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNotUnderstoodPassesAndIsCounted(t *testing.T) {
	p, _ := start(t, func(c *Config) { c.Protocol = frame.Postgres })
	if _, err := p.Lose(Loss{Match: func(*frame.Reply) bool { return true }, From: 1, Every: 1, Times: 1}); err != nil {
		t.Fatal(err)
	}
	dial(t, p).must(t, "GET / HTTP/1.1", ":1")
	if c := p.Counts(); c.Unread != 1 || c.Replies != 0 {
		t.Errorf("counts are %+v, want one connection that was not understood", c)
	}
}

func TestToxics(t *testing.T) {
	for _, c := range []struct {
		what  string
		toxic Toxic
	}{
		{"latency", Toxic{Direction: ToServer, Latency: 20 * time.Millisecond, Jitter: 10 * time.Millisecond}},
		{"latency of replies", Toxic{Direction: ToClient, Latency: 20 * time.Millisecond}},
		{"bandwidth", Toxic{Direction: ToServer, KiBPerS: 64}},
		{"bandwidth of replies", Toxic{Direction: ToClient, KiBPerS: 64}},
	} {
		t.Run(c.what, func(t *testing.T) {
			p, _ := start(t, nil)
			a := dial(t, p)
			a.must(t, "PING", ":1")
			e, err := p.Add(c.toxic)
			if err != nil {
				t.Fatal(err)
			}
			if e.Bytes() != 0 {
				t.Errorf("it acted on %d bytes before anything passed", e.Bytes())
			}
			began := time.Now()
			a.must(t, "PING", ":2")
			dial(t, p).must(t, "PING", ":3")
			if took := time.Since(began); c.toxic.Latency > 0 && took < 2*(c.toxic.Latency-c.toxic.Jitter) {
				t.Errorf("two calls took %v", took)
			}
			if want := map[Direction]int64{ToServer: 12, ToClient: 8}[c.toxic.Direction]; e.Bytes() != want {
				t.Errorf("it acted on %d bytes, want %d", e.Bytes(), want)
			}
			if err := p.Remove(e); err != nil {
				t.Fatal(err)
			}
			a.must(t, "PING", ":4")
			if e.Bytes() > 18 {
				t.Errorf("it acts on, %d bytes by now", e.Bytes())
			}
		})
	}
}

// One-way loss: the server gets what is sent and its answer is lost, or it
// gets nothing. The connection is of no use afterwards, idle ones are.
func TestLossDiscardsOneDirection(t *testing.T) {
	for _, d := range []Direction{ToServer, ToClient} {
		t.Run(string(d), func(t *testing.T) {
			p, s := start(t, nil)
			a, idle := dial(t, p), dial(t, p)
			a.must(t, "PING", ":1")
			idle.must(t, "PING", ":2")
			e, err := p.Add(Toxic{Direction: d, Lost: true})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(a, "PING\r\n"); err != nil {
				t.Fatal(err)
			}
			want := map[Direction]int64{ToServer: 6, ToClient: 4}[d]
			for deadline := time.Now().Add(30 * time.Second); e.Bytes() < want && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
			if e.Bytes() != want {
				t.Fatalf("%d bytes were lost, want %d", e.Bytes(), want)
			}
			if done := map[Direction]int{ToServer: 2, ToClient: 3}[d]; s.answered() != done {
				t.Errorf("the store answered %d, want %d", s.answered(), done)
			}
			if err := p.Remove(e); err != nil {
				t.Fatal(err)
			}
			if rest, _ := io.ReadAll(a.lines); len(rest) > 0 {
				t.Errorf("the stream with a hole goes on with %q", rest)
			}
			idle.must(t, "PING", fmt.Sprintf(":%d", s.answered()+1))
		})
	}
}

// A proxy that cannot listen says so, and which: nothing may pass for it.
func TestAProxyThatCannotListen(t *testing.T) {
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = Start(Config{Name: "broker", Listen: taken.Addr().String(), Upstream: "127.0.0.1:1", Protocol: frame.RocketMQ, Watchdog: time.Minute})
	if !errors.Is(err, ErrListen) || !strings.Contains(err.Error(), "proxy broker: cannot listen on "+taken.Addr().String()) {
		t.Errorf("error is %v", err)
	}
	p, _ := start(t, nil)
	if _, err := p.Refuse(); err != nil {
		t.Fatal(err)
	}
	thief, err := net.Listen("tcp4", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer thief.Close()
	if err := p.Accept(); !errors.Is(err, ErrListen) || !strings.Contains(err.Error(), "proxy redis: ") {
		t.Errorf("listening again: error is %v", err)
	}
}

// A client that does not read blocks toxiproxy's own calls for ever: the
// watchdog ends the wait, names the proxy, and its connections are gone.
func TestTheWatchdogEndsACallThatHangs(t *testing.T) {
	flood, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer flood.Close()
	go func() {
		c, err := flood.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		for piece := make([]byte, 1<<16); ; {
			if _, err := c.Write(piece); err != nil {
				return
			}
		}
	}()
	p, _ := start(t, func(c *Config) { c.Upstream, c.Watchdog = flood.Addr().String(), 500*time.Millisecond })
	c := dial(t, p)
	if _, err := c.lines.Peek(1); err != nil { // the flood has begun
		t.Fatal(err)
	}
	for passed := int64(-1); passed != p.Counts().ToClient; time.Sleep(100 * time.Millisecond) {
		passed = p.Counts().ToClient // until every buffer on the way is full
	}
	if _, err := p.Add(Toxic{Direction: ToClient, Lost: true}); !errors.Is(err, ErrStuck) || !strings.Contains(err.Error(), "proxy redis: add toxic hotsku_loss-1: stuck for 500ms") {
		t.Errorf("error is %v, want that redis is stuck", err)
	}
	if n := p.Counts().Cut; n != 1 {
		t.Errorf("%d connections were cut, want 1", n)
	}
}

func TestWhatAProxyDoesNotTake(t *testing.T) {
	good := Config{Name: "redis", Listen: AnyAddr, Upstream: "127.0.0.1:1", Protocol: frame.Redis, Watchdog: time.Second}
	for what, change := range map[string]func(*Config){
		"no name": func(c *Config) { c.Name = "" }, "no upstream": func(c *Config) { c.Upstream = "" },
		"no watchdog": func(c *Config) { c.Watchdog = 0 }, "a protocol it cannot read": func(c *Config) { c.Protocol = "smtp" },
	} {
		cfg := good
		change(&cfg)
		if p, err := Start(cfg); err == nil {
			t.Errorf("%s was taken", what)
			p.Close()
		}
	}
	p, _ := start(t, nil)
	for _, toxic := range []Toxic{{}, {Direction: ToServer}, {Direction: "sideways", Lost: true}, {Direction: ToServer, Lost: true, KiBPerS: 1},
		{Direction: ToServer, Latency: time.Second, Jitter: 2 * time.Second}, {Direction: ToServer, KiBPerS: -1}} {
		if _, err := p.Add(toxic); err == nil {
			t.Errorf("toxic %+v was taken", toxic)
		}
	}
	for _, loss := range []Loss{{From: 1, Every: 1, Times: 1}, {Match: evalsha, Every: 1, Times: 1}, {Match: evalsha, From: 1, Times: 1}, {Match: evalsha, From: 1, Every: 1}} {
		if _, err := p.Lose(loss); err == nil {
			t.Errorf("a loss %+v was taken", loss)
		}
	}
	if err := errors.Join(p.Close(), p.Close()); err != nil {
		t.Error(err)
	}
	if err := p.Accept(); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed proxy listens: %v", err)
	}
}

func TestWorksIsNilOnlyIfTheStoreAnswers(t *testing.T) {
	p, s := start(t, nil)
	if err := p.Works(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := p.Add(Toxic{Direction: ToClient, Lost: true}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := p.Works(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "proxy redis: ") {
		t.Errorf("answers are lost: error is %v", err)
	}
	s.ln.Close()
	if err := p.Works(t.Context()); err == nil {
		t.Error("a store that is gone answers")
	}
	if _, err := p.Refuse(); err != nil {
		t.Fatal(err)
	}
	if err := p.Works(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("it refuses: error is %v", err)
	}
}
