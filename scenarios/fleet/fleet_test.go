package fleet

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hotsku/hotsku/stack"
	"github.com/hotsku/hotsku/stack/proc"
)

func dials(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

func processes(t *testing.T) proc.Table {
	t.Helper()
	table, err := proc.ReadTable()
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestFleetStartsEachRoleAsAProcessOfItsOwn(t *testing.T) {
	f := newFleet(t, nil)
	access := add(t, f, Role{Name: "access-1", Kind: "access", Args: []string{"--play", "serve"}})
	consumer := add(t, f, Role{Name: "consumer", Kind: "consumer", Chaos: true})
	if access.Listen() != "" || access.Admin() != "" || access.CPU(processes(t)) != 0 || access.Kill() != nil || access.Stop(t.Context()) != nil {
		t.Error("a member that never ran has an address, uses CPU, or cannot be stopped")
	}
	select {
	case <-access.Ended():
	default:
		t.Error("a member that never ran has not ended")
	}
	start(t, f)
	if !dials(access.Listen()) || !dials(access.Admin()) || !dials(consumer.Admin()) {
		t.Errorf("nobody answers at %q, %q or %q", access.Listen(), access.Admin(), consumer.Admin())
	}
	if consumer.Listen() != "" {
		t.Errorf("the consumer listens at %s: its kind serves nobody", consumer.Listen())
	}
	log := logOf(t, access)
	for _, want := range []string{"started seckill [access --id-seed ", "--play serve", " 127.0.0.1:6 k:00\n"} {
		if !strings.Contains(log, want) {
			t.Errorf("access's log %q lacks %q", log, want)
		}
	}
	if !strings.Contains(logOf(t, consumer), "started seckill-chaos [consumer ") {
		t.Error("the consumer is not of the chaos build")
	}
	if err := f.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "is running") {
		t.Errorf("a second start: %v, want that it is running", err)
	}
	if err := f.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if dials(access.Listen()) || access.EndSignal() != 0 {
		t.Error("access did not end in order")
	}
	if err := f.Stop(t.Context()); err != nil {
		t.Errorf("a second stop: %v", err)
	}
}

// R7.4.3: clients know an access process by its address, which a restart keeps.
func TestMemberKilledAndRestarted(t *testing.T) {
	f := newFleet(t, nil)
	m := add(t, f, Role{Name: "access-1", Kind: "access", Args: []string{"--play", "burn"}})
	if err := m.Restart(t.Context()); err == nil || !strings.Contains(err.Error(), "never ran") {
		t.Errorf("restart before any start: %v", err)
	}
	m.Arm("access.after-reserve=kill@1", "/hits")
	start(t, f)
	addr := m.Listen()
	if err := m.Restart(t.Context()); err == nil || !strings.Contains(err.Error(), "is running") {
		t.Errorf("restart of a running process: %v", err)
	}
	if m.EndSignal() != 0 {
		t.Errorf("a running process was ended by %v", m.EndSignal())
	}
	if err := m.Kill(); err != nil {
		t.Fatal(err)
	}
	<-m.Ended()
	if m.EndSignal() != syscall.SIGKILL || dials(addr) {
		t.Errorf("after Kill: signal %v, still answering: %v", m.EndSignal(), dials(addr))
	}
	before := m.CPU(processes(t))
	if before < 50*time.Millisecond {
		t.Fatalf("the first process used %v, it burned at least 100ms", before)
	}
	if err := m.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m.Listen() != addr || !dials(addr) {
		t.Errorf("restarted at %s, clients know %s", m.Listen(), addr)
	}
	// The second process burned as much; once more than both would be counted twice.
	if after := m.CPU(processes(t)); after < before+50*time.Millisecond || after > 2*before+500*time.Millisecond {
		t.Errorf("CPU over both processes is %v, the first used %v", after, before)
	}
	if err := f.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`started (\S+) \[access --id-seed (\w+) .*`).FindAllStringSubmatch(logOf(t, m), -1)
	if len(lines) != 2 {
		t.Fatalf("log shows %d starts", len(lines))
	}
	if lines[0][1] != "seckill-chaos" || !strings.Contains(lines[0][0], "--faultpoint access.after-reserve=kill@1 --faultpoint-file /hits") {
		t.Errorf("first start was not armed: %s", lines[0][0])
	}
	if lines[1][1] != "seckill" || strings.Contains(lines[1][0], "faultpoint") {
		t.Errorf("a restart is armed: %s", lines[1][0])
	}
	if lines[0][2] == lines[1][2] {
		t.Error("both processes have one id seed: they would make the same ids")
	}
}

