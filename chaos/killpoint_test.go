package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hotsku/hotsku/system/seckill"
)

// process is an Armable without a process.
type process struct {
	armed, file string
	ended       chan struct{}
	signal      syscall.Signal
	calls       []string
	stopErr     error
	unfit       error
}

func newProcess() *process { return &process{ended: make(chan struct{})} }

func (p *process) Name() string { return "access-1" }
func (p *process) Arm(spec, file string) {
	p.armed, p.file = spec, file
	p.calls = append(p.calls, "arm")
}
func (p *process) Works(context.Context) error { return p.unfit }
func (p *process) Ended() <-chan struct{}      { return p.ended }
func (p *process) EndSignal() syscall.Signal   { return p.signal }

func (p *process) end(s syscall.Signal) {
	p.signal = s
	close(p.ended)
}

func (p *process) Stop(context.Context) error {
	p.calls = append(p.calls, "stop")
	select {
	case <-p.ended:
	default:
		p.end(0)
	}
	return p.stopErr
}

func (p *process) Restart(context.Context) error {
	p.calls = append(p.calls, "restart")
	select {
	case <-p.ended:
		p.ended = make(chan struct{})
		return nil
	default:
		return errors.New("it is running")
	}
}

const point = seckill.FaultAccessAfterReserve

func newKill(t *testing.T, p *process) *KillAtPoint {
	return &KillAtPoint{Process: p, Point: point, At: 200, HitFile: filepath.Join(t.TempDir(), "hits.jsonl")}
}

func hitLine(t *testing.T, h seckill.FaultHit) string {
	t.Helper()
	line, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	return string(line) + "\n"
}

func TestKillAtPointArmsItsProcess(t *testing.T) {
	p := newProcess()
	k := newKill(t, p)
	if err := k.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.armed != "access.after-reserve=kill@200" || p.file != k.HitFile {
		t.Errorf("armed with %q and file %q", p.armed, p.file)
	}
	if !slices.Equal(p.calls, []string{"stop", "arm", "restart"}) {
		t.Errorf("calls were %v: what it did before must not count", p.calls)
	}
	if p.unfit = errBroken; !errors.Is(k.Works(t.Context()), errBroken) {
		t.Error("a process that does not work is taken for one that does")
	}
	if k.Name() != "kill@access.after-reserve" || k.Target() != "access-1" {
		t.Errorf("it is %s of %s", k.Name(), k.Target())
	}
}

// R7.10: the evidence of a kill is the process's own note and its signal, both.
func TestKillAtPointBites(t *testing.T) {
	kill := seckill.FaultHit{Point: point, Count: 200, Action: "kill", PID: 4711, At: "2026-12-01T00:00:00Z"}
	other, delay := kill, kill
	other.Point = seckill.FaultAccessAfterSend
	delay.Action = "delay"
	for _, c := range []struct {
		rule   string
		file   string // empty: there is none
		signal syscall.Signal
		want   int64 // 0: an error
		says   string
	}{
		{"killed at its point", hitLine(t, kill), syscall.SIGKILL, 1, "pid 4711 at hit 200"},
		{"a torn last line counts for nothing", hitLine(t, kill) + `{"point":"access.aft`, syscall.SIGKILL, 1, "pid 4711"},
		{"a whole line without its newline is torn, too", strings.TrimSuffix(hitLine(t, kill), "\n"), syscall.SIGKILL, 0, "access-1 ended by signal killed, not at access.after-reserve"},
		{"SIGKILL from elsewhere, nothing noted", "", syscall.SIGKILL, 0, "by signal killed"},
		{"empty file", "\n", syscall.SIGKILL, 0, "not at access.after-reserve"},
		{"another point's kill", hitLine(t, other), syscall.SIGKILL, 0, "not at access.after-reserve"},
		{"a delay is no kill", hitLine(t, delay), syscall.SIGKILL, 0, "not at access.after-reserve"},
		{"noted, but it lived on and ended otherwise", hitLine(t, kill), syscall.SIGTERM, 0, "by signal terminated"},
		{"it ended by itself", "", 0, 0, "access-1 ended by itself, not at"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			p := newProcess()
			k := newKill(t, p)
			if c.file != "" {
				if err := os.WriteFile(k.HitFile, []byte(c.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			p.end(c.signal)
			hits, detail, err := k.WaitUntilItBites(t.Context())
			if c.want == 0 {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("hits %v, error %v; want an error that says %q", hits, err, c.says)
				}
				return
			}
			if err != nil || !maps.Equal(hits, map[string]int64{"killed": c.want}) || !strings.Contains(detail, c.says) {
				t.Errorf("hits %v, detail %q, error %v; want %d killed and %q", hits, detail, err, c.want, c.says)
			}
		})
	}
}

func TestKillAtPointWaitsNoLongerThanItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := newKill(t, newProcess()).WaitUntilItBites(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want that it was cancelled", err)
	}
}

