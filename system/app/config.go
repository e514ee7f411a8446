package app

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/hotsku/hotsku/system/access"
	"github.com/hotsku/hotsku/system/access/submit"
	"github.com/hotsku/hotsku/system/dlq"
	"github.com/hotsku/hotsku/system/lifecycle"
	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/order"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/reconcile"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/scanner"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/telemetry"
	"github.com/hotsku/hotsku/system/valve"
)

// Config is everything a role may be told. It is read once, at the edge.
type Config struct {
	Redis    reservation.Config
	Postgres string // postgres://user@host:port/database, with sslmode and sslrootcert for TLS
	// PostgresPassword wins over one in Postgres; empty: that, or PGPASSWORD.
	PostgresPassword string
	MQ               mq.Config
	TokenKeys        []seckill.TokenKey // the first signs, all verify

	Listen       string // of access
	OrdersListen string // of orders
	Admin        string // loopback
	Zone         string // label of metrics and logs

	TLS      EdgeTLS // of access and orders
	Access   access.Config
	Submit   submit.Config
	Breaker  valve.BreakerConfig
	Valves   valve.WatcherConfig
	Scanner  scanner.Config
	Consumer ConsumerConfig
	Payment  PaymentConfig

	Reconcile   reconcile.Config
	DeadLetters dlq.Automatic // their automatic replay

	Trace telemetry.TraceConfig

	Drain time.Duration // how long a role may take to end
	// DrainDelay is how long a process that draws clients still serves them
	// after the signal, not ready any more: as long as a balancer takes to
	// notice. 0: not at all.
	DrainDelay time.Duration
}

// ConsumerConfig bounds the consumers by what the database bears (R15.8).
type ConsumerConfig struct {
	Workers int // transactions at once
	Batch   int // messages a transaction
	// Stall is when a client that gets none of its messages is started anew;
	// 0: never.
	Stall time.Duration
}

// ConfigDefault is for one machine.
func ConfigDefault() Config {
	return Config{
		Listen: "127.0.0.1:8080", OrdersListen: "127.0.0.1:8081", Admin: "127.0.0.1:0", Zone: "local",
		Access: access.ConfigDefault, Submit: submit.ConfigDefault, Scanner: scanner.ConfigDefault,
		Breaker: valve.BreakerConfigDefault, Valves: valve.WatcherConfigDefault,
		Consumer:  ConsumerConfig{Workers: 2, Batch: 128, Stall: mq.StallDefault},
		Payment:   PaymentConfig{Window: order.PaymentWindowDefault, Sweeper: lifecycle.SweeperConfigDefault},
		Reconcile: reconcile.ConfigDefault, DeadLetters: dlq.AutomaticDefault,
		Drain: 10 * time.Second,
	}
}

// ErrConfig wraps what is wrong with the configuration: nothing was started.
var ErrConfig = errors.New("configuration")

// Validate says whether roles could be started, by the first thing that is
// wrong, in one line that wraps ErrConfig.
func (c Config) Validate(roles ...Role) error {
	if len(roles) == 0 {
		return fmt.Errorf("%w: no role", ErrConfig)
	}
	for _, role := range roles {
		p, err := role.part()
		if err != nil {
			return err
		}
		own := c.as(role)
		for _, n := range append(p.needs, needsProcess) {
			if err := n(&own); err != nil {
				return fmt.Errorf("%w: %w", ErrConfig, err)
			}
		}
	}
	return nil
}

// as is the configuration as the role reads it: Listen is its own.
func (c Config) as(role Role) Config {
	if role == RoleOrders {
		c.Listen = c.OrdersListen
	}
	return c
}

// need is a part of the configuration that a role cannot do without.
type need func(*Config) error

func needsProcess(c *Config) error {
	if err := telemetry.CheckAdminAddr(c.Admin); err != nil {
		return err
	}
	if err := c.Trace.Validate(); err != nil {
		return err
	}
	if c.Drain <= 0 || c.Drain > drainMax {
		return fmt.Errorf("drain %v: must be positive and at most %v", c.Drain, drainMax)
	}
	if c.DrainDelay < 0 || c.DrainDelay > drainMax {
		return fmt.Errorf("drain delay %v: must not be negative, and at most %v", c.DrainDelay, drainMax)
	}
	return nil
}

// drainMax bounds both parts of a drain.
const drainMax = 10 * time.Minute

func needsRedis(c *Config) error {
	if c.Redis.Addr == "" {
		return errors.New("no Redis: give --redis host:port")
	}
	return c.Redis.Validate()
}

func needsPostgres(c *Config) error {
	if c.Postgres == "" {
		return errors.New("no PostgreSQL: give --postgres postgres://user@host:port/database")
	}
	return nil
}

// Database is how name reaches PostgreSQL.
func (c Config) Database(name string) postgres.Config {
	return postgres.Config{URL: c.Postgres, Password: c.PostgresPassword, ApplicationName: "seckill-" + name}
}

func needsMQ(c *Config) error {
	if c.MQ.NameServer == "" {
		return errors.New("no RocketMQ: give --name-server IP:port")
	}
	return c.MQ.Validate()
}

func needsPayment(c *Config) error { return c.Payment.validate() }

func needsConsumer(c *Config) error {
	return c.consumer(seckill.TopicOrderCreate, seckill.GroupOrder).Validate()
}

func needsSubmit(c *Config) error {
	return cmp.Or(c.Submit.Validate(), c.Breaker.Validate(), c.Valves.Validate())
}

func needsReconcile(c *Config) error { return cmp.Or(c.Reconcile.Validate(), c.DeadLetters.Validate()) }

func needsScanner(c *Config) error { return c.Scanner.Validate() }

// consumer is the configuration of a consumer of topic in group.
func (c *Config) consumer(topic, group string) mq.ConsumerConfig {
	return mq.ConsumerConfig{Config: c.MQ, Topic: topic, Group: group, Batch: c.Consumer.Batch, Workers: c.Consumer.Workers, Drain: c.Drain,
		Stall: c.Consumer.Stall}
}

func needsListen(c *Config) error {
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fmt.Errorf("listen address %q: must be host:port", c.Listen)
	}
	if len(c.TokenKeys) == 0 {
		return errors.New("no token key: give --token-key ID:SECRET (secret of 32 or more hex digits)")
	}
	return nil
}

// ParseTokenKey reads ID:SECRET, the secret in hex.
func ParseTokenKey(text string) (seckill.TokenKey, error) {
	id, secret, ok := strings.Cut(text, ":")
	if !ok {
		return seckill.TokenKey{}, errors.New("token key: want ID:SECRET, the secret in hex")
	}
	raw, err := hex.DecodeString(secret)
	if err != nil {
		return seckill.TokenKey{}, fmt.Errorf("token key %q: the secret is not hex", id)
	}
	key := seckill.TokenKey{ID: id, Secret: raw}
	if _, err := seckill.NewTokenCodec(key); err != nil {
		return seckill.TokenKey{}, err
	}
	return key, nil
}
