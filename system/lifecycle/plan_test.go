package lifecycle

import (
	"strings"
	"testing"

	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/systest"
)

// A look for overdue orders does not read those that are not due.
func TestASweepReadsOnlyWhatIsDue(t *testing.T) {
	plan := systest.Plan(t, postgres.Config{URL: systest.Database(t), Settings: postgres.ConsumerSettings()}, sweepLease)
	for line := range strings.Lines(plan) {
		if strings.Contains(line, "Index Cond") && strings.Contains(line, "payment_due_at <=") {
			return
		}
	}
	t.Errorf("the due time is no condition of an index:\n%s", plan)
}
