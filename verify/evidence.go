package verify

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/hotsku/hotsku/verify/rundir"
)

// source is one piece of evidence, by its path in the run directory.
type source string

// The evidence.
const (
	fromPlan     source = "plan.json"
	fromHistory  source = "history"
	fromTimeline source = "timeline.jsonl"
	fromQueries  source = "queries.jsonl"
	fromSnapshot source = "stores/snapshot.json"
	fromKeys     source = "stores/redis/keys.jsonl"
	fromLog      source = "stores/redis/log.jsonl"
	fromMessages source = "stores/broker/messages.jsonl"
	fromOffsets  source = "stores/broker/offsets.jsonl"

	fromSKUs         source = "stores/postgres/sku_inventory.jsonl"
	fromActivities   source = "stores/postgres/activity.jsonl"
	fromTokens       source = "stores/postgres/inventory_token.jsonl"
	fromOrders       source = "stores/postgres/orders.jsonl"
	fromItems        source = "stores/postgres/order_items.jsonl"
	fromReservations source = "stores/postgres/inventory_reservation.jsonl"
	fromLedger       source = "stores/postgres/inventory_ledger.jsonl"
	fromInbox        source = "stores/postgres/consumer_inbox.jsonl"
	fromOutbox       source = "stores/postgres/event_outbox.jsonl"
	fromDeadLetters  source = "stores/postgres/dead_letter.jsonl"
)

// evidence is a run directory in memory. What a faulty source should have
// given is absent: checks say which sources they need.
type evidence struct {
	dir      rundir.Dir
	plan     *rundir.Plan
	snapshot *rundir.Snapshot
	timeline []rundir.TimelineEvent
	queries  []rundir.Query
	offsets  []rundir.Offset
	sales    []*sale // one a planned activity, in the plan's order
	bySKU    map[skuKey]*sale
	outbox   int64 // events not published
	answers  *answers
	messages int64      // create messages stored for planned activities
	stored   []position // of every create message, in the file's order

	deliveries []delivery // create messages, sent back ones, and what was given up
	letters    []rundir.DeadLetterRow

	faults  map[source]*rundir.EvidenceError
	found   []*rundir.EvidenceError // the same, in the order of reading
	altered []*rundir.AlteredError

	conservationDelta int64 // set by I3
	oversold          int64 // set by I1
}

// gather reads all there is. The error is the context's; everything wrong
// with the evidence is in the evidence.
func gather(ctx context.Context, dir rundir.Dir) (*evidence, error) {
	e := &evidence{dir: dir, faults: map[source]*rundir.EvidenceError{}, bySKU: map[skuKey]*sale{}}
	plan, err := dir.ReadPlan()
	if err != nil {
		e.fault(fromPlan, err)
		return e, nil
	}
	if err := CheckSLOs(plan.SLOs); err != nil {
		e.fault(fromPlan, err)
		return e, nil
	}
	e.plan = plan
	for _, a := range plan.Activities {
		s := newSale(a)
		e.sales = append(e.sales, s)
		e.bySKU[s.key()] = s
	}
	e.readStores()
	e.timeline = collect[rundir.TimelineEvent](e, fromTimeline)
	e.readQueries()
	for _, s := range e.sales {
		s.sort()
	}
	if err := e.readHistory(ctx); err != nil {
		return nil, err
	}
	return e, ctx.Err()
}

// fault notes that a source cannot be used.
func (e *evidence) fault(s source, err error) {
	ev := &rundir.EvidenceError{}
	if !errors.As(err, &ev) {
		ev = &rundir.EvidenceError{File: string(s), Offset: -1, Reason: err.Error()}
	}
	ev = &rundir.EvidenceError{File: e.relative(ev.File), Offset: ev.Offset, Reason: ev.Reason}
	e.faults[s] = ev
	e.found = append(e.found, ev)
}

// relative names a file by its place in the run directory, so that a verdict
// reads the same wherever the directory lies.
func (e *evidence) relative(path string) string {
	if rel, err := filepath.Rel(string(e.dir), path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// rows gives each row of a row file to use. Rows of a file found faulty
// halfway were used: checks must not look at what a faulty source gave.
func rows[T any](e *evidence, s source, use func(*T)) {
	for row, err := range rundir.Rows[T](filepath.Join(string(e.dir), filepath.FromSlash(string(s)))) {
		var altered *rundir.AlteredError
		switch {
		case errors.As(err, &altered):
			e.altered = append(e.altered, &rundir.AlteredError{
				File: e.relative(altered.File), Found: altered.Found, Recorded: altered.Recorded})
		case err != nil:
			e.fault(s, err)
		default:
			use(&row)
		}
	}
}

func collect[T any](e *evidence, s source) []T {
	var all []T
	rows(e, s, func(row *T) { all = append(all, *row) })
	return all
}

// quiescent says that the stores were copied when nothing was pending any
// more. Before that, what is undecided is only late.
func (e *evidence) quiescent() bool { return e.snapshot != nil && e.snapshot.Quiescent }

// redisMayLose says that the plan declares the loss of acknowledged Redis
// writes (invariants.md, loss contracts): an extra reservation is then
// allowed if it ends rejected.
func (e *evidence) redisMayLose() bool {
	return e.lossDeclared(rundir.LossRedisFailover) || e.lossDeclared(rundir.LossRedisRestoredOlder) || e.lossDeclared(rundir.LossRedisEverysec)
}

func (e *evidence) lossDeclared(contract string) bool {
	return slices.Contains(e.plan.LossContracts, contract)
}

// skuKey names one SKU of one activity.
type skuKey struct{ activity, sku int64 }

func (k skuKey) String() string { return fmt.Sprintf("activity %d SKU %d", k.activity, k.sku) }
