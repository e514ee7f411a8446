package summary

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/hotsku/hotsku/loadgen"
	"github.com/hotsku/hotsku/loadgen/hdr"
	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/loadgen/pace"
)

// ErrMerge is in the chain of errors about runs that are not the shards of
// one.
var ErrMerge = errors.New("cannot merge")

func secondsDuration(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Schedule is the whole schedule that the plan describes.
func (p Plan) Schedule() (pace.Schedule, error) {
	d, err := time.ParseDuration(p.Duration)
	if err != nil {
		return nil, fmt.Errorf("the plan's duration: %w", err)
	}
	return pace.Parse(p.Shape, pace.Defaults{Rate: p.RatePerS, Span: d, Seed: p.Seed})
}

// Merge adds up the shards of one run, from the folders they left, into the
// empty folder out: counts, histograms and histories. It refuses runs that are
// not all the shards of one plan, or did not run at the same time. Records
// keep the times they have, from the start of their own shard.
func Merge(dirs []string, out string) (*Summary, error) {
	var shards []*Summary
	for _, dir := range dirs {
		s, err := Load(dir)
		if err != nil {
			return nil, err
		}
		s.dir = dir
		shards = append(shards, s)
	}
	if err := mergeable(shards); err != nil {
		return nil, err
	}
	slices.SortFunc(shards, func(a, b *Summary) int { return cmp.Compare(a.Shards[0].Index, b.Shards[0].Index) })
	schedule, err := shards[0].Plan.Schedule()
	if err != nil {
		return nil, err
	}
	sum := add(shards)
	if total := schedule.Total(); sum.Account.Scheduled != total {
		return nil, fmt.Errorf("%w: the shards scheduled %d requests together, their plan %d", ErrMerge, sum.Account.Scheduled, total)
	}
	if err := Prepare(out); err != nil {
		return nil, err
	}
	points, width, err := mergeHistories(shards, out, schedule, sum)
	if err != nil {
		return nil, err
	}
	sum.Series, sum.StepMS = seriesOf(points), width.Milliseconds()
	if err := sum.finish(); err != nil {
		return nil, err
	}
	return sum, sum.Save(out)
}

// mergeable says in one line why the runs are not the shards of one.
func mergeable(shards []*Summary) error {
	seen := map[int]string{}
	from, until := time.Time{}, time.Time{}
	var latest, earliest string
	for _, s := range shards {
		if len(s.Shards) != 1 {
			return fmt.Errorf("%w: %s is merged already", ErrMerge, s.dir)
		}
		if s.Plan != shards[0].Plan {
			return fmt.Errorf("%w: %s and %s have different plans: %s", ErrMerge, shards[0].dir, s.dir, difference(shards[0].Plan, s.Plan))
		}
		index := s.Shards[0].Index
		if other, twice := seen[index]; twice {
			return fmt.Errorf("%w: %s and %s are both shard %d", ErrMerge, other, s.dir, index)
		}
		seen[index] = s.dir
		if s.StartedAt.After(from) {
			from, latest = s.StartedAt, s.dir
		}
		if end := s.StartedAt.Add(secondsDuration(s.ElapsedS)); until.IsZero() || end.Before(until) {
			until, earliest = end, s.dir
		}
	}
	for i := 1; i <= shards[0].Plan.Shards; i++ {
		if _, there := seen[i]; !there {
			return fmt.Errorf("%w: shard %d of %d is missing", ErrMerge, i, shards[0].Plan.Shards)
		}
	}
	if !from.Before(until) {
		return fmt.Errorf("%w: %s began at %s, after %s had ended at %s: they were not one load; --start-at makes shards begin together",
			ErrMerge, latest, from.Format(time.RFC3339Nano), earliest, until.Format(time.RFC3339Nano))
	}
	return nil
}

// difference names the first field in which two plans differ.
func difference(a, b Plan) string {
	for _, f := range []struct {
		name string
		a, b any
	}{{"request", a.Request, b.Request}, {"shape", a.Shape, b.Shape}, {"rate", a.RatePerS, b.RatePerS}, {"duration", a.Duration, b.Duration},
		{"seed", a.Seed, b.Seed}, {"users", a.Users, b.Users}, {"client", a.Client, b.Client}, {"connections", a.Conns, b.Conns}, {"depth", a.Depth, b.Depth},
		{"timeout", a.Timeout, b.Timeout}, {"SLO", a.SLO, b.SLO}, {"send lag limit", a.LagLimit, b.LagLimit}, {"number of shards", a.Shards, b.Shards}} {
		if f.a != f.b {
			return fmt.Sprintf("%s %v and %v", f.name, f.a, f.b)
		}
	}
	return "headers or body"
}

// add sums up counts and histograms; the worst of what is no count.
func add(shards []*Summary) *Summary {
	sum := &Summary{Schema: Schema, Plan: shards[0].Plan, StartedAt: shards[0].StartedAt, Statuses: map[int]uint64{}, Failures: map[string]uint64{},
		Connections: map[string]uint64{}, Histograms: hdr.Set{}, Strain: Strain{Steal: -1, Busy: -1}}
	var end time.Time
	for _, s := range shards {
		sum.Shards = append(sum.Shards, s.Shards...)
		if s.StartedAt.Before(sum.StartedAt) {
			sum.StartedAt = s.StartedAt
		}
		if e := s.StartedAt.Add(secondsDuration(s.ElapsedS)); e.After(end) {
			end = e
		}
		a, b := &sum.Account, s.Account
		a.Scheduled, a.Sent, a.Completed, a.Failed = a.Scheduled+b.Scheduled, a.Sent+b.Sent, a.Completed+b.Completed, a.Failed+b.Failed
		a.TimedOut, a.Dropped, a.Unfinished = a.TimedOut+b.TimedOut, a.Dropped+b.Dropped, a.Unfinished+b.Unfinished
		for status, n := range s.Statuses {
			sum.Statuses[status] += n
		}
		for cause, n := range s.Failures {
			sum.Failures[cause] += n
		}
		for what, n := range s.Connections {
			sum.Connections[what] += n
		}
		sum.Histograms.Merge(s.Histograms)
		sum.DrainS = max(sum.DrainS, s.DrainS)
		sum.Interrupted = sum.Interrupted || s.Interrupted
		t, u := &sum.Strain, s.Strain
		t.GapS, t.GCPauseS, t.Steal, t.Busy, t.FullS = max(t.GapS, u.GapS), max(t.GCPauseS, u.GCPauseS), max(t.Steal, u.Steal), max(t.Busy, u.Busy), max(t.FullS, u.FullS)
		t.CatchUp, t.GCPauses, t.Stalls = max(t.CatchUp, u.CatchUp), t.GCPauses+u.GCPauses, t.Stalls+u.Stalls
		t.BacklogMx, t.InFlight, t.CPUS = t.BacklogMx+u.BacklogMx, t.InFlight+u.InFlight, t.CPUS+u.CPUS
	}
	sum.ElapsedS = end.Sub(sum.StartedAt).Seconds()
	return sum
}

// mergeHistories copies the histories one after another, and makes the series
// from them. Each must hold its shard's requests, as many as were counted.
func mergeHistories(shards []*Summary, out string, schedule pace.Schedule, sum *Summary) (points []loadgen.Point, width time.Duration, err error) {
	if err := os.MkdirAll(HistoryDir(out), 0o755); err != nil {
		return nil, 0, fmt.Errorf("make history folder: %w", err)
	}
	w, err := history.Create(HistoryDir(out), 0, history.Header{StartUnixNano: sum.StartedAt.UnixNano()})
	if err != nil {
		return nil, 0, err
	}
	m := &histories{left: shards, w: w}
	points, width, err = loadgen.Replay(schedule, m.next)
	return points, width, errors.Join(err, m.close(), w.Close(m.unrecorded))
}

// histories reads those of several shards as one, and copies them.
type histories struct {
	left       []*Summary // the first is being read
	in         *history.DirReader
	w          *history.Writer
	records    uint64 // of the one being read
	unrecorded uint64
}

func (m *histories) next(rec *history.Record) (err error) {
	for len(m.left) > 0 {
		s := m.left[0]
		if m.in == nil {
			if m.in, err = history.OpenDir(HistoryDir(s.dir)); err != nil {
				return err
			}
			m.records = 0
		}
		err = m.in.Next(rec)
		switch {
		case err == nil && int(rec.N%uint64(s.Plan.Shards)) != s.Shards[0].Index-1:
			return fmt.Errorf("%w: the history of %s holds request %d, which is not its shard's", ErrMerge, s.dir, rec.N)
		case err == nil:
			m.records++
			return m.w.Append(rec)
		case !errors.Is(err, io.EOF):
			return err
		}
		unrecorded := m.in.Totals().Unrecorded
		if m.records+unrecorded != s.Account.Scheduled {
			return fmt.Errorf("%w: the history of %s holds %d requests, its summary counts %d", ErrMerge, s.dir, m.records+unrecorded, s.Account.Scheduled)
		}
		m.unrecorded += unrecorded
		if err := m.close(); err != nil {
			return err
		}
		m.left = m.left[1:]
	}
	return io.EOF
}

func (m *histories) close() error {
	if m.in == nil {
		return nil
	}
	err := m.in.Close()
	m.in = nil
	return err
}
