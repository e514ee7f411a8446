package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// Reset gives a running stack the state of a new one, on the same ports, and its servers' logs begin
// anew. PostgreSQL and the name server go on running: the first gets a new database and loses what ALTER
// SYSTEM set. Redis and the broker start anew on empty folders: a broker keeps delayed messages beside its topics
// and delivers them when they are due, so that only an empty one is free of what was. An error leaves the
// stack in a state that is fit for Down only.
func (s *Stack) Reset(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, server := range s.natives {
		switch server.name {
		case RedisName, BrokerName:
			g.Go(func() error { return server.renew(ctx) })
		case PostgresName:
			g.Go(func() error { return s.renewDatabase(ctx, server) })
		case NameServerName:
			g.Go(server.emptyLog)
		}
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("stack: reset: %w", err)
	}
	return nil
}

// renew starts the server on an empty folder.
func (s *native) renew(ctx context.Context) error {
	if err := s.Kill(); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Dir(s.LogPath())); err != nil {
		return fmt.Errorf("empty the folder of %s: %w", s.name, err)
	}
	return s.Start(ctx)
}

// renewDatabase ends every session on the database, and leaves an empty one of that name.
func (s *Stack) renewDatabase(ctx context.Context, server *native) (err error) {
	config, err := pgx.ParseConfig(s.addresses.Postgres)
	if err != nil {
		return err
	}
	config.Database = "postgres"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	for _, statement := range []string{
		"ALTER SYSTEM RESET ALL", "SELECT pg_reload_conf()",
		"DROP DATABASE IF EXISTS " + pgx.Identifier{Database}.Sanitize() + " WITH (FORCE)",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	if err := server.emptyLog(); err != nil {
		return err
	}
	return server.answers(ctx, server.process()) // which creates the database
}

// emptyLog empties the log of a running server, which appends to it.
func (s *native) emptyLog() error {
	if err := os.Truncate(s.LogPath(), 0); err != nil {
		return fmt.Errorf("empty the log of %s: %w", s.name, err)
	}
	return nil
}
