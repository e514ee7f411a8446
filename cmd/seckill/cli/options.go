package cli

import (
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hotsku/hotsku/lua"
	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/faultpoint"
	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/settings"
	"github.com/hotsku/hotsku/system/telemetry"
)

// options is what the flags fill in.
type options struct {
	cfg        app.Config
	wiring     app.Wiring
	configFile string
	tokenKeys  []string
	logLevel   string
	userKey    string
	seed       string
	faults     []string
	faultsFile string
	broker     string
}

func (o *options) redisFlags(f *pflag.FlagSet) {
	f.StringVar(&o.cfg.Redis.Addr, "redis", o.cfg.Redis.Addr, "Redis, host:port or redis://host:port; with TLS rediss://host:port")
	settings.Secret(f, "redis", settings.InURL)
	f.StringVar(&o.cfg.Redis.Username, "redis-user", "", "Redis ACL user (default: the server's default user)")
	f.StringVar(&o.cfg.Redis.Password, "redis-password", "", "Redis password")
	settings.Secret(f, "redis-password", settings.Whole)
	f.StringVar(&o.cfg.Redis.TLS.CA, "redis-ca", "", "PEM file of who vouches for Redis' certificate (default: the machine's own list)")
	f.StringVar(&o.cfg.Redis.TLS.Cert, "redis-cert", "", "PEM file of our certificate, where Redis wants one")
	f.StringVar(&o.cfg.Redis.TLS.Key, "redis-key", "", "PEM file of its private key")
}

func (o *options) postgresFlags(f *pflag.FlagSet) {
	f.StringVar(&o.cfg.Postgres, "postgres", "", "PostgreSQL, postgres://user@host:port/database; with TLS ?sslmode=verify-full&sslrootcert=FILE")
	settings.Secret(f, "postgres", settings.InURL)
	f.StringVar(&o.cfg.PostgresPassword, "postgres-password", "", "PostgreSQL password (default: the one in --postgres)")
	settings.Secret(f, "postgres-password", settings.Whole)
}

// pool connects the commands that prepare a sale to PostgreSQL.
func (o *options) pool(ctx context.Context, name string) (*pgxpool.Pool, error) {
	if o.cfg.Postgres == "" {
		return nil, usageError{errors.New("no PostgreSQL: give --postgres postgres://user@host:port/database")}
	}
	cfg := o.cfg.Database(name)
	cfg.StatementTimeout = 10 * time.Minute // a large sale's tokens, a large table's migration
	pool, err := postgres.Open(ctx, cfg)
	if errors.As(err, new(*pgconn.ParseConfigError)) {
		return nil, usageError{err}
	}
	return pool, err
}

