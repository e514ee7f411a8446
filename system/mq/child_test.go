package mq

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hotsku/hotsku/system/seckill"
)

// Consumers run as processes, here as in production: they can be told to
// end, and killed; and the client library, whose Shutdown races with its own
// pulls, is out of reach of the race detector.

// order is what a consumer process is to do with its batches.
type order struct {
	ConsumerConfig
	Do     string   // "decide", "hang" until the end, "pause" until told to go on, "panic" on Poison until told
	Poison []string // reservation ids
}

// report is a line of a consumer process.
type report struct {
	Ready   bool     `json:",omitempty"`
	Running bool     `json:",omitempty"` // a handler hangs or pauses
	Keys    []string `json:",omitempty"` // decided
	Queue   int
	Ended   *ended `json:",omitempty"`
}

type ended struct{ HandedBack, Redelivered, Panics int64 }

const orderVariable = "MQ_TEST_CONSUMER"

func TestMain(m *testing.M) {
	UseLogger(slog.New(slog.DiscardHandler))
	if text := os.Getenv(orderVariable); text != "" {
		if err := consumeAsTold(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func consumeAsTold(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	goOn := make(chan struct{})
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		close(goOn)
	}()
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	say := func(r report) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(r)
	}
	handle := func(ctx context.Context, batch []Delivery) error {
		var keys []string
		for _, d := range batch {
			keys = append(keys, key(d))
		}
		switch o.Do {
		case "hang":
			say(report{Running: true})
			<-ctx.Done()
			return ctx.Err()
		case "pause":
			say(report{Running: true})
			<-goOn
		case "panic":
			select {
			case <-goOn:
			default:
				if slices.ContainsFunc(keys, func(k string) bool { return slices.Contains(o.Poison, k) }) {
					panic("poison")
				}
			}
		}
		say(report{Keys: keys, Queue: batch[0].Queue})
		return nil
	}
	c, err := NewConsumer(o.ConsumerConfig, handle, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	err = c.Run(ctx, func() { say(report{Ready: true}) })
	say(report{Ended: &ended{c.Stats.HandedBack.Load(), c.Stats.Redelivered.Load(), c.Stats.Panics.Load()}})
	return err
}

// key is the reservation id in an event or a create message.
func key(d Delivery) string {
	if e, err := seckill.DecodeEvent(d.Body); err == nil {
		return e.ReservationID
	}
	_, rest, _ := strings.Cut(string(d.Body), `"message_key":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

// process is a running consumer process and what it has decided.
type process struct {
	t       *testing.T
	cmd     *exec.Cmd
	goOn    io.Closer
	running chan struct{} // a token a handler that hangs or pauses
	exited  chan struct{}

	mu     sync.Mutex
	seen   map[string]int // reservation id: how often
	queues map[int]int
	most   int // messages in a batch
	ended  ended
	more   chan struct{}
}

// start runs a consumer process until it is ended, at the latest with the
// test.
func start(t *testing.T, cfg Config, do string, mend ...func(*order)) *process {
	t.Helper()
	o := order{ConsumerConfig: ConsumerConfig{Config: cfg, Topic: seckill.TopicOrderCreate, Group: seckill.GroupOrder, Batch: 32,
		Workers: 4, Drain: 10 * time.Second}, Do: do}
	for _, m := range mend {
		m(&o)
	}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(os.Args[0]), running: make(chan struct{}, 1000), exited: make(chan struct{}),
		seen: map[string]int{}, queues: map[int]int{}, more: make(chan struct{}, 1)}
	p.cmd.Env = append(os.Environ(), orderVariable+"="+string(text), "GORACE=exitcode=0 log_path="+os.DevNull)
	var stderr strings.Builder
	p.cmd.Stderr = &stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.goOn = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	go func() {
		defer close(p.exited)
		lines := bufio.NewScanner(stdout)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var r report
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				t.Errorf("consumer process printed %q", lines.Text())
				continue
			}
			if r.Ready {
				close(ready)
			}
			p.note(r)
		}
		err := p.cmd.Wait()
		if killed := p.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL; err != nil && !killed {
			t.Errorf("consumer process: %v\n%s", err, stderr.String())
		}
	}()
	t.Cleanup(p.kill)
	select {
	case <-ready:
	case <-p.exited:
		t.Fatalf("consumer process did not start:\n%s", stderr.String())
	}
	return p
}

func (p *process) note(r report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range r.Keys {
		p.seen[k]++
		p.queues[r.Queue]++
	}
	p.most = max(p.most, len(r.Keys))
	if r.Ended != nil {
		p.ended = *r.Ended
	}
	if r.Running {
		p.running <- struct{}{}
	}
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// tell tells the process to end; stop waits for it, too.
func (p *process) tell() { _ = p.cmd.Process.Signal(syscall.SIGTERM) }

func (p *process) stop() ended {
	p.tell()
	<-p.exited
	return p.ended
}

func (p *process) kill() {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Error(err)
	}
	<-p.exited
}

// await waits until all of the messages were decided here.
func (p *process) await(messages []seckill.OrderCreateMessage) {
	p.t.Helper()
	limit := time.After(40 * time.Second)
	for {
		missing := 0
		p.mu.Lock()
		for _, m := range messages {
			if p.seen[m.MessageKey] == 0 {
				missing++
			}
		}
		p.mu.Unlock()
		if missing == 0 {
			return
		}
		select {
		case <-p.more:
		case <-limit:
			p.t.Fatalf("%d of %d messages did not come", missing, len(messages))
		}
	}
}

// times is how often messages came, in all and the most of one.
func (p *process) times(messages []seckill.OrderCreateMessage) (all, most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range messages {
		n := p.seen[m.MessageKey]
		all, most = all+n, max(most, n)
	}
	return all, most
}

// idle says that nothing was decided here.
func (p *process) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.seen) == 0
}
