package reconcile

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/hotsku/hotsku/system/reservation"
)

//go:embed sql/server.sql
var serverRead string

// Postgres is what the database says of itself.
type Postgres struct {
	WALBytes       int64         // position in the write-ahead log
	LockWait       time.Duration // of whoever waits longest for a lock now
	LockWaiters    int64
	Replicas       int64
	ReplicationLag time.Duration // of the replica farthest behind
	Unpublished    int64         // events
	OldestEvent    time.Duration // age of the oldest of them
}

// Postgres asks the database.
func (r *Reconciler) Postgres(ctx context.Context) (Postgres, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Call)
	defer cancel()
	var p Postgres
	var lock, lag, event float64
	err := r.pool.QueryRow(ctx, serverRead).Scan(&p.WALBytes, &lock, &p.LockWaiters, &p.Replicas, &lag, &p.Unpublished, &event)
	if err != nil {
		return Postgres{}, fmt.Errorf("ask the database about itself: %w", err)
	}
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	p.LockWait, p.ReplicationLag, p.OldestEvent = seconds(lock), seconds(lag), seconds(event)
	return p, nil
}

// Redis asks Redis.
func (r *Reconciler) Redis(ctx context.Context) (reservation.Replication, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Call)
	defer cancel()
	return r.store.Replication(ctx)
}

// Servers is what both servers said when they were last asked.
type Servers struct {
	PostgresUp bool
	Postgres   Postgres // of the last answer
	RedisUp    bool
	Redis      reservation.Replication // of the last answer
	Failovers  int64                   // times another Redis answered than before, or as another role
}

// Watch asks both servers until ctx ends, every so often.
func (r *Reconciler) Watch(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		r.ask(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Servers returns what Watch learned last.
func (r *Reconciler) Servers() Servers {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.servers
}

func (r *Reconciler) ask(ctx context.Context) {
	database, derr := r.Postgres(ctx)
	replication, rerr := r.Redis(ctx)
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.servers
	if s.PostgresUp = derr == nil; s.PostgresUp {
		s.Postgres = database
	}
	if s.RedisUp = rerr == nil; s.RedisUp {
		if before := s.Redis; before.RunID != "" && (before.RunID != replication.RunID || before.Master != replication.Master) {
			s.Failovers++
			r.log.Error("another redis answers: it was restarted, or a replica took over", "master", replication.Master)
		}
		s.Redis = replication
	}
}
