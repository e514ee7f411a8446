// Package postgres opens pools to the order database and brings its schema
// up to date. It knows settings and timeouts, and no table.
package postgres

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

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

// Error is one line: of the attempts the driver lists, a line each, the last.
func (e *OpenError) Error() string {
	text := strings.TrimSpace(e.Err.Error())
	return "postgres: no connection to " + e.Addr + ": " + strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

func (e *OpenError) Unwrap() error { return e.Err }
