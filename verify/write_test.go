package verify

import (
	"context"
	"os"
	"testing"

	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/verify/rundir"
)

type fataler interface {
	Helper()
	Fatal(...any)
}

// memory is a folder in memory where there is one: the tests write thousands
// of synced files.
func memory() string {
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); err == nil && info.IsDir() {
		return shm
	}
	return ""
}

// scratch is a folder that ends with the test.
func scratch(t *testing.T) string {
	t.Helper()
	path, err := os.MkdirTemp(memory(), "verify-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(path) })
	return path
}

func writeRows[T any](t fataler, path string, rows []T) {
	t.Helper()
	w, err := rundir.CreateRows(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if err := w.Write(&rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// write leaves the world as a run directory.
func (w *world) write(t fataler, dir rundir.Dir) {
	t.Helper()
	for path, v := range map[string]any{dir.Plan(): w.plan, dir.Snapshot(): w.snapshot} {
		if err := rundir.WriteJSON(path, v); err != nil {
			t.Fatal(err)
		}
	}
	writeRows(t, dir.Timeline(), w.timeline)
	writeRows(t, dir.Queries(), w.queries)
	writeRows(t, dir.RedisKeys(), w.keys)
	writeRows(t, dir.RedisLog(), w.log)
	writeRows(t, dir.Messages(), w.messages)
	writeRows(t, dir.Offsets(), w.offsets)
	writeRows(t, dir.Table("inventory_token"), w.tokens)
	writeRows(t, dir.Table("sku_inventory"), w.skus)
	writeRows(t, dir.Table("orders"), w.orders)
	writeRows(t, dir.Table("order_items"), w.items)
	writeRows(t, dir.Table("inventory_reservation"), w.reservations)
	writeRows(t, dir.Table("inventory_ledger"), w.ledger)
	writeRows(t, dir.Table("consumer_inbox"), w.inbox)
	writeRows(t, dir.Table("event_outbox"), w.outbox)
	writeRows(t, dir.Table("dead_letter"), w.letters)
	writeRows(t, dir.Table("activity"), []map[string]any{{"activity_id": activityID, "status": "RUNNING"}})
	w.writeHistory(t, dir)
}

func (w *world) writeHistory(t fataler, dir rundir.Dir) {
	t.Helper()
	if err := os.MkdirAll(dir.History(), 0o755); err != nil {
		t.Fatal(err)
	}
	const files = 2
	for i := range files {
		h, err := history.Create(dir.History(), i, history.Header{StartUnixNano: w.start.UnixNano()})
		if err != nil {
			t.Fatal(err)
		}
		for j := i; j < len(w.records); j += files {
			if err := h.Append(&w.records[j]); err != nil {
				t.Fatal(err)
			}
		}
		unrecorded := uint64(0)
		if i == 0 {
			unrecorded = w.unrecorded
		}
		if err := h.Close(unrecorded); err != nil {
			t.Fatal(err)
		}
	}
}

// judge writes the world and judges it.
func (w *world) judged(t *testing.T) *rundir.Run {
	t.Helper()
	dir := rundir.Dir(scratch(t))
	w.write(t, dir)
	return judgeDir(t, dir)
}

func judgeDir(t fataler, dir rundir.Dir) *rundir.Run {
	t.Helper()
	run, err := Judge(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return run
}
