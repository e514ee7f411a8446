package stack

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/hotsku/hotsku/stack/proc"
	"github.com/jackc/pgx/v5"
)

// Database is the database every stack has; its owner is PostgresUser, a superuser.
const (
	Database     = "hotsku"
	PostgresUser = "postgres"
)

func newPostgres(l layout, record recordFunc) (*native, error) {
	run, err := unprivileged()
	if err != nil {
		return nil, err
	}
	pg := postgres{layout: l, runAs: run, record: record}
	return &native{
		name: PostgresName, addr: loopback(l.ports.Postgres), record: record,
		stopGrace: stopGrace, stopSignal: syscall.SIGINT, // fast shutdown: sessions are ended, a checkpoint is written
		prepare: pg.prepare,
		spec: func() proc.Spec {
			// SIGQUIT to the postmaster takes its backends along.
			spec := pg.spec("postgres", "-D", pg.data(), "-c", "config_file="+pg.conf())
			spec.ParentDeath = syscall.SIGQUIT
			spec.Detached = l.detached
			spec.Nice = l.nice[PostgresName]
			return spec
		},
		answers: func(ctx context.Context, _ *proc.Process) error { return pg.ready(ctx) },
	}, nil
}

type postgres struct {
	layout
	runAs  *syscall.Credential
	record recordFunc
}

func (pg postgres) data() string { return filepath.Join(pg.folder(PostgresName), "data") }
func (pg postgres) conf() string { return filepath.Join(pg.folder(PostgresName), "postgresql.conf") }

func (pg postgres) spec(program string, args ...string) proc.Spec {
	return proc.Spec{
		Name: PostgresName, Path: filepath.Join(pg.binaries.PostgresBin, program), Args: args,
		Env: []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"},
		Dir: pg.folder(PostgresName), LogPath: pg.log(PostgresName), Credential: pg.runAs,
	}
}

func dsn(port int, password, database string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(PostgresUser, password), Host: loopback(port),
		Path: "/" + database, RawQuery: "sslmode=disable"}
	return u.String()
}

// prepare writes the configuration and, the first time, creates the data folder.
func (pg postgres) prepare(ctx context.Context) error {
	dir := pg.folder(PostgresName)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := render("postgresql.conf.tmpl", pg.conf(), struct{ Port int }{pg.ports.Postgres}); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(pg.data(), "PG_VERSION")); err == nil {
		return nil
	}
	if err := os.Mkdir(pg.data(), 0o700); err != nil {
		return err
	}
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte(pg.postgresPassword), 0o600); err != nil {
		return err
	}
	if pg.runAs != nil {
		for _, path := range []string{pg.data(), password} {
			if err := os.Chown(path, int(pg.runAs.Uid), int(pg.runAs.Gid)); err != nil {
				return err
			}
		}
	}
	if err := pg.initdb(ctx, password); err != nil {
		return err
	}
	return os.Remove(password)
}

func (pg postgres) initdb(ctx context.Context, password string) error {
	spec := pg.spec("initdb", "-D", pg.data(), "-U", PostgresUser, "--pwfile="+password,
		"--auth-local=reject", "--auth-host=scram-sha-256", "--encoding=UTF8", "--locale=C",
		"--no-sync", "--no-instructions")
	spec.Name = "initdb"
	p, err := proc.Start(spec)
	if err != nil {
		return err
	}
	if err := pg.record(spec.Name, p.Identity()); err != nil {
		return errors.Join(err, p.Kill())
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), p.Kill())
	}
	if state, _ := p.ExitState(); state.Code != 0 {
		return p.EarlyExit()
	}
	return nil
}

// ready connects and creates the database if it is missing.
func (pg postgres) ready(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*probeTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn(pg.ports.Postgres, pg.postgresPassword, "postgres"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", Database).Scan(&exists); err != nil {
		return fmt.Errorf("look for database %s: %w", Database, err)
	}
	if exists {
		return nil
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{Database}.Sanitize()); err != nil {
		return fmt.Errorf("create database %s: %w", Database, err)
	}
	return recycleWAL(ctx, conn)
}

// walSegments are what a run writes in WAL, and more.
const walSegments = 8

// recycleWAL leaves the server with WAL segments to write into, as one that
// has been up for a while has them. Without them each 16 MiB of a run begin
// with a new file, zeroed and flushed: every flush on the disk, Redis' and the
// broker's too, then waits for up to a tenth of a second.
func recycleWAL(ctx context.Context, conn *pgx.Conn) error {
	for range walSegments {
		if _, err := conn.Exec(ctx, "SELECT pg_logical_emit_message(false, '', ''), pg_switch_wal()"); err != nil {
			return fmt.Errorf("switch WAL: %w", err)
		}
	}
	if _, err := conn.Exec(ctx, "CHECKPOINT"); err != nil {
		return fmt.Errorf("recycle WAL: %w", err)
	}
	return nil
}

// unprivileged is the user PostgreSQL runs as: it refuses root. nil means the caller's own.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("stack: PostgreSQL must not run as root and there is no user postgres: run make setup, or hotsku as another user (%w)", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("stack: user postgres: %w", err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("stack: user postgres: %w", err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