func TestIDSeedsAreReplayedAndDiffer(t *testing.T) {
	a, b := newFleet(t, nil), newFleet(t, func(c *Config) { c.Seed++ })
	if a.idSeed("access-1", 0) != newFleet(t, nil).idSeed("access-1", 0) {
		t.Error("the same run has other seeds")
	}
	seeds := []string{a.idSeed("access-1", 0), a.idSeed("access-1", 1), a.idSeed("access-2", 0), b.idSeed("access-1", 0)}
	slices.Sort(seeds)
	if len(slices.Compact(seeds)) != 4 || len(seeds[0]) != 64 {
		t.Errorf("seeds are %v", seeds)
	}
}

func TestStopKillsWhatDoesNotEndInTimeAndNamesIt(t *testing.T) {
	f := newFleet(t, func(c *Config) { c.StopGrace = 50 * time.Millisecond })
	m := add(t, f, Role{Name: "scanner", Kind: "scanner", Args: []string{"--play", "stubborn"}})
	start(t, f)
	err := f.Stop(t.Context())
	if err == nil || !strings.Contains(err.Error(), "scanner") || !strings.Contains(err.Error(), "was killed") {
		t.Errorf("error is %v, want scanner and that it was killed", err)
	}
	<-m.Ended()
	if m.EndSignal() != syscall.SIGKILL {
		t.Errorf("it ended by %v", m.EndSignal())
	}
}

func TestARoleThatDiesBeforeItIsReadyFailsTheStartAtOnce(t *testing.T) {
	f := newFleet(t, nil)
	add(t, f, Role{Name: "consumer", Kind: "consumer", Args: []string{"--play", "die"}})
	add(t, f, Role{Name: "outbox", Kind: "outbox", Args: []string{"--play", "mute"}}) // would take the whole minute
	err := f.Start(t.Context())
	if err == nil {
		t.Fatal("the start succeeded")
	}
	for _, want := range []string{"start consumer", "exit code 2", "redis 127.0.0.1:1 refused the connection", "consumer.log"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "outbox") {
		t.Errorf("error %q blames a role that was not waited for", err)
	}
	if err := f.Stop(t.Context()); err != nil {
		t.Errorf("stop after a failed start: %v", err)
	}
}

func TestStartIsBounded(t *testing.T) {
	t.Run("by its timeout", func(t *testing.T) {
		f := newFleet(t, func(c *Config) { c.StartTimeout = 50 * time.Millisecond })
		m := add(t, f, Role{Name: "outbox", Kind: "outbox", Args: []string{"--play", "mute"}})
		err := f.Start(t.Context())
		if err == nil || !strings.Contains(err.Error(), "no ready line within 50ms") || !strings.Contains(err.Error(), "outbox.log") {
			t.Errorf("error is %v, want the timeout and the log", err)
		}
		if m.Admin() != "" {
			t.Error("it has an address, and is not ready")
		}
	})
	t.Run("by its context", func(t *testing.T) {
		f := newFleet(t, nil)
		add(t, f, Role{Name: "outbox", Kind: "outbox", Args: []string{"--play", "mute"}})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := f.Start(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v, want that it was cancelled", err)
		}
	})
}