// migrated is pool, for a database whose schema is up to date: one that is
// not is said to be that, not to lack a table.
func (o *options) migrated(ctx context.Context, name string) (*pgxpool.Pool, error) {
	pool, err := o.pool(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := postgres.CheckSchema(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// redis connects the commands that prepare a sale to Redis.
func (o *options) redis() (*reservation.Store, error) {
	if o.cfg.Redis.Addr == "" {
		return nil, usageError{errors.New("no Redis: give --redis host:port")}
	}
	store, err := reservation.New(o.cfg.Redis, lua.FS)
	if err != nil {
		return nil, usageError{err}
	}
	return store, nil
}

func (o *options) mqFlags(f *pflag.FlagSet) {
	f.StringVar(&o.cfg.MQ.NameServer, "name-server", "", "RocketMQ name server, IP:port")
	f.StringVar(&o.cfg.MQ.AccessKey, "mq-access-key", "", "RocketMQ access key")
	f.StringVar(&o.cfg.MQ.SecretKey, "mq-secret-key", "", "RocketMQ secret key")
	settings.Secret(f, "mq-secret-key", settings.Whole)
	f.BoolVar(&o.cfg.MQ.TLS, "mq-tls", false, "encrypt what goes to RocketMQ; this does not tell who answers: the client library takes any certificate")
}

func (o *options) tokenFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&o.tokenKeys, "token-key", nil, "eligibility token key, ID:SECRET with the secret in hex; the first signs, all verify")
	settings.Secret(f, "token-key", settings.AfterColon)
}

// processFlags are those of every long-running role.
func (o *options) processFlags(f *pflag.FlagSet) {
	f.StringVar(&o.cfg.Admin, "admin", o.cfg.Admin, "loopback address of metrics, health and profiles")
	f.StringVar(&o.cfg.Zone, "zone", o.cfg.Zone, "availability zone, a label of the metrics")
	f.DurationVar(&o.cfg.Drain, "drain", o.cfg.Drain, "how long the role may take to end")
	f.DurationVar(&o.cfg.DrainDelay, "drain-delay", o.cfg.DrainDelay, "how long clients are still served after SIGTERM, with /readyz failing: as long as the balancer takes to notice")
	o.logFlags(f)
	f.Float64Var(&o.cfg.Trace.Ratio, "trace-ratio", 0, "share of reservations that access traces, 0 to 1, beside those of which a trusted peer's traceparent says so")
	f.StringVar(&o.cfg.Trace.Endpoint, "trace-endpoint", "", "where spans go, OTLP over HTTP: http://host:4318, a path taken as it is, /v1/traces without one (default: nowhere)")
	f.StringVar(&o.seed, "id-seed", "", "64 hex digits that feed ids and jitter, one of its own for each process (default: random)")
	if faultpoint.Enabled {
		f.StringArrayVar(&o.faults, "faultpoint", nil, fmt.Sprintf("arm NAME=kill@N or NAME=delay:DURATION@N; names: %v", seckill.FaultPoints()))
		f.StringVar(&o.faultsFile, "faultpoint-file", "", "where hits are noted")
	}
}

// logFlags has one default for all commands: they share the variable, and a
// flag sets it to its default when it is declared.
func (o *options) logFlags(f *pflag.FlagSet) {
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error; logs are JSON on standard error")
	f.StringVar(&o.userKey, "log-user-key", "", "key of user_id_hash in logs, 32 or more hex digits; one for all processes whose lines are read together (default: random)")
	settings.Secret(f, "log-user-key", settings.Whole)
}

// logHandler writes JSON lines at the level asked for, users by their hash.
func (o *options) logHandler(w io.Writer) (slog.Handler, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return nil, usageError{fmt.Errorf("--log-level %q: must be debug, info, warn or error", o.logLevel)}
	}
	key, err := telemetry.ParseUserKey(o.userKey)
	if err != nil {
		return nil, usageError{fmt.Errorf("--log-user-key: %w", err)}
	}
	return telemetry.NewLogHandler(w, level, key), nil
}

// logger is the process's; the client libraries' own lines go there, too.
func (o *options) logger() (*slog.Logger, error) {
	h, err := o.logHandler(os.Stderr)
	if err != nil {
		return nil, err
	}
	log := slog.New(h).With("availability_zone", o.cfg.Zone)
	mq.UseLogger(log)
	telemetry.UseErrorLog(log)
	redis.SetLogger(redisLog{log})
	return log, nil
}

// redisLog takes the Redis client's own lines: they repeat, in other words,
// the errors it returns.
type redisLog struct{ log *slog.Logger }

func (l redisLog) Printf(_ context.Context, format string, args ...any) {
	l.log.Debug("redis client: " + fmt.Sprintf(format, args...))
}

func (o *options) idSeed() (seed [32]byte, err error) {
	if o.seed == "" {
		_, err = crand.Read(seed[:])
		return seed, err
	}
	raw, err := hex.DecodeString(o.seed)
	if err != nil || len(raw) != len(seed) {
		return seed, usageError{fmt.Errorf("--id-seed: must be %d hex digits", 2*len(seed))}
	}
	copy(seed[:], raw)
	return seed, nil
}

// gcPercent is GOGC where the environment does not say otherwise.
const gcPercent = 800

// runRoles runs the command's roles until a signal.
func (o *options) runRoles(ctx context.Context, cmd *cobra.Command) error {
	if _, err := o.settle(cmd); err != nil {
		return err
	}
	log, err := o.logger()
	if err != nil {
		return err
	}
	for _, line := range misspelt(cmd.Root(), os.Environ()) {
		log.Warn("an environment variable does nothing", "why", line)
	}
	seed, err := o.idSeed()
	if err != nil {
		return err
	}
	if faultpoint.Enabled {
		if err := faultpoint.Arm(o.faults, o.faultsFile); err != nil {
			return usageError{err}
		}
	}
	// A role's live heap is a few megabytes, so the default of 100 collects
	// many times a second under load; the collector was a tenth of the burst.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	out := json.NewEncoder(cmd.OutOrStdout())
	return app.New(o.cfg, o.wiring, log, seed, func(r seckill.Ready) {
		if err := out.Encode(r); err != nil {
			log.Error("cannot print the ready line", "error", err)
		}
	}).Run(ctx, rolesOf(cmd.Name())...)
}
