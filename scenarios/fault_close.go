package scenarios

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/hotsku/hotsku/chaos"
	"github.com/hotsku/hotsku/stack"
)

// CloseSale closes the activity as an operator does, when the seed says, From
// to Until after the load began.
type CloseSale struct{ From, Until time.Duration }

func (c CloseSale) name() string { return "close@activity" }

// Validate wants a span of the load.
func (c CloseSale) Validate() error { return checkSpan(c.From, c.Until) }

func (c CloseSale) fits(s *Scenario) error { return s.lastsUntil(c.Until) }

func (c CloseSale) build(at site) (chaos.Fault, error) {
	server, err := at.server(stack.PostgresName)
	if err != nil {
		return nil, err
	}
	return &chaos.Deed{Called: c.name(), On: strconv.Itoa(activityID), Moment: at.moment(c.From, c.Until), Check: server.Answers,
		Do: func(ctx context.Context) (map[string]int64, string, error) {
			said, err := at.fleet.Run(ctx, "activity", "close", "--activity", strconv.Itoa(activityID), "--sku", strconv.Itoa(skuID))
			return map[string]int64{"closed": 1}, strings.TrimSpace(said), err
		}}, nil
}
