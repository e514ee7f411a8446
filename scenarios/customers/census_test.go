package customers

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// noted reads back what was noted.
func noted(t *testing.T, dir rundir.Dir) []rundir.Query {
	t.Helper()
	var all []rundir.Query
	for q, err := range rundir.Rows[rundir.Query](dir.Queries()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, q)
	}
	return all
}

func noting(t *testing.T, addr string) (*Customers, *Notes, rundir.Dir) {
	t.Helper()
	dir := rundir.Dir(t.TempDir())
	notes, err := NewNotes(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{Addrs: []string{addr}, Workload: rundir.Workload{Seed: 7, FirstUser: 1000}, RatePerS: 1000,
		ActivityID: 10001, SKUID: 20001, Key: key, ExpiresAt: 1 << 40, Every: time.Hour, Notes: notes})
	if err != nil {
		t.Fatal(err)
	}
	return c, notes, dir
}

// R15.11: whatever is asked and answered is noted as it was, with its times.
func TestEveryAnswerIsNoted(t *testing.T) {
	w := &window{t: t, ends: map[string]string{}}
	served := httptest.NewServer(w)
	defer served.Close()
	c, notes, dir := noting(t, strings.TrimPrefix(served.URL, "http://"))
	began := time.Now().UnixMicro()
	for turn := range 100 {
		c.visit(turn, c.cfg.Workload.Pick(uint64(turn)))
	}
	c.client.CloseIdleConnections()
	if err := notes.Close(); err != nil {
		t.Fatal(err)
	}
	asked, ended := 0, 0
	for _, q := range noted(t, dir) {
		if q.Schema != rundir.QueriesSchema || q.Census || q.Failed != "" || q.Code != "FOUND" || q.SentUS < began || q.DoneUS < q.SentUS {
			t.Errorf("%+v", q)
		}
		if q.Ask == rundir.AskRequest {
			asked++
			if q.Status != "ORDER_CREATED" || q.OrderID != "of-"+q.RequestID || q.User < 1000 {
				t.Errorf("%+v", q)
			}
			continue
		}
		ended++
		if w.ends[q.Order] != q.Ask {
			t.Errorf("%+v, and it was %q", q, w.ends[q.Order])
		}
	}
	if asked != 100 || ended != len(w.ends) || ended == 0 {
		t.Errorf("%d asked and %d ended are noted, of 100 and %d", asked, ended, len(w.ends))
	}
}

// Each owner is asked for once, again where the answer says nothing, and one
// that is never answered is noted as that.
func TestTheCensusAsksForEveryOwner(t *testing.T) {
	var calls atomic.Int64
	served := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		a := seckill.Answer{Code: seckill.CodeFound, Status: "ORDER_CREATED"}
		if calls.Add(1)%3 == 0 {
			a = seckill.Answer{Code: seckill.CodeRateLimited}
		}
		_, _ = rw.Write(a.AppendJSON(nil))
	}))
	c, notes, dir := noting(t, strings.TrimPrefix(served.URL, "http://"))
	owners := []Owner{{User: 1000, Ordinal: 0}, {User: 1001, Ordinal: 1}, {User: 1002, Ordinal: 2}, {User: 1003, Ordinal: 3}}
	if err := c.Census(t.Context(), owners); err != nil {
		t.Fatal(err)
	}
	served.Close()
	if err := c.Census(t.Context(), owners[:1]); err != nil {
		t.Fatal(err)
	}
	if err := notes.Close(); err != nil {
		t.Fatal(err)
	}
	found, failed := map[string]int{}, 0
	for _, q := range noted(t, dir) {
		switch {
		case !q.Census:
			t.Errorf("%+v", q)
		case q.Failed != "":
			failed++
		case q.Code == "FOUND":
			found[q.RequestID]++
		}
	}
	for _, o := range owners {
		if id := c.cfg.Workload.RequestID(o.Ordinal); found[id] != 1 {
			t.Errorf("%s was answered %d times", id, found[id])
		}
	}
	if failed != censusTries {
		t.Errorf("%d tries without an answer are noted, want %d", failed, censusTries)
	}
}
