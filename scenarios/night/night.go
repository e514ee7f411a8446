// Package night runs many scenarios one after another in one folder, with a
// memory on disk of what is to be run and how far it got: whoever is
// interrupted goes on, and at any moment there is a report of what was done.
//
// Authoritative store: night.json for what is to be run, each run directory's
// run.json for its verdict.
//
// Imports allowed: verify/rundir, reports, scenarios.
package night

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hotsku/hotsku/scenarios"
	"github.com/hotsku/hotsku/verify/rundir"
)

// ErrUsage wraps why a folder cannot be a night's: nothing was started or
// changed.
var ErrUsage = errors.New("cannot run a night here")

// ErrInterrupted says that the context ended before the night did.
var ErrInterrupted = errors.New("interrupted")

// Night is a night that this process runs. Not safe for concurrent use.
type Night struct {
	dir    rundir.NightDir
	record *rundir.Night
	folder *os.File // locked: one process at a time goes on with a night
}

// Begin makes dir, which must be new or empty, the folder of a night.
func Begin(dir rundir.NightDir, record rundir.Night) (*Night, error) {
	entries, err := os.ReadDir(string(dir))
	switch {
	case err == nil && len(entries) > 0:
		return nil, fmt.Errorf("%w: %s is not empty: give --out a new or empty folder, or --resume this one", ErrUsage, dir)
	case errors.Is(err, syscall.ENOTDIR):
		return nil, fmt.Errorf("%w: %s is a file, or below one: give --out a new or empty folder", ErrUsage, dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %w: give --out a folder that you may read and write", ErrUsage, err)
	}
	if err := os.MkdirAll(string(dir), 0o755); err != nil {
		return nil, fmt.Errorf("%w: make the night's folder: %w: give --out a folder that you may write", ErrUsage, err)
	}
	record.Schema = rundir.NightSchema
	n := &Night{dir: dir, record: &record}
	if err := n.lock(); err != nil {
		return nil, err
	}
	if err := n.save(); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrUsage, err), n.Close())
	}
	return n, nil
}

// Resume takes a night up where it ended. Runs that ended without a verdict
// are moved below its set-aside folder, where nobody judges them, and are to
// be run again; their names there are returned.
func Resume(dir rundir.NightDir) (n *Night, aside []string, err error) {
	record, err := dir.Read()
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w: give --resume the folder of a night", ErrUsage, err)
	}
	n = &Night{dir: dir, record: record}
	if err := n.lock(); err != nil {
		return nil, nil, err
	}
	for i := range record.Runs {
		moved, err := n.setAside(&record.Runs[i])
		if err != nil {
			return nil, aside, errors.Join(err, n.Close())
		}
		if moved != "" {
			aside = append(aside, moved)
		}
	}
	return n, aside, nil
}

// setAside moves the directory of a run that was begun and not judged, and
// forgets it. Empty if there was none.
func (n *Night) setAside(r *rundir.NightRun) (string, error) {
	if r.Dir == "" {
		return "", nil
	}
	if _, err := n.dir.Judged(*r); err == nil {
		return "", nil
	}
	to, moved := filepath.Join(n.dir.SetAside(), r.Dir), r.Dir
	err := os.MkdirAll(n.dir.SetAside(), 0o755)
	if err == nil {
		err = os.Rename(string(n.dir.Run(r.Dir)), to)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist): // it was noted, and never made
		moved = ""
	case err != nil:
		return "", fmt.Errorf("set a run without a verdict aside: %w", err)
	}
	r.Dir, r.Error, r.TookS = "", "", 0
	return moved, n.save()
}

// Record is what is to be run; not to be changed.
func (n *Night) Record() *rundir.Night { return n.record }

// Pending are the runs that are to be run yet, as indexes of the record's.
func (n *Night) Pending() []int {
	var out []int
	for i, r := range n.record.Runs {
		if r.Dir == "" {
			out = append(out, i)
		}
	}
	return out
}

// Params of Run.
type Params struct {
	Now func() time.Time
	// Folder names a run's directory, one that no run of the night has.
	Folder func(at time.Time, r rundir.NightRun) string
	// Run takes a run to a judged directory. Its error says why there is no
	// verdict; the night goes on.
	Run func(ctx context.Context, r rundir.NightRun, dir rundir.Dir) error
}

// Run runs what is pending, in order, and writes the reports over all runs
// after each. It ends early when ctx does, with ErrInterrupted, or when the
// night's own files cannot be written.
func (n *Night) Run(ctx context.Context, p Params) error {
	for _, i := range n.Pending() {
		if ctx.Err() != nil {
			return ErrInterrupted
		}
		r, began := &n.record.Runs[i], p.Now()
		r.Dir = p.Folder(began, *r)
		if err := n.save(); err != nil {
			return err
		}
		err := p.Run(ctx, *r, n.dir.Run(r.Dir))
		r.TookS = p.Now().Sub(began).Round(time.Millisecond).Seconds()
		_, unjudged := n.dir.Judged(*r)
		if reason := cmp.Or(err, unjudged); reason != nil {
			r.Error = oneLine(reason)
		}
		if err := n.save(); err != nil {
			return err
		}
		if err := Write(n.dir); err != nil {
			return err
		}
		if errors.Is(err, scenarios.ErrLeft) {
			return err // the next would meet what is left
		}
	}
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	return nil
}

// Close lets others go on with the night.
func (n *Night) Close() error { return n.folder.Close() }

func (n *Night) save() error { return rundir.WriteJSON(n.dir.Record(), n.record) }

// lock holds the folder until Close, or until this process ends.
func (n *Night) lock() error {
	f, err := os.Open(string(n.dir))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUsage, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errors.New("another process runs this night")
		}
		return errors.Join(fmt.Errorf("%w: %s: %w", ErrUsage, n.dir, err), f.Close())
	}
	n.folder = f
	return nil
}
