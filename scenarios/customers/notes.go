package customers

import (
	"fmt"
	"sync"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// Notes is a run's queries.jsonl as it is written: what was asked, and what
// was answered. Safe for concurrent use; a nil one keeps nothing.
type Notes struct {
	mu   sync.Mutex
	rows *rundir.RowWriter
	err  error // the first failed write: evidence that was lost fails the run
}

// NewNotes starts dir's queries.
func NewNotes(dir rundir.Dir) (*Notes, error) {
	rows, err := rundir.CreateRows(dir.Queries())
	if err != nil {
		return nil, err
	}
	return &Notes{rows: rows}, nil
}

func (n *Notes) answered(q rundir.Query, a seckill.Answer) {
	q.Failed = ""
	q.Code, q.Status, q.Reason, q.OrderID, q.ReservationID = a.Code.String(), a.Status, a.Reason, a.OrderID, a.ReservationID
	n.add(q)
}

func (n *Notes) add(q rundir.Query) {
	if n == nil {
		return
	}
	q.Schema = rundir.QueriesSchema
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.rows.Write(q); err != nil && n.err == nil {
		n.err = fmt.Errorf("note a query: %w", err)
	}
}

// Close ends the file and returns the first error of all writes.
func (n *Notes) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	err := n.rows.Close()
	if n.err != nil {
		return n.err
	}
	return err
}
