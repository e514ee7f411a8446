package admission

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/hotsku/hotsku/system/reservation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Time in these tests is synctest's: it stands still while anyone works.

var item = reservation.SKU{ActivityID: 7, SKUID: 8}

const (
	winner   = 100
	stranger = 200
)

// journal is a change log in memory, in which an entry's id is its number.
type journal struct {
	mu      sync.Mutex
	skus    []reservation.SKU
	entries []reservation.Change
	delay   time.Duration // of a reply that was made at once
	err     error
	reads   int
	hold    func(read int) // called before the n-th read is answered
}

func (j *journal) Activities(context.Context) ([]reservation.SKU, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.skus), j.err
}

func (j *journal) ReadLog(ctx context.Context, _, _ int64, after string) ([]reservation.Change, bool, error) {
	j.mu.Lock()
	j.reads++
	n, hold, delay, err := j.reads, j.hold, j.delay, j.err
	var out []reservation.Change
	for _, c := range j.entries {
		if later(c.ID, after) && len(out) < reservation.LogReadMax {
			out = append(out, c)
		}
	}
	j.mu.Unlock()
	if hold != nil {
		hold(n)
	}
	select {
	case <-ctx.Done():
		return nil, false, ctx.Err()
	case <-time.After(delay):
	}
	return out, len(out) < reservation.LogReadMax, err
}

// later compares stream ids as Redis does.
func later(a, b string) bool {
	var am, as, bm, bs uint64
	fmt.Sscanf(a, "%d-%d", &am, &as)
	fmt.Sscanf(b, "%d-%d", &bm, &bs)
	return am > bm || am == bm && as > bs
}

func (j *journal) write(op string, stock int64, users ...int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	next := 1
	if n := len(j.entries); n > 0 {
		fmt.Sscanf(j.entries[n-1].ID, "%d-", &next)
		next++
	}
	j.entries = append(j.entries, reservation.Change{ID: strconv.Itoa(next) + "-0", Op: op, Users: users, Stock: stock})
}

func (j *journal) set(change func(j *journal)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change(j)
}

// soldOut is a sale of one unit, over.
func soldOut() *journal {
	j := &journal{skus: []reservation.SKU{item}}
	j.write("init", 1)
	j.write("reserve", 0, winner)
	return j
}

var poll = GateConfigDefault.Poll

// bubble runs test beside a running gate, once it had time to read.
func bubble(t *testing.T, j ChangeLog, test func(t *testing.T, g *Gate)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(GateConfigDefault, j, slog.New(slog.DiscardHandler))
		time.Sleep(time.Millisecond) // a clock never stands at its start
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { g.Run(ctx) })
		synctest.Wait()
		test(t, g)
		cancel()
		running.Wait()
	})
}

func (g *Gate) refuses(user int64) bool { return g.Refuses(item.ActivityID, item.SKUID, user) }

func expect(t *testing.T, g *Gate, want bool, when string) {
	t.Helper()
	if got := g.refuses(stranger); got != want {
		t.Errorf("%s: refuses a stranger: %v, want %v", when, got, want)
	}
	if g.refuses(winner) {
		t.Errorf("%s: refuses a member", when)
	}
}
