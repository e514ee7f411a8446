package stack

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
)

// After a reset nothing is left of what was written, settings included, the servers that need not
// start anew did not, and the stack works and ends as a new one.
func TestResetLeavesNothingOfWhatWas(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	base := testBase(t)
	s := up(t, Options{Base: base, Name: "warm"})
	pids := map[string]int{}
	for _, server := range s.Servers() {
		pids[server.Name()] = server.PID()
	}
	for _, st := range stores(s) {
		if err := st.write(ctx, "answered"); err != nil {
			t.Fatal(err)
		}
		if got, err := st.read(ctx); err != nil || got != "answered" {
			t.Fatalf("%s holds %q, %v: nothing to forget", st.server.Name(), got, err)
		}
	}
	if _, err := redisCommand(ctx, s.Addresses().Redis, "CONFIG SET appendfsync everysec"); err != nil {
		t.Fatal(err)
	}
	session, err := pgx.Connect(ctx, s.Addresses().Postgres) // one that somebody forgot
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close(context.WithoutCancel(ctx))
	if _, err := session.Exec(ctx, "ALTER SYSTEM SET synchronous_commit = off"); err != nil {
		t.Fatal(err)
	}

	if err := s.Reset(ctx); err != nil {
		t.Fatal(err)
	}
	for _, st := range stores(s) {
		if got, err := st.read(ctx); err == nil && got == "answered" {
			t.Errorf("%s still holds what was written", st.server.Name())
		}
	}
	if topics, _, err := callRemoting(ctx, s.Addresses().Broker, 21 /* GET_ALL_TOPIC_CONFIG */, nil, nil); err != nil || topics.Code != 0 {
		t.Errorf("the broker does not answer: %+v, %v", topics, err)
	}
	for _, server := range s.Servers() {
		anew := server.Name() == RedisName || server.Name() == BrokerName
		if got := server.PID(); got == 0 || (got != pids[server.Name()]) != anew {
			t.Errorf("%s had pid %d and has %d; started anew should be %v", server.Name(), pids[server.Name()], got, anew)
		}
		if info, err := os.Stat(server.LogPath()); err != nil || !anew && server.Name() != PostgresName && info.Size() > 0 {
			t.Errorf("the log of %s was not begun anew: %v", server.Name(), err)
		}
	}
	testSettings(t, s)
	for _, st := range stores(s) {
		if err := st.write(ctx, "answered"); err != nil {
			t.Errorf("%s: %v", st.server.Name(), err)
		}
		if got, err := st.read(ctx); err != nil || got != "answered" {
			t.Errorf("%s: wrote after the reset, read %q, %v", st.server.Name(), got, err)
		}
	}
	l := s.lock
	down(t, s)
	wantNothingLeft(t, base, l)
	wantEmpty(t, base)
}

func TestAResetThatIsCancelledCanBeTakenDown(t *testing.T) {
	base := testBase(t)
	s := up(t, Options{Base: base})
	ctx, cancel := context.WithCancelCause(deadline(t))
	cancel(errors.New("interrupted"))
	if err := s.Reset(ctx); err == nil {
		t.Error("a reset that was cancelled before it began says that it is done")
	}
	down(t, s)
	wantEmpty(t, base)
}
