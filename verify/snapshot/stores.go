package snapshot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// Defaults of Config.
const (
	PollIntervalDefault = 200 * time.Millisecond
	CallTimeoutDefault  = 5 * time.Second
)

// Config says where the stores are and what of them to copy.
type Config struct {
	Redis      string // host:port
	Postgres   string // connection URL
	NameServer string // host:port of the RocketMQ name server
	Activities []rundir.Activity
	// TopicPrefix stands before every topic and group name at the broker; the
	// snapshot holds the names without it.
	TopicPrefix string
	// Consumers are the groups whose lag counts, with their topics; nil takes
	// ConsumersDefault.
	Consumers []Consumer
	// PollInterval is the time between two looks while waiting for
	// quiescence; 0 takes PollIntervalDefault.
	PollInterval time.Duration
	// CallTimeout bounds one call to a store; 0 takes CallTimeoutDefault.
	CallTimeout time.Duration
}

// Consumer is a group and what it consumes, without prefix.
type Consumer struct {
	Group  string
	Topics []string
}

// ConsumersDefault are the system's groups, with their retry topics. A check
// that an order was paid counts from when the broker hands it out, which is
// when it is due: it may end an order whose end is then to be published.
func ConsumersDefault() []Consumer {
	return []Consumer{
		{seckill.GroupOrder, []string{seckill.TopicOrderCreate, rundir.RetryPrefix + seckill.GroupOrder}},
		{seckill.GroupProjector, []string{seckill.TopicEvent, rundir.RetryPrefix + seckill.GroupProjector}},
		{seckill.GroupExpiry, []string{seckill.TopicExpiry, rundir.RetryPrefix + seckill.GroupExpiry}},
	}
}

func (c Config) withDefaults() (Config, error) {
	if c.Consumers == nil {
		c.Consumers = ConsumersDefault()
	}
	if c.PollInterval == 0 {
		c.PollInterval = PollIntervalDefault
	}
	if c.CallTimeout == 0 {
		c.CallTimeout = CallTimeoutDefault
	}
	switch {
	case c.Redis == "" || c.Postgres == "" || c.NameServer == "":
		return c, errors.New("the addresses of Redis, PostgreSQL and the name server are required")
	case len(c.Activities) == 0:
		return c, errors.New("no activity")
	case c.PollInterval < 0 || c.CallTimeout < 0:
		return c, errors.New("poll interval and call timeout must be positive")
	}
	return c, nil
}

// Stores are the live stores, connected. Connections are made when needed
// and made again after a store was gone. Not safe for concurrent use.
type Stores struct {
	cfg    Config
	redis  *redis.Client
	pg     *pgx.Conn // nil while not connected
	broker *broker
}

// Open checks cfg. It does not connect: a store that is down when a run ends
// is a finding of Quiesce, not an error of Open.
func Open(cfg Config) (*Stores, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return &Stores{
		cfg: cfg,
		redis: redis.NewClient(&redis.Options{Addr: cfg.Redis, MaxRetries: -1, ContextTimeoutEnabled: true,
			ReadTimeout: cfg.CallTimeout, WriteTimeout: cfg.CallTimeout, DialTimeout: cfg.CallTimeout, DialerRetries: 1, PoolSize: 2}),
		broker: newBroker(cfg.NameServer, cfg.CallTimeout),
	}, nil
}

// Close ends all connections.
func (s *Stores) Close() error {
	err := errors.Join(s.redis.Close(), s.broker.close())
	if s.pg != nil {
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.CallTimeout)
		defer cancel()
		err = errors.Join(err, s.pg.Close(ctx))
		s.pg = nil
	}
	return err
}

// Take copies the stores into dir. q is what Quiesce found; base is what
// Counters said before the load.
func (s *Stores) Take(ctx context.Context, dir rundir.Dir, q Quiescence, base Counters) error {
	shot := rundir.Snapshot{Schema: rundir.SnapshotSchema, TakenAt: time.Now().UTC(), Quiescent: q.Quiescent,
		WaitedMS: q.Waited.Milliseconds(), Pending: q.Last.Pending, Lag: q.Last.Lag, Outbox: q.Last.Outbox, Overdue: q.Last.Overdue}
	now, err := s.Counters(ctx)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	shot.Commits, shot.WALBytes = now.Commits-base.Commits, now.WALBytes-base.WALBytes
	if shot.Versions, err = s.versions(ctx); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	if err := s.takeRedis(ctx, dir); err != nil {
		return fmt.Errorf("snapshot of Redis: %w", err)
	}
	if err := s.takePostgres(ctx, dir); err != nil {
		return fmt.Errorf("snapshot of PostgreSQL: %w", err)
	}
	if err := s.takeBroker(ctx, dir); err != nil {
		return fmt.Errorf("snapshot of the broker: %w", err)
	}
	// Last: without it the snapshot is not whole.
	if err := rundir.WriteJSON(dir.Snapshot(), shot); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	return nil
}

func (s *Stores) versions(ctx context.Context) (v rundir.Versions, err error) {
	if v.Redis, err = s.redisVersion(ctx); err != nil {
		return v, err
	}
	if v.Postgres, err = s.postgresVersion(ctx); err != nil {
		return v, err
	}
	v.RocketMQ, err = s.broker.version(ctx, s.cfg.TopicPrefix+seckill.TopicOrderCreate)
	return v, err
}
