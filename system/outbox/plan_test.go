package outbox

import (
	"strings"
	"testing"

	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/systest"
)

// A batch costs the same however many events wait: they are read in the
// index's order, never all of them and sorted.
func TestALeaseReadsNoMoreThanItTakes(t *testing.T) {
	plan := systest.Plan(t, postgres.Config{URL: systest.Database(t), Settings: postgres.QueueSettings()}, leaseDue)
	if !strings.Contains(plan, "Index Scan using event_outbox_unpublished") || strings.Contains(plan, "Sort") || strings.Contains(plan, "Seq Scan") {
		t.Errorf("the plan is\n%s", plan)
	}
}
