package order

import (
	"strings"
	"testing"

	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/systest"
)

// The plans are made while the tables are empty and kept for the whole sale:
// what is looked up by id must be, then, too. A scan of the SKU's orders for
// each batch took more of PostgreSQL than everything else together.
func TestBatchesAreLookedUpByTheirIds(t *testing.T) {
	sql, err := loadStatements(SQL)
	if err != nil {
		t.Fatal(err)
	}
	c := postgres.Config{URL: systest.Database(t), Settings: postgres.ConsumerSettings()}
	for name, s := range map[string]struct{ statement, condition string }{
		"buyers":       {sql.buyersRead, "(user_id = u.user_id)"},
		"reservations": {sql.decidedRead, "(reservation_id = ANY ($1))"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := systest.Plan(t, c, s.statement)
			for line := range strings.Lines(plan) {
				if strings.Contains(line, "Index Cond") && strings.Contains(line, s.condition) {
					return
				}
			}
			t.Errorf("%s is no condition of an index:\n%s", s.condition, plan)
		})
	}
}
