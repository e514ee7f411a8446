package reconcile_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hotsku/hotsku/system/reconcile"
	"github.com/hotsku/hotsku/system/reservation"
)

// answers is a Redis that says what it is told to say.
type answers struct {
	reconcile.Store
	say chan reservation.Replication // one an answer; empty RunID: down
}

func (a answers) Replication(ctx context.Context) (reservation.Replication, error) {
	select {
	case r := <-a.say:
		if r.RunID == "" {
			return r, errors.New("down")
		}
		return r, nil
	case <-ctx.Done():
		return reservation.Replication{}, ctx.Err()
	}
}

// R12.2: a restart and a take-over are counted, an outage in itself is not.
func TestTakeoversAreCounted(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none") // connects to nothing before it is asked
	if err != nil {
		t.Fatal(err)
	}
	pool.Close() // and now never
	synctest.Test(t, func(t *testing.T) {
		a := answers{say: make(chan reservation.Replication)}
		r, err := reconcile.New(reconcile.Params{Config: reconcile.ConfigDefault, Pool: pool, Store: a, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); r.Watch(ctx, time.Second) }()
		for i, step := range []struct {
			say  reservation.Replication
			up   bool
			want int64
		}{
			{reservation.Replication{}, false, 0},
			{reservation.Replication{RunID: "a", Master: true}, true, 0},
			{reservation.Replication{RunID: "a", Master: true, LagBytes: 9}, true, 0},
			{reservation.Replication{}, false, 0},
			{reservation.Replication{RunID: "a", Master: true}, true, 0},
			{reservation.Replication{RunID: "b", Master: true}, true, 1},
			{reservation.Replication{RunID: "b"}, true, 2},
		} {
			a.say <- step.say
			synctest.Wait()
			if got := r.Servers(); got.RedisUp != step.up || got.Failovers != step.want || got.PostgresUp {
				t.Errorf("step %d: %+v", i, got)
			}
		}
		stop()
		<-ended
	})
}
