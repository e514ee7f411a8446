// Package fleet runs the product's processes for a scenario: every role as
// its own process of the real binary, as an operator would run them. It
// starts, kills, restarts and stops them, and reads what they measured.
//
// Imports allowed: stack and stack/proc, system/seckill for the ready line.
package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hotsku/hotsku/stack"
	"github.com/hotsku/hotsku/system/seckill"
)

// Binaries are the product's: Plain, and Chaos with fault points. Before are
// words that each is given before its subcommand.
type Binaries struct {
	Plain, Chaos string
	Before       []string
}

// FindBinaries looks for the product's binaries in dir.
func FindBinaries(dir string) (Binaries, error) {
	dir, err := filepath.Abs(dir) // a bare name would be looked up in PATH
	if err != nil {
		return Binaries{}, fmt.Errorf("find the product's binaries: %w", err)
	}
	b := Binaries{Plain: filepath.Join(dir, "seckill"), Chaos: filepath.Join(dir, "seckill-chaos")}
	for _, path := range []string{b.Plain, b.Chaos} {
		if _, err := exec.LookPath(path); err != nil {
			return b, fmt.Errorf("the product's binary %s is missing: run `make build`", path)
		}
	}
	return b, nil
}

// CheckMutant says whether the binary of the wrong designs is beside b's.
func CheckMutant(b Binaries) error {
	path := mutantOf(b)
	if _, err := exec.LookPath(path); err != nil {
		return fmt.Errorf("the wrong designs' binary %s is missing: run `make build`", path)
	}
	return nil
}

func mutantOf(b Binaries) string { return filepath.Join(filepath.Dir(b.Plain), "seckill-mutant") }

// Mutated are the binaries beside b's of which every process is the wrong
// design of that name, and notes its firings in file.
func Mutated(b Binaries, name, file string) Binaries {
	path := mutantOf(b)
	return Binaries{Plain: path, Chaos: path, Before: []string{"--mutant", name, "--mutant-file", file}}
}

// Role says which process to run.
type Role struct {
	Name  string   // unique in the fleet, "access-1"
	Kind  string   // subcommand of seckill
	Args  []string // beside the addresses
	Env   []string // NAME=VALUE, instead of the fleet's own: one role may dial another address
	Chaos bool     // the chaos build
	Nice  int      // 0 to 19: what the process gives way to others
	// Addresses is where it finds the servers; its zero value: where the fleet does.
	Addresses stack.Addresses
}

// Config of a fleet.
type Config struct {
	Binaries  Binaries
	Addresses stack.Addresses
	TokenKey  string // ID:SECRET
	LogDir    string // one log a process
	Seed      uint64 // each process's ids are a function of it, its name and its restarts
	// StartTimeout bounds one process's way to its ready line, and one command
	// of Run.
	StartTimeout time.Duration
	// StopGrace is how long a process may take to end by SIGTERM.
	StopGrace time.Duration
}

// Fleet is a set of running roles. Safe for concurrent use.
type Fleet struct {
	cfg     Config
	mu      sync.Mutex
	members map[string]*Member
}

// New returns an empty fleet.
func New(cfg Config) (*Fleet, error) {
	if cfg.StartTimeout <= 0 || cfg.StopGrace <= 0 {
		return nil, errors.New("fleet: start timeout and stop grace must be positive")
	}
	if err := os.MkdirAll(cfg.LogDir, 0o755); err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	return &Fleet{cfg: cfg, members: map[string]*Member{}}, nil
}

// Add makes a member; it runs once Start or its own start is called.
func (f *Fleet) Add(r Role) (*Member, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.members[r.Name] != nil {
		return nil, fmt.Errorf("fleet: two roles are named %s", r.Name)
	}
	m := &Member{fleet: f, role: r}
	f.members[r.Name] = m
	return m, nil
}

// Join adds a member to a fleet that runs, and returns when it is ready.
func (f *Fleet) Join(ctx context.Context, r Role) (*Member, error) {
	m, err := f.Add(r)
	if err != nil {
		return nil, err
	}
	return m, m.start(ctx)
}

// Members returns all, by name.
func (f *Fleet) Members() []*Member {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]*Member, 0, len(f.members))
	for _, name := range slices.Sorted(maps.Keys(f.members)) {
		out = append(out, f.members[name])
	}
	return out
}

// Start starts every member at once and returns when all are ready, or when
// one failed: the others are then not waited for. Stop ends what runs.
func (f *Fleet) Start(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, m := range f.Members() {
		g.Go(func() error { return m.start(ctx) })
	}
	return g.Wait()
}

// Stop ends every member at once, by SIGTERM; those that do not end in time
// are killed and named in the error.
func (f *Fleet) Stop(ctx context.Context) error {
	members := f.Members()
	errs := make([]error, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		wg.Go(func() { errs[i] = m.Stop(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Run runs one of the product's commands to its end, such as migrate, and
// returns what it printed.
func (f *Fleet) Run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, f.cfg.StartTimeout, fmt.Errorf("no end within %v", f.cfg.StartTimeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, f.cfg.Binaries.Plain, slices.Concat(f.cfg.Binaries.Before, args)...)
	cmd.Env = f.environment(f.cfg.Addresses)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C reaches the harness alone
	cmd.WaitDelay = time.Second                           // a child of it may hold its output open
	out, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return string(out), nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("seckill %s: %w", strings.Join(args, " "), context.Cause(ctx))
	case errors.As(err, &exit):
		return "", fmt.Errorf("seckill %s: %w: %s", strings.Join(args, " "), err, lastLine(exit.Stderr))
	}
	return "", fmt.Errorf("seckill %s: %w", strings.Join(args, " "), err)
}

// environment is the shell's but for the product's settings: what is measured
// is what the scenario says, whoever runs it.
func (f *Fleet) environment(a stack.Addresses) []string {
	if a == (stack.Addresses{}) {
		a = f.cfg.Addresses
	}
	env := slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "SECKILL_") })
	return append(env, "SECKILL_REDIS="+a.Redis, "SECKILL_POSTGRES="+a.Postgres, "SECKILL_NAME_SERVER="+a.NameServer,
		"SECKILL_BROKER="+a.Broker, "SECKILL_TOKEN_KEY="+f.cfg.TokenKey)
}

// idSeed is one process's seed.
func (f *Fleet) idSeed(name string, start int) string {
	b := binary.LittleEndian.AppendUint64(nil, f.cfg.Seed)
	b = binary.LittleEndian.AppendUint64(b, uint64(start))
	sum := sha256.Sum256(append(b, name...))
	return hex.EncodeToString(sum[:])
}

func readyLine(line []byte) (seckill.Ready, bool) {
	var r seckill.Ready
	return r, json.Unmarshal(line, &r) == nil && r.Role != "" && r.PID > 0
}

// lastLine is the last line that says something, cut to what fits a message.
func lastLine(out []byte) string {
	const most = 400
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(out), "�")), "\n")
	line := []rune(lines[len(lines)-1])
	if len(line) > most {
		line = append(line[:most], '…')
	}
	if len(line) == 0 {
		return "it said nothing"
	}
	return string(line)
}
