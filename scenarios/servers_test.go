package scenarios

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotsku/hotsku/stack"
	"github.com/hotsku/hotsku/stack/remoting"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// shortSale is a sale without a fault.
func shortSale() Scenario {
	s := small()
	s.Faults, s.SLOs, s.Invariants = nil, nil, invariantsAll()
	s.Load.Duration, s.Load.RatePerS, s.Converge = time.Second, 300, time.Minute
	return s
}

// The next run finds nothing of the last in servers that were kept: no row,
// no key, no message, not even one that the broker was to deliver later. A
// run that went wrong, or whose fault was a server's, keeps none.
func TestTheNextRunFindsNothingOfTheLast(t *testing.T) {
	state := stateFolder(t)
	servers := &Servers{}
	defer servers.Close()
	parent := t.TempDir()
	pids := func() map[string]int {
		out := map[string]int{}
		for _, s := range servers.idle.Servers() {
			out[s.Name()] = s.PID()
		}
		return out
	}
	one := func(name string, seed uint64) rundir.Dir {
		t.Helper()
		dir := rundir.Dir(filepath.Join(parent, name))
		run, err := Run(t.Context(), shortSale(), Options{Dir: dir, Seed: seed, SLOMode: rundir.SLOReport, Progress: &watcher{}, Binaries: product(t), Servers: servers})
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range run.Invariants {
			if i.Status == rundir.StatusViolated {
				t.Errorf("%s: %s violated: %v", name, i.ID, i.Witness)
			}
		}
		if run.Orders.Valid == 0 {
			t.Fatalf("%s sold nothing: %v", name, run.Reasons)
		}
		if !servers.keeps() {
			t.Fatalf("%s kept no servers", name)
		}
		return dir
	}

	first := one("first", 1)
	before := pids()
	due := time.Now().Add(2 * time.Second) // before the next run's load
	leave(t, servers.idle.Addresses().Broker, "left-at-once", time.Time{})
	leave(t, servers.idle.Addresses().Broker, "left-for-later", due)

	second := one("second", 2)
	if time.Now().Before(due) {
		t.Fatal("the delayed message was not due yet: it proves nothing")
	}
	for name, pid := range pids() {
		if warm := name == stack.PostgresName || name == stack.NameServerName; warm && pid != before[name] {
			t.Errorf("%s was started anew, as pid %d", name, pid)
		}
	}
	old := messageKeys(t, first)
	for _, key := range messageKeys(t, second) {
		if slices.Contains(old, key) || strings.HasPrefix(key, "left-") {
			t.Errorf("a message of the first run is in the snapshot of the second: %s", key)
		}
	}
	ids := reservationIDs(t, first)
	for _, id := range reservationIDs(t, second) {
		if slices.Contains(ids, id) {
			t.Errorf("a reservation of the first run is in the snapshot of the second: %s", id)
		}
	}
	began, err := second.ReadPlan()
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range rundir.Rows[rundir.LogEntry](second.RedisLog()) {
		if err != nil || e.AtUS < began.CreatedAt.UnixMicro() {
			t.Errorf("the change log has an entry of before the run: %+v, %v", e, err)
		}
	}
	if err := servers.Close(); err != nil || servers.keeps() {
		t.Errorf("close: %v, keeps %v", err, servers.keeps())
	}
	nothingIsLeft(t, state)
}

// Servers are kept only after a run without a fault in one of them, though
// the server be there again.
func TestServersAreKeptOnlyIfNothingHappenedToThem(t *testing.T) {
	state := stateFolder(t)
	s, err := stack.Up(t.Context(), stack.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{stack: s, began: found(s)}
	if !r.sound() {
		t.Error("servers to which nothing happened are not kept")
	}
	if err := s.Redis.Kill(); err != nil {
		t.Fatal(err)
	}
	if r.sound() {
		t.Error("a server died, and they are kept")
	}
	if err := s.Redis.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.sound() {
		t.Error("a server died and was started again, and they are kept")
	}
	k := &Servers{}
	if err := k.give(s, stack.Options{}, r.sound()); err != nil || k.keeps() {
		t.Errorf("kept %v, %v", k.keeps(), err)
	}
	nothingIsLeft(t, state)
}

// leave stores a message in the create topic, to be delivered at a time if it
// is given.
func leave(t *testing.T, broker, key string, at time.Time) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	conn, err := remoting.Dial(ctx, broker)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	properties := "KEYS\x01" + key + "\x02"
	if !at.IsZero() {
		properties += fmt.Sprintf("TIMER_DELIVER_MS\x01%d\x02", at.UnixMilli())
	}
	answer, _, err := conn.Call(ctx, 10 /* SEND_MESSAGE */, map[string]string{
		"producerGroup": "test", "topic": seckill.TopicOrderCreate, "defaultTopic": "TBW102", "defaultTopicQueueNums": "8",
		"queueId": "0", "sysFlag": "0", "bornTimestamp": "0", "flag": "0", "properties": properties,
		"reconsumeTimes": "0", "unitMode": "false", "batch": "false"}, []byte(`{}`))
	if err != nil || answer.Code != 0 {
		t.Fatalf("leave a message: %+v, %v", answer, err)
	}
}

func messageKeys(t *testing.T, dir rundir.Dir) (keys []string) {
	t.Helper()
	for m, err := range rundir.Rows[rundir.Message](dir.Messages()) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, m.Keys)
	}
	if len(keys) == 0 {
		t.Fatalf("%s has no message", dir)
	}
	return keys
}

func reservationIDs(t *testing.T, dir rundir.Dir) (ids []string) {
	t.Helper()
	for row, err := range rundir.Rows[map[string]any](dir.Table("inventory_reservation")) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, fmt.Sprint(row["reservation_id"]))
	}
	if len(ids) == 0 {
		t.Fatalf("%s has no reservation", dir)
	}
	return ids
}
