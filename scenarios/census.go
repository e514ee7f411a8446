package scenarios

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/scenarios/customers"
	"github.com/hotsku/hotsku/scenarios/fleet"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// censusLimit bounds the census. Who could not be asked by then is missing in
// the evidence, and verify says so.
const censusLimit = 2 * time.Minute

// census has the owner of every accepted request ask what became of it, when
// all is over and the stores are copied: asking may mend what Redis forgot. A
// fleet without an orders process gets one for it.
func (r *runner) census(ctx context.Context) error {
	r.o.Progress.Phase("asking for every accepted request")
	owners, err := r.accepted()
	if err != nil {
		return err
	}
	addrs, err := r.membersServing("orders")
	if err != nil {
		m, err := r.fleet.Join(ctx, fleet.Role{Name: "orders", Kind: "orders"})
		if err != nil {
			return err
		}
		r.timeline.Add("bench", m.Name(), "started", nil, m.Listen())
		addrs = []string{m.Listen()}
	}
	c, err := r.customers(addrs)
	if err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, censusLimit)
	defer cancel()
	if err := c.Census(asking, owners); err != nil && ctx.Err() != nil {
		return fmt.Errorf("ask for every accepted request: %w", err)
	}
	return nil
}

// accepted lists whose request the edge accepted, by the history: each once,
// a seeded choice where there are more than the census takes.
func (r *runner) accepted() ([]customers.Owner, error) {
	h, err := history.OpenDir(r.dir.History())
	if err != nil {
		return nil, err
	}
	defer h.Close()
	seen := map[customers.Owner]struct{}{}
	var owners []customers.Owner
	for rec := (history.Record{}); ; {
		switch err := h.Next(&rec); {
		case errors.Is(err, io.EOF):
			rng := rand.New(rand.NewPCG(r.o.Seed, uint64(len(owners))))
			rng.Shuffle(len(owners), func(i, j int) { owners[i], owners[j] = owners[j], owners[i] })
			return owners[:min(len(owners), rundir.CensusMax)], nil
		case err != nil:
			return nil, err
		}
		if rec.Outcome != history.Completed || !seckill.Code(rec.Code).Accepted() {
			continue
		}
		o := customers.Owner{User: int64(rec.Subject), Ordinal: rec.Ordinal}
		if _, ok := seen[o]; !ok {
			seen[o] = struct{}{}
			owners = append(owners, o)
		}
	}
}
