package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/telemetry"
)

// Roles run as processes, here as in production: this test binary, told by
// the environment which to be.

const roleVariable = "APP_TEST_ROLE"

// part is what a role process is told.
type part struct {
	Role   app.Role
	Config app.Config
	// SKU is the one the process looks after, of a Redis that other tests use.
	SKU  reservation.SKU
	Seed byte
	// Debug has the process log everything.
	Debug bool
}

// logKey hashes users in the logs of role processes.
const logKey = "00112233445566778899aabbccddeeff"

func TestMain(m *testing.M) {
	mq.UseLogger(slog.New(slog.DiscardHandler))
	if text := os.Getenv(roleVariable); text != "" {
		if err := play(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// own is a Store that knows one SKU only.
type own struct {
	app.Store
	sku reservation.SKU
}

func (o own) Activities(context.Context) ([]reservation.SKU, error) {
	return []reservation.SKU{o.sku}, nil
}

func play(text string) error {
	var p part
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	w := app.DefaultWiring(func(seckill.FaultPoint) {})
	w.Store = func(s *reservation.Store) app.Store { return own{s, p.SKU} }
	level := slog.LevelInfo
	if p.Debug {
		level = slog.LevelDebug
	}
	key, err := telemetry.ParseUserKey(logKey)
	if err != nil {
		return err
	}
	log := slog.New(telemetry.NewLogHandler(os.Stderr, level, key)).With("availability_zone", p.Config.Zone)
	goredis.SetLogger(redisLines{log})
	if p.Debug { // the client libraries' lines, too, as the command has them
		mq.UseLogger(log)
		telemetry.UseErrorLog(log)
	}
	out := json.NewEncoder(os.Stdout)
	return app.New(p.Config, w, log, [32]byte{p.Seed}, func(r seckill.Ready) { _ = out.Encode(r) }).Run(ctx, p.roles()...)
}

// redisLines takes the Redis client's own lines, as the command does.
type redisLines struct{ log *slog.Logger }

func (l redisLines) Printf(_ context.Context, format string, args ...any) {
	l.log.Debug("redis client: " + fmt.Sprintf(format, args...))
}

// roleAll is every role in one process.
const roleAll app.Role = "all"

func (p part) roles() []app.Role {
	if p.Role == roleAll {
		return app.Roles()
	}
	return []app.Role{p.Role}
}

// process is a running role.
type process struct {
	seckill.Ready                            // of the role that was ready last
	ready         map[app.Role]seckill.Ready // of all of them
	t             *testing.T
	cmd           *exec.Cmd
	started       chan struct{} // closed when all its roles are ready
	done          chan struct{}
	err           error
	logs          *strings.Builder
}

// start runs a role until it is ready; it ends with the test at the latest.
func start(t *testing.T, p part) *process {
	t.Helper()
	pr := launch(t, p)
	select {
	case <-pr.started:
	case <-pr.done:
		t.Fatalf("%s did not start: %v\n%s", p.Role, pr.err, pr.logs)
	}
	return pr
}

// launch runs a role; it ends with the test at the latest.
func launch(t *testing.T, p part) *process {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	pr := &process{t: t, cmd: exec.Command(os.Args[0]), done: make(chan struct{}), started: make(chan struct{}), logs: &strings.Builder{}, ready: make(map[app.Role]seckill.Ready)}
	races := filepath.Join(t.TempDir(), "race")
	pr.cmd.Env = append(os.Environ(), roleVariable+"="+string(text), "GORACE=exitcode=0 log_path="+races)
	pr.cmd.Stderr = pr.logs
	stdout, err := pr.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := pr.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(pr.done)
		lines := bufio.NewScanner(stdout)
		for want := len(p.roles()); lines.Scan(); {
			if err := json.Unmarshal(lines.Bytes(), &pr.Ready); err != nil || len(pr.ready) == want {
				t.Errorf("%s printed %q: only its ready line may be there", p.Role, lines.Text())
				continue
			}
			if pr.ready[app.Role(pr.Role)] = pr.Ready; len(pr.ready) == want {
				close(pr.started)
			}
		}
		pr.err = pr.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = pr.cmd.Process.Kill()
		<-pr.done
		if t.Failed() {
			t.Logf("%s said:\n%s", p.Role, pr.logs)
		}
		ourRaces(t, races)
	})
	return pr
}

// ourRaces fails the test for races that are not within the RocketMQ client:
// its Shutdown races with its own background work.
func ourRaces(t *testing.T, prefix string) {
	files, err := filepath.Glob(prefix + ".*")
	if err != nil {
		t.Error(err)
	}
	for _, f := range files {
		body, err := os.ReadFile(f)
		if err != nil {
			t.Error(err)
		}
		for _, race := range strings.Split(string(body), "WARNING: DATA RACE")[1:] {
			if !strings.Contains(race, "rocketmq-client-go") {
				t.Errorf("data race:%s", race)
			}
		}
	}
}

// drain ends the process as an operator does, and fails the test if it does
// not end well.
func (p *process) drain() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	select {
	case <-p.done:
		if p.err != nil {
			p.t.Errorf("%s ended by %v", p.Role, p.err)
		}
	case <-time.After(30 * time.Second):
		p.t.Errorf("%s did not end in 30 s", p.Role)
	}
}

// metric is the value of a metric whose line begins with name and holds the
// given label text.
func (p *process) metric(name, label string) (value float64) {
	p.t.Helper()
	resp, err := http.Get("http://" + p.Admin + "/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, name+"{") && strings.Contains(line, label) {
			if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &value); err != nil {
				p.t.Fatal(err)
			}
			return value
		}
	}
	p.t.Fatalf("%s has no metric %s with %s", p.Role, name, label)
	return 0
}

// eventually waits for what no event announces.
func eventually(t *testing.T, what string, limit time.Duration, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not in %v", what, limit)
		}
	}
}
