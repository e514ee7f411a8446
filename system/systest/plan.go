package systest

import (
	"strings"
	"testing"

	"github.com/hotsku/hotsku/system/postgres"
)

// Plan returns how the sessions of c execute a statement when its plan is
// made now, whatever its parameters, and kept: what a role does that prepared
// it before the sale began.
func Plan(t testing.TB, c postgres.Config, statement string) string {
	t.Helper()
	pool := Pool(t, c)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, q := range []string{"SET plan_cache_mode = force_generic_plan", "PREPARE planned AS " + statement} {
		if _, err := conn.Exec(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	var parameters int
	if err := conn.QueryRow(t.Context(), "SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = 'planned'").Scan(&parameters); err != nil {
		t.Fatal(err)
	}
	execute := "EXPLAIN (COSTS OFF) EXECUTE planned"
	if parameters > 0 {
		execute += " (" + strings.TrimSuffix(strings.Repeat("NULL, ", parameters), ", ") + ")"
	}
	rows, err := conn.Query(t.Context(), execute)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(line + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}
