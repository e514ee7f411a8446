package reservation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Config says how to reach Redis and for how long a reservation holds.
type Config struct {
	// Addr is host:port, or redis[s]://[user:password@]host[:port]. Username
	// and Password, if given, win over the URL's.
	Addr     string
	Username string // empty: the server's default user
	Password string // empty: none
	TLS      TLS
	PoolSize int           // connections; 0: PoolSizeDefault
	Timeout  time.Duration // dial, read and write where the call has no deadline; 0: TimeoutDefault

	Hold       time.Duration // expires_at - reserved_at; 0: HoldDefault
	FirstRetry time.Duration // when the scanner first looks; 0: FirstRetryDefault
	// Reopen is how long a returned unit waits before it may be reserved, so
	// that no gate refuses what another sells: above the age at which gates
	// distrust their knowledge. 0: ReopenDefault.
	Reopen time.Duration
	// SignalsKey is where figures are posted for access processes. One set of
	// figures speaks of one set of topics: systems that share a Redis need one
	// each. Empty: SignalsKeyDefault.
	SignalsKey string
}

// Defaults of Config.
const (
	PoolSizeDefault   = 16
	TimeoutDefault    = time.Second
	HoldDefault       = 5 * time.Minute
	FirstRetryDefault = time.Second
	ReopenDefault     = 220 * time.Millisecond
)

func (c Config) withDefaults() Config {
	if c.PoolSize == 0 {
		c.PoolSize = PoolSizeDefault
	}
	if c.Timeout == 0 {
		c.Timeout = TimeoutDefault
	}
	if c.Hold == 0 {
		c.Hold = HoldDefault
	}
	if c.FirstRetry == 0 {
		c.FirstRetry = FirstRetryDefault
	}
	if c.Reopen == 0 {
		c.Reopen = ReopenDefault
	}
	if c.SignalsKey == "" {
		c.SignalsKey = SignalsKeyDefault
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Addr == "":
		return errors.New("redis address is empty")
	case c.PoolSize < 1 || c.PoolSize > 1024:
		return fmt.Errorf("redis pool size %d: must be 1 to 1024", c.PoolSize)
	case c.Hold < time.Second:
		return fmt.Errorf("reservation hold %v: must be at least 1s", c.Hold)
	case c.FirstRetry < 10*time.Millisecond:
		return fmt.Errorf("first retry %v: must be at least 10ms", c.FirstRetry)
	}
	return nil
}

// Store is the reservations of all activities in one Redis. Safe for
// concurrent use; concurrency is bounded by the pool.
type Store struct {
	cfg  Config
	addr string // host:port
	rdb  *redis.Client

	warm, setStatus, reserve, markSent, noteFailure, claimDue, setAside, apply, restore, postSignals script
}

// New returns a store over the scripts in files (package lua). It does not
// connect; call Check.
func New(cfg Config, files fs.FS) (*Store, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("reservation store: %w", err)
	}
	options, err := cfg.options()
	if err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, addr: options.Addr}
	for name, dst := range map[string]*script{
		"warm.lua": &s.warm, "set_status.lua": &s.setStatus, "reserve.lua": &s.reserve,
		"mark_sent.lua": &s.markSent, "note_failure.lua": &s.noteFailure, "claim_due.lua": &s.claimDue,
		"set_aside.lua": &s.setAside, "apply.lua": &s.apply, "restore.lua": &s.restore, "post_signals.lua": &s.postSignals,
	} {
		var err error
		if *dst, err = loadScript(files, name); err != nil {
			return nil, fmt.Errorf("reservation store: %w", err)
		}
	}
	s.rdb = redis.NewClient(options)
	return s, nil
}

// Close closes the connections.
func (s *Store) Close() error { return s.rdb.Close() }

// Check connects, loads the scripts, and refuses a Redis that may evict:
// an evicted user mark would let a user buy twice.
func (s *Store) Check(ctx context.Context) error {
	policy, err := s.rdb.ConfigGet(ctx, "maxmemory-policy").Result()
	if err != nil {
		return wrap("check redis at "+s.addr, s.cfg.advise(err))
	}
	if p := policy["maxmemory-policy"]; p != "noeviction" {
		return fmt.Errorf("redis at %s has maxmemory-policy %q: set it to noeviction, evicted keys would be sold again", s.addr, p)
	}
	for _, sc := range []script{s.warm, s.setStatus, s.reserve, s.markSent, s.noteFailure, s.claimDue, s.setAside, s.apply, s.restore, s.postSignals} {
		if err := sc.Load(ctx, s.rdb).Err(); err != nil {
			return wrap("load script "+sc.name, s.cfg.advise(err))
		}
	}
	return nil
}

// Version is the server's version.
func (s *Store) Version(ctx context.Context) (string, error) {
	info, err := s.rdb.Info(ctx, "server").Result()
	if err != nil {
		return "", wrap("redis version", err)
	}
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "redis_version:"); ok {
			return v, nil
		}
	}
	return "", errors.New("redis version: not in INFO")
}
