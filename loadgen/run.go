package loadgen

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hotsku/hotsku/loadgen/hdr"
	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/loadgen/pace"
	"github.com/hotsku/hotsku/loadgen/wire"
)

// recordersMax bounds the recorders, and with them the histograms in memory.
const recordersMax = 4

// startLead is the time between the last preparation and the first request.
const startLead = 5 * time.Millisecond

// run is one call of Run.
type run struct {
	cfg       Config
	base      time.Time     // zero of the connections' clock
	start     atomic.Int64  // of the run, on the connections' clock
	resolved  atomic.Uint64 // ends of written requests
	width     time.Duration // of a slot
	recorders []*recorder
	conns     []link
	pollers   []*wire.Poller
	held      []chan struct{} // of connections that the ramp has not opened yet
	sender    *sender
	progress  progress
}

// Run offers the load and returns when every scheduled request has ended. If
// ctx ends early the rest is dropped, what is outstanding gets its grace, and
// the Result says so in Interrupted: Run then returns no error. An error means
// that nothing was scheduled (bad config, no connection, interrupted before
// the start), or, beside a Result, that the history could not be written; a
// run whose history fails is interrupted.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	if cfg.HistoryDir != "" {
		if err := os.MkdirAll(cfg.HistoryDir, 0o755); err != nil {
			return nil, fmt.Errorf("make history folder: %w", err)
		}
	}
	r := &run{cfg: cfg, base: cfg.Clock.Now(), width: slotWidth(cfg.Schedule.Span())}
	defer r.closeConns()
	if err := r.connect(ctx); err != nil {
		return nil, err
	}
	if cfg.OnReady != nil {
		cfg.OnReady()
	}
	if err := waitStart(ctx, cfg.Start); err != nil {
		return nil, fmt.Errorf("wait for the start: %w", err)
	}
	return r.offer(ctx)
}

// now is the connections' clock.
func (r *run) now() int64 { return int64(r.cfg.Clock.Now().Sub(r.base)) }

// offer runs the schedule on open connections.
func (r *run) offer(ctx context.Context) (*Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	var wait *alarm
	if _, real := r.cfg.Clock.(systemClock); real {
		var err error
		if wait, err = newAlarm(); err != nil {
			return nil, err
		}
		defer wait.close()
	}
	started := r.cfg.Clock.Now().Add(startLead)
	r.start.Store(int64(started.Sub(r.base)))
	hist, err := r.openHistory(started)
	if err != nil {
		return nil, err
	}
	cpu, before := processCPU(), readGauge()
	r.sender = r.newSender()
	if wait != nil {
		r.sender.sleep = wait.sleep
	}
	stop := make(chan struct{})
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		r.housekeep(stop, cancel, hist)
	}()

	interrupted := r.sender.run(ctx)
	cut := r.now()
	r.drain()
	r.closeConns()
	close(stop)
	<-kept
	unrecorded := r.drop(cut, interrupted)
	elapsed := r.now() - r.start.Load()

	res := r.result()
	res.Started, res.Elapsed, res.CPU = started, time.Duration(elapsed), processCPU()-cpu
	res.Strain = r.sender.strain
	readGauge().since(before, &res.Strain)
	res.Dropped += unrecorded
	res.Unrecorded = unrecorded
	if interrupted {
		res.Interrupted = context.Cause(ctx)
	}
	if hist != nil {
		res.HistoryStalls = hist.spool.stalls.Load()
		err = hist.close(r.recorders, unrecorded)
	}
	if r.cfg.OnProgress != nil {
		r.cfg.OnProgress(r.live(res.Elapsed))
	}
	return res, errors.Join(err, res.Balanced())
}

func (r *run) newSender() *sender {
	deadline := r.cfg.Schedule.Span() + max(r.cfg.CatchUp, 0)
	return &sender{
		schedule: r.cfg.Schedule, cursor: pace.Walk(r.cfg.Schedule, 0), source: r.cfg.NewSource(), conns: r.conns,
		tick: r.cfg.Tick, now: r.now, sleep: r.cfg.Clock.Sleep,
		start: r.start.Load(), deadline: deadline, resolved: r.resolved.Load,
		lag: hdr.New(), progress: &r.progress, fullSince: -1,
	}
}

// housekeep sweeps timeouts, shows progress and watches the history.
func (r *run) housekeep(stop <-chan struct{}, cancel context.CancelCauseFunc, hist *historyFile) {
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	var failed <-chan struct{}
	if hist != nil {
		failed = hist.spool.failed
	}
	shown := time.Now()
	for {
		select {
		case <-stop:
			return
		case <-failed:
			failed = nil
			cancel(errors.New("the history could not be written"))
		case t := <-sweep.C:
			now := r.now()
			r.openHeld(time.Duration(now - r.start.Load()))
			for _, c := range r.conns {
				c.Sweep(now)
			}
			if r.cfg.OnProgress != nil && t.Sub(shown) >= progressEvery {
				shown = t
				r.cfg.OnProgress(r.live(time.Duration(now - r.start.Load())))
			}
		}
	}
}

// drain waits for outstanding answers, at most the grace.
func (r *run) drain() {
	for limit := r.now() + int64(r.cfg.Grace); r.now() < limit; {
		outstanding := 0
		for _, c := range r.conns {
			outstanding += c.Outstanding()
		}
		if outstanding == 0 {
			return
		}
		r.cfg.Clock.Sleep(time.Millisecond)
	}
}

// drop accounts for every request of which nothing was written. Those that
// were due only after an interruption at cut are counted and not described:
// there may be hours of them.
func (r *run) drop(cut int64, interrupted bool) (unrecorded uint64) {
	s, rec := r.sender, r.recorders[0]
	for _, c := range r.conns {
		s.returned = c.Reclaim(s.returned)
	}
	for i := range s.returned {
		rec.drop(&s.returned[i])
	}
	total := r.cfg.Schedule.Total()
	due := total
	if interrupted {
		due = max(r.cfg.Schedule.Due(time.Duration(cut-s.start)), s.next)
	}
	var scratch []byte
	for n := s.next; n < due; n++ {
		q := wire.Request{N: number(r.cfg.Schedule, n), Intended: s.start + int64(r.cfg.Schedule.At(n))}
		scratch, q.Subject, q.Ordinal = s.source.Append(scratch[:0], q.N)
		rec.drop(&q)
	}
	return total - due
}

// historyFile is the history being written.
type historyFile struct {
	w     *history.Writer
	spool *spool
}

func (r *run) openHistory(started time.Time) (*historyFile, error) {
	if r.cfg.HistoryDir == "" {
		return nil, nil
	}
	w, err := history.Create(r.cfg.HistoryDir, 0, history.Header{StartUnixNano: started.UnixNano()})
	if err != nil {
		return nil, err
	}
	h := &historyFile{w: w, spool: newSpool(w)}
	for _, rec := range r.recorders {
		rec.mu.Lock()
		rec.spool, rec.block = h.spool, h.spool.swap(nil)
		rec.mu.Unlock()
	}
	return h, nil
}

// close writes what the recorders still hold, and the trailer.
func (h *historyFile) close(recorders []*recorder, unrecorded uint64) error {
	for _, rec := range recorders {
		h.spool.full <- rec.block
		rec.block = nil
	}
	return errors.Join(h.spool.close(), h.w.Close(unrecorded))
}

// processCPU is the user and system time of this process.
func processCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
