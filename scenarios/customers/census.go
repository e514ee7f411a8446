package customers

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// Owner is whose request was accepted.
type Owner struct {
	User    int64
	Ordinal uint32 // of the request id
}

// The census: how often one is asked for that got no answer, or was told to
// come again, and how long between.
const (
	censusTries = 5
	censusPause = 200 * time.Millisecond
)

// Census asks once for each owner's request, and returns when all were
// answered or given up, or with ctx.
func (c *Customers) Census(ctx context.Context, owners []Owner) error {
	defer c.client.CloseIdleConnections()
	var asking errgroup.Group
	asking.SetLimit(visitsAtOnce)
	for i, o := range owners {
		if ctx.Err() != nil {
			break
		}
		asking.Go(func() error { c.askAgain(ctx, i, o); return nil })
	}
	_ = asking.Wait() // those who ask return no error
	return ctx.Err()
}

func (c *Customers) askAgain(ctx context.Context, turn int, o Owner) {
	q := rundir.Query{Census: true, Ask: rundir.AskRequest, User: o.User, RequestID: c.cfg.Workload.RequestID(o.Ordinal)}
	for try := range censusTries {
		a, ok := c.call(turn+try, q)
		if ok && a.Code != seckill.CodeRateLimited && a.Code != seckill.CodeUnavailable {
			return
		}
		pause := time.NewTimer(censusPause)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}
