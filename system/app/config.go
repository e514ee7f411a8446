package app

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/hotsku/hotsku/system/access"
	"github.com/hotsku/hotsku/system/access/submit"
	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/scanner"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/telemetry"
)

// Config is everything a role may be told. It is read once, at the edge.
type Config struct {
	Redis     reservation.Config
	Postgres  string // postgres://user@host:port/database
	MQ        mq.Config
	TokenKeys []seckill.TokenKey // the first signs, all verify

	Listen string // of access and orders
	Admin  string // loopback
	Zone   string // label of metrics and logs

	Access   access.Config
	Submit   submit.Config
	Scanner  scanner.Config
	Consumer ConsumerConfig

	Drain time.Duration // how long a role may take to end
}

// ConsumerConfig bounds the consumers by what the database bears (R15.8).
type ConsumerConfig struct {
	Workers int // transactions at once
	Batch   int // messages a transaction
}

// ConfigDefault is for one machine.
func ConfigDefault() Config {
	return Config{
		Listen: "127.0.0.1:8080", Admin: "127.0.0.1:0", Zone: "local",
		Access: access.ConfigDefault, Submit: submit.ConfigDefault, Scanner: scanner.ConfigDefault,
		Consumer: ConsumerConfig{Workers: 2, Batch: 128},
		Drain:    10 * time.Second,
	}
}

// ErrConfig wraps what is wrong with the configuration: nothing was started.
var ErrConfig = errors.New("configuration")

func (c *Config) validate(needs ...need) error {
	for _, n := range append(needs, needsAdmin) {
		if err := n(c); err != nil {
			return fmt.Errorf("%w: %w", ErrConfig, err)
		}
	}
	if c.Drain <= 0 || c.Drain > 10*time.Minute {
		return fmt.Errorf("%w: drain %v: must be positive and at most 10m", ErrConfig, c.Drain)
	}
	return nil
}

// need is a part of the configuration that a role cannot do without.
type need func(*Config) error

func needsAdmin(c *Config) error { return telemetry.CheckAdminAddr(c.Admin) }

func needsRedis(c *Config) error {
	if c.Redis.Addr == "" {
		return errors.New("no Redis: give --redis host:port")
	}
	if _, _, err := net.SplitHostPort(c.Redis.Addr); err != nil {
		return fmt.Errorf("redis address %q: must be host:port", c.Redis.Addr)
	}
	return nil
}

func needsPostgres(c *Config) error {
	if c.Postgres == "" {
		return errors.New("no PostgreSQL: give --postgres postgres://user@host:port/database")
	}
	return nil
}

func needsMQ(c *Config) error {
	if c.MQ.NameServer == "" {
		return errors.New("no RocketMQ: give --name-server IP:port")
	}
	return c.MQ.Validate()
}

func needsConsumer(c *Config) error {
	return c.consumer(seckill.TopicOrderCreate, seckill.GroupOrder).Validate()
}

func needsSubmit(c *Config) error { return c.Submit.Validate() }

func needsScanner(c *Config) error { return c.Scanner.Validate() }

// consumer is the configuration of a consumer of topic in group.
func (c *Config) consumer(topic, group string) mq.ConsumerConfig {
	return mq.ConsumerConfig{Config: c.MQ, Topic: topic, Group: group, Batch: c.Consumer.Batch, Workers: c.Consumer.Workers, Drain: c.Drain}
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