func TestAMissingBinaryFailsTheStart(t *testing.T) {
	f := newFleet(t, func(c *Config) { c.Binaries.Plain += "-absent" })
	m := add(t, f, Role{Name: "outbox", Kind: "outbox"})
	if err := f.Start(t.Context()); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "start outbox") {
		t.Errorf("error is %v", err)
	}
	if m.CPU(processes(t)) != 0 || f.Stop(t.Context()) != nil {
		t.Error("a process that was not made used CPU, or cannot be stopped")
	}
}

func TestScrape(t *testing.T) {
	f := newFleet(t, nil)
	m := add(t, f, Role{Name: "access-1", Kind: "access"})
	broken := add(t, f, Role{Name: "access-2", Kind: "access", Args: []string{"--play", "broken"}})
	if _, err := m.Scrape(t.Context()); err == nil || !strings.Contains(err.Error(), "access-1: it is not ready") {
		t.Errorf("scrape before the start: %v", err)
	}
	start(t, f)
	metrics, err := m.Scrape(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := metrics.Count("seckill_requests_total"); n != 42 {
		t.Errorf("counted %d requests, want 42 over both labels", n)
	}
	if _, err := broken.Scrape(t.Context()); err == nil || !strings.Contains(err.Error(), "access-2: status 500") {
		t.Errorf("scrape of a broken process: %v", err)
	}
	if err := m.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Scrape(t.Context()); err == nil || !strings.Contains(err.Error(), "access-1: it has ended (signal: killed)") {
		t.Errorf("scrape of a dead process: %v", err)
	}
}

func TestRunOfACommand(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := newFleet(t, func(c *Config) { c.Binaries.Plain = self })
	t.Run("fails with its last line", func(t *testing.T) {
		_, err := f.Run(t.Context(), "migrate", "--play", "die")
		if err == nil || err.Error() != "seckill migrate --play die: exit status 2: seckill: redis 127.0.0.1:1 refused the connection" {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("is ended with its context", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := f.Run(ctx, "migrate", "--play", "hang"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("is bounded", func(t *testing.T) {
		f := newFleet(t, func(c *Config) { c.Binaries.Plain, c.StartTimeout = self, 50*time.Millisecond })
		if _, err := f.Run(t.Context(), "migrate", "--play", "hang"); err == nil || !strings.Contains(err.Error(), "seckill migrate --play hang: no end within 50ms") {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("gives what it printed", func(t *testing.T) {
		f := newFleet(t, func(c *Config) { c.Binaries.Plain = "/bin/echo" })
		if out, err := f.Run(t.Context(), "schema", "ready"); err != nil || out != "schema ready\n" {
			t.Errorf("printed %q, %v", out, err)
		}
	})
}

func TestFleetRefusesWhatCannotRun(t *testing.T) {
	f := newFleet(t, nil)
	add(t, f, Role{Name: "access-1", Kind: "access"})
	if _, err := f.Add(Role{Name: "access-1", Kind: "access"}); err == nil {
		t.Error("two roles of one name are taken")
	}
	for _, cfg := range []Config{{StartTimeout: 1}, {StopGrace: 1}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{StartTimeout: 1, StopGrace: 1, LogDir: file}); err == nil {
		t.Error("a file is taken for the folder of logs")
	}
}

func TestFindBinaries(t *testing.T) {
	full := filepath.Dir(product(t).Plain)
	t.Run("in a relative folder, never in PATH", func(t *testing.T) {
		t.Chdir(full)
		t.Setenv("PATH", t.TempDir())
		b, err := FindBinaries(".")
		if err != nil || b.Plain != filepath.Join(full, "seckill") || b.Chaos != filepath.Join(full, "seckill-chaos") {
			t.Errorf("found %+v, %v", b, err)
		}
	})
	half := t.TempDir()
	if err := os.WriteFile(filepath.Join(half, "seckill"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	notExecutable := t.TempDir()
	if err := os.WriteFile(filepath.Join(notExecutable, "seckill"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for dir, missing := range map[string]string{t.TempDir(): "seckill", half: "seckill-chaos", notExecutable: "seckill", "/absent": "seckill"} {
		t.Setenv("PATH", full)
		want := filepath.Join(dir, missing)
		if _, err := FindBinaries(dir); err == nil || !strings.Contains(err.Error(), want+" is missing: run `make build`") {
			t.Errorf("%s: error is %v, want that %s is missing and what to do", dir, err, want)
		}
	}
}

func TestLastLine(t *testing.T) {
	for out, want := range map[string]string{
		"": "it said nothing", "\n \n": "it said nothing", "one\n": "one", "one\ntwo\n\n": "two", "bad \xff\n": "bad �",
		strings.Repeat("ü", 500): strings.Repeat("ü", 400) + "…",
	} {
		if got := lastLine([]byte(out)); got != want {
			t.Errorf("last line of %q is %q, want %q", out, got, want)
		}
	}
}

// A setting of the product in the shell of whoever runs a scenario would
// change what is measured, and nothing would say so.
func TestNoSettingOfTheShellReachesAProcess(t *testing.T) {
	t.Setenv("SECKILL_USER_LIMIT", "1:1")
	t.Setenv("SECKILL_REDIS", "elsewhere:1")
	t.Setenv("HOTSKU_FLEET_TEST_KEPT", "yes")
	env := newFleet(t, nil).environment(stack.Addresses{})
	var settings []string
	for _, e := range env {
		if strings.HasPrefix(e, "SECKILL_") {
			settings = append(settings, e[:strings.IndexByte(e, '=')])
		}
	}
	want := []string{"SECKILL_REDIS", "SECKILL_POSTGRES", "SECKILL_NAME_SERVER", "SECKILL_BROKER", "SECKILL_TOKEN_KEY"}
	if !slices.Equal(settings, want) || !slices.Contains(env, "SECKILL_REDIS=127.0.0.1:6") || !slices.Contains(env, "HOTSKU_FLEET_TEST_KEPT=yes") {
		t.Errorf("processes get %v; want %v", settings, want)
	}
}

// The wrong designs' binary is found beside the product's, and stands for
// both builds.
func TestTheBinaryOfWrongDesigns(t *testing.T) {
	dir := t.TempDir()
	b := Binaries{Plain: filepath.Join(dir, "seckill"), Chaos: filepath.Join(dir, "seckill-chaos")}
	if err := CheckMutant(b); err == nil || !strings.Contains(err.Error(), "seckill-mutant is missing: run `make build`") {
		t.Errorf("none there: %v", err)
	}
	path := filepath.Join(dir, "seckill-mutant")
	if err := os.WriteFile(path, []byte("#!/bin/false\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := CheckMutant(b); err != nil {
		t.Error(err)
	}
	m := Mutated(b, "get-then-decr", "f")
	if m.Plain != path || m.Chaos != path || strings.Join(m.Before, " ") != "--mutant get-then-decr --mutant-file f" {
		t.Errorf("got %+v", m)
	}
}

// A wrong design is told which it is before the subcommand, whichever way the
// product is started.
func TestWordsBeforeTheSubcommand(t *testing.T) {
	f := newFleet(t, func(c *Config) {
		c.Binaries = Binaries{Plain: "/bin/echo", Chaos: "/bin/echo", Before: []string{"--mutant", "m"}}
	})
	if out, err := f.Run(t.Context(), "migrate"); err != nil || out != "--mutant m migrate\n" {
		t.Errorf("said %q, %v", out, err)
	}
	m, err := f.Add(Role{Name: "scanner", Kind: "scanner"})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.start(t.Context()); err == nil {
		t.Error("echo became ready")
	}
	said, err := os.ReadFile(filepath.Join(f.cfg.LogDir, "scanner.log"))
	if err != nil || !strings.HasPrefix(string(said), "--mutant m scanner --id-seed ") {
		t.Errorf("said %q, %v", said, err)
	}
}
