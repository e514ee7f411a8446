// Package postgres opens pools to the order database and brings its schema
// up to date. It knows settings and timeouts, and no table.
package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Open returns a pool whose server has answered once. The caller closes it.
func Open(ctx context.Context, c Config) (*pgxpool.Pool, error) {
	pc, err := c.pool()
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("postgres: open pool: %w", err)
	}
	pingCtx, cancel := context.WithTimeout(ctx, pc.ConnConfig.ConnectTimeout+pc.PingTimeout)
	defer cancel()
	if err := pool.Ping(pingCtx); err != nil {
		pool.Close()
		return nil, &OpenError{Addr: net.JoinHostPort(pc.ConnConfig.Host, strconv.Itoa(int(pc.ConnConfig.Port))), Err: err}
	}
	return pool, nil
}

// OpenError says that a server did not answer as it should.
type OpenError struct {
	Addr string // host:port
	Err  error
}

// Error is one line: of the attempts the driver lists, a line each, the last;
// and what to check where an option may be the cause.
func (e *OpenError) Error() string {
	text := strings.TrimSpace(e.Err.Error())
	text = "postgres: no connection to " + e.Addr + ": " + strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
	if check := check(e.Err); check != "" {
		text += ": " + check
	}
	return text
}

func (e *OpenError) Unwrap() error { return e.Err }

// SQLSTATEs of a server that does not let us in.
const (
	invalidAuthorization = "28000" // no line of pg_hba.conf fits, or a certificate is wanted
	invalidPassword      = "28P01"
)

// check is what to check of the options after err, if anything.
func check(err error) string {
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused) && refused.Code == invalidPassword:
		return "check the user in --postgres, and --postgres-password"
	case errors.As(err, &refused) && refused.Code == invalidAuthorization:
		return "check user, database and sslmode in --postgres"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return "check sslrootcert in --postgres, and its host"
	case strings.Contains(err.Error(), "server refused TLS connection"): // the driver has no type for it
		return "it speaks no TLS: check sslmode in --postgres"
	}
	return ""
}

// URLError says that a connection string cannot be read. It repeats nothing
// of the string, which may hold a password.
type URLError struct{ Err error }

func (e *URLError) Error() string {
	text := e.Err.Error()
	if i := strings.LastIndex(text, "`: "); i >= 0 {
		text = text[i+len("`: "):]
	}
	text, _, _ = strings.Cut(text, "\n")
	if strings.Contains(text, "keyword/value") { // the driver goes on with a piece of it
		text = "it is neither postgres://user@host:port/database nor words name=value"
	}
	return "postgres: read URL: " + text + ": check --postgres"
}

func (e *URLError) Unwrap() error { return e.Err }
