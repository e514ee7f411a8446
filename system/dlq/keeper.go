package dlq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// KeeperConfig says how often to look. Zero values take the defaults.
type KeeperConfig struct {
	Pool      *pgxpool.Pool
	Sender    Sender
	Automatic Automatic     // default AutomaticDefault
	Every     time.Duration // between two looks; default 5 s
	Call      time.Duration // bound of one; default 10 s
	Log       *slog.Logger  // default: discard
}

// Keeper replays what is due and knows what is open. Several may run.
type Keeper struct {
	cfg KeeperConfig

	Replayed atomic.Int64

	mu      sync.Mutex
	backlog []Backlog
}

// NewKeeper checks the configuration and returns a keeper.
func NewKeeper(c KeeperConfig) (*Keeper, error) {
	if c.Automatic == (Automatic{}) {
		c.Automatic = AutomaticDefault
	}
	if c.Every == 0 {
		c.Every = 5 * time.Second
	}
	if c.Call == 0 {
		c.Call = 10 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.Pool == nil || c.Sender == nil:
		return nil, errors.New("dead-letter keeper: pool and sender are required")
	case c.Every < 0 || c.Call < 0:
		return nil, fmt.Errorf("dead-letter keeper: every %v and call %v must be positive", c.Every, c.Call)
	}
	if err := c.Automatic.Validate(); err != nil {
		return nil, err
	}
	return &Keeper{cfg: c}, nil
}

// Backlog is what was open at the last look, by class.
func (k *Keeper) Backlog() []Backlog {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.backlog
}

// Run looks until ctx ends. Failures are logged and tried again at the next.
func (k *Keeper) Run(ctx context.Context) {
	tick := time.NewTicker(k.cfg.Every)
	defer tick.Stop()
	for {
		if err := k.look(ctx); err != nil && ctx.Err() == nil {
			k.cfg.Log.Warn("dead letters not looked after", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (k *Keeper) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, k.cfg.Call)
	defer cancel()
	sent, err := k.cfg.Automatic.ReplayDue(ctx, k.cfg.Pool, k.cfg.Sender)
	if sent > 0 {
		k.Replayed.Add(int64(sent))
		k.cfg.Log.Info("dead letters replayed", "messages", sent)
	}
	open, serr := Summary(ctx, k.cfg.Pool)
	if serr == nil {
		k.mu.Lock()
		k.backlog = open
		k.mu.Unlock()
	}
	return errors.Join(err, serr)
}
