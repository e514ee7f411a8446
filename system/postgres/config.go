package postgres

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Defaults of Config.
const (
	MaxConnsDefault         = 4
	ConnectTimeoutDefault   = 3 * time.Second
	PingTimeoutDefault      = 2 * time.Second
	StatementTimeoutDefault = 10 * time.Second
)

// Config says how a role talks to PostgreSQL. Zero values take the defaults.
type Config struct {
	// URL is a connection string, postgres://user@host:port/database.
	// sslmode and sslrootcert in it say how TLS is used, and the driver's
	// defaults hold otherwise.
	URL string
	// Password, if given, wins over the URL's and the environment's.
	Password string
	// ApplicationName appears in pg_stat_activity: the role's name.
	ApplicationName string
	// MaxConns bounds the pool, and so everything concurrent behind it.
	MaxConns int
	// ConnectTimeout bounds making one connection.
	ConnectTimeout time.Duration
	// PingTimeout bounds the liveness check of a pooled connection that was
	// idle; without it a black-holed server holds a caller for ever.
	PingTimeout time.Duration
	// StatementTimeout ends, at the server, a statement nobody waits for.
	StatementTimeout time.Duration
	// Settings are further run-time parameters of each session.
	Settings map[string]string
}

// ConsumerSettings are the session parameters the set-based transactions
// need. Plans cached while the tables are near empty stay sequential scans
// for the whole sale (2x slower by its end), hence enable_seqscan=off; JIT
// only delays statements this short; and durability is asked for by name, so
// that no server default can take it away.
func ConsumerSettings() map[string]string {
	return map[string]string{
		"enable_seqscan":     "off",
		"jit":                "off",
		"synchronous_commit": "on",
	}
}

// QueueSettings are the session parameters of who takes rows from a table in
// order, a batch at a time. A plan made while the table is near empty reads
// all rows that wait and sorts them, for each batch: the index in that order,
// read until the batch is full, costs the same however long the queue is.
func QueueSettings() map[string]string {
	return map[string]string{
		"enable_seqscan":    "off",
		"enable_bitmapscan": "off",
		"jit":               "off",
	}
}

func (c Config) withDefaults() Config {
	if c.ApplicationName == "" {
		c.ApplicationName = "seckill"
	}
	if c.MaxConns == 0 {
		c.MaxConns = MaxConnsDefault
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = ConnectTimeoutDefault
	}
	if c.PingTimeout == 0 {
		c.PingTimeout = PingTimeoutDefault
	}
	if c.StatementTimeout == 0 {
		c.StatementTimeout = StatementTimeoutDefault
	}
	return c
}

// Validate reports the first thing that is wrong, in one line.
func (c Config) Validate() error {
	switch {
	case c.URL == "":
		return errors.New("postgres: no URL given (postgres://user@host:port/database)")
	case c.MaxConns < 0 || c.MaxConns > 1000:
		return fmt.Errorf("postgres: max conns %d: must be 1 to 1000", c.MaxConns)
	case c.ConnectTimeout < 0, c.PingTimeout < 0, c.StatementTimeout < 0:
		return errors.New("postgres: a timeout is negative")
	}
	return nil
}

// pool translates the configuration to pgxpool's.
func (c Config) pool() (*pgxpool.Config, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	out, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, &URLError{err}
	}
	if c.Password != "" {
		out.ConnConfig.Password = c.Password
	}
	out.MaxConns = int32(c.MaxConns)
	out.PingTimeout = c.PingTimeout
	out.ConnConfig.ConnectTimeout = c.ConnectTimeout
	params := out.ConnConfig.RuntimeParams
	params["application_name"] = c.ApplicationName
	params["timezone"] = "UTC"
	params["statement_timeout"] = strconv.FormatInt(c.StatementTimeout.Milliseconds(), 10)
	// A client that vanished without a word must not hold its row locks.
	params["idle_in_transaction_session_timeout"] = params["statement_timeout"]
	maps.Copy(params, c.Settings)
	return out, nil
}
