package scenarios

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hotsku/hotsku/chaos"
	"github.com/hotsku/hotsku/stack"
)

//go:embed sql/*.sql
var statements embed.FS

// Database changes what PostgreSQL holds by the statements of sql/DEED.sql,
// when the seed says, From to Until after the load began; sql/DEED.undo.sql
// takes that back, on the same connection.
type Database struct {
	Deed        string
	From, Until time.Duration
}

func (d Database) name() string { return d.Deed + "@" + stack.PostgresName }

// Validate wants statements there are.
func (d Database) Validate() error {
	for _, file := range []string{d.Deed + ".sql", d.Deed + ".undo.sql"} {
		if _, err := fs.Stat(statements, "sql/"+file); err != nil {
			return fmt.Errorf("there is no deed %q of the database: %w", d.Deed, err)
		}
	}
	return checkSpan(d.From, d.Until)
}

func (d Database) fits(s *Scenario) error { return s.lastsUntil(d.Until) }

func (d Database) build(at site) (chaos.Fault, error) {
	server, err := at.server(stack.PostgresName)
	if err != nil {
		return nil, err
	}
	do, err := statements.ReadFile("sql/" + d.Deed + ".sql")
	if err != nil {
		return nil, err
	}
	undo, err := statements.ReadFile("sql/" + d.Deed + ".undo.sql")
	if err != nil {
		return nil, err
	}
	var conn *pgx.Conn // from the deed until it is undone
	return &chaos.Deed{Called: d.name(), On: server.Name(), Moment: at.moment(d.From, d.Until), Check: server.Answers,
		Do: func(ctx context.Context) (map[string]int64, string, error) {
			if conn, err = pgx.Connect(ctx, at.direct.Postgres); err != nil {
				return nil, "", err
			}
			if _, err := conn.PgConn().Exec(ctx, string(do)).ReadAll(); err != nil {
				return nil, "", err
			}
			return map[string]int64{"done": 1}, d.Deed, nil
		},
		Undo: func(ctx context.Context) error {
			if conn == nil {
				return nil
			}
			_, err := conn.PgConn().Exec(ctx, string(undo)).ReadAll()
			return errors.Join(err, conn.Close(ctx))
		}}, nil
}