func TestKillAtPointHealsByARestart(t *testing.T) {
	for _, c := range []struct {
		rule string
		does func(*process)
	}{
		{"after the kill", func(p *process) { p.end(syscall.SIGKILL) }},
		{"if it never reached its point: armed, it could die when nobody waits for it", func(*process) {}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			p := newProcess()
			c.does(p)
			if err := newKill(t, p).Heal(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(p.calls, []string{"stop", "restart"}) {
				t.Errorf("calls were %v", p.calls)
			}
		})
	}
	t.Run("a process that had to be killed is reported, and runs again", func(t *testing.T) {
		p := newProcess()
		p.stopErr = errBroken
		if err := newKill(t, p).Heal(t.Context()); !errors.Is(err, errBroken) || !slices.Contains(p.calls, "restart") {
			t.Errorf("error %v after %v", err, p.calls)
		}
	})
}

// bystander notes when it is frozen.
type bystander struct {
	frozen bool
	err    error
}

func (b *bystander) Name() string  { return "access-2" }
func (b *bystander) Pause() error  { b.frozen = true; return b.err }
func (b *bystander) Resume() error { b.frozen = false; return nil }

// R16.11: whoever could do the work in its place stands aside until it is
// dead, whatever the seed.
func TestOthersStandAsideUntilItBites(t *testing.T) {
	p, other := newProcess(), &bystander{}
	k := newKill(t, p)
	k.Aside = []Freezable{other}
	if err := k.Inject(t.Context()); err != nil || !other.frozen {
		t.Fatalf("frozen: %v, %v", other.frozen, err)
	}
	if err := os.WriteFile(k.HitFile, []byte(hitLine(t, seckill.FaultHit{Point: point, Count: 200, Action: "kill"})), 0o600); err != nil {
		t.Fatal(err)
	}
	p.end(syscall.SIGKILL)
	if _, _, err := k.WaitUntilItBites(t.Context()); err != nil || other.frozen {
		t.Errorf("frozen after the bite: %v, %v", other.frozen, err)
	}
	other.frozen = true // it never bit
	if err := k.Heal(t.Context()); err != nil || other.frozen {
		t.Errorf("frozen after all: %v, %v", other.frozen, err)
	}
	other.err = errBroken
	if err := k.Inject(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("error is %v", err)
	}
}

func TestDriveOfAKillThatNeverHappens(t *testing.T) {
	line, dir := newTimeline(t, time.Now)
	p := newProcess()
	if err := Drive(t.Context(), newKill(t, p), Limits{Bite: time.Millisecond, Heal: time.Minute}, line); !errors.Is(err, ErrNoBite) {
		t.Errorf("error is %v", err)
	}
	if err := line.Close(); err != nil {
		t.Fatal(err)
	}
	for _, e := range events(t, dir) {
		if len(e.Hits) > 0 {
			t.Errorf("event %+v claims a hit", e)
		}
	}
}
