package comparison

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/hotsku/hotsku/verify/rundir"
)

// Side is a set of runs of the same thing.
type Side struct {
	Path    string
	Runs    []*rundir.Run // of the same load
	LeftOut []string      // directories that were not taken, and why
}

// Read reads a run directory, or a folder of run directories. Runs whose
// generator fell behind, or that proved nothing otherwise, are left out unless
// doubtful is set. A run that violated an invariant is an error: figures of a
// system that lies are not compared.
func Read(path string, doubtful bool) (Side, error) {
	side := Side{Path: path}
	dirs, err := runDirs(path)
	if err != nil {
		return side, err
	}
	for _, dir := range dirs {
		run, err := rundir.Dir(dir).ReadRun()
		if err != nil {
			return side, err
		}
		for _, i := range run.Invariants {
			if i.Status == rundir.StatusViolated {
				return side, fmt.Errorf("%s violated %s, %s: its figures say nothing until that is mended", dir, i.ID, i.Name)
			}
		}
		if run.Verdict == rundir.VerdictInconclusive && !doubtful {
			why := "inconclusive"
			if len(run.Reasons) > 0 {
				why += ": " + run.Reasons[0]
			}
			side.LeftOut = append(side.LeftOut, fmt.Sprintf("%s: %s", dir, why))
			continue
		}
		if len(side.Runs) > 0 {
			if err := sameLoad(side.Runs[0], run); err != nil {
				return side, fmt.Errorf("%s: %w", dir, err)
			}
		}
		side.Runs = append(side.Runs, run)
	}
	if len(side.Runs) == 0 {
		return side, fmt.Errorf("%s: all of its %d runs are inconclusive (the first: %s): --with-inconclusive takes them", path, len(side.LeftOut), side.LeftOut[0])
	}
	return side, nil
}

// runDirs is path itself if it holds a run.json, or the folders in it that do.
func runDirs(path string) ([]string, error) {
	if has(path) {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w: give a run directory, or a folder of them", path, err)
	}
	var dirs []string
	for _, e := range entries {
		if dir := filepath.Join(path, e.Name()); e.IsDir() && has(dir) {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 {
		return nil, fmt.Errorf("%s holds no run.json, nor does a folder in it: give a run directory, or a folder of them", path)
	}
	return dirs, nil
}

func has(dir string) bool {
	_, err := os.Stat(rundir.Dir(dir).Run())
	return err == nil
}

// sameLoad says in what two runs' loads differ, or nil.
func sameLoad(a, b *rundir.Run) error {
	for _, part := range []struct {
		what string
		a, b any
	}{
		{"scenario", a.Name, b.Name}, {"scheme", a.Scheme, b.Scheme}, {"requests per second", a.Load.IntendedQPS, b.Load.IntendedQPS},
		{"seconds", a.Load.DurationS, b.Load.DurationS},
	} {
		if part.a != part.b {
			return fmt.Errorf("another load: %s %v, not %v", part.what, part.b, part.a)
		}
	}
	return nil
}

// elsewhere says in what the environments of two runs differ, empty if in
// nothing that matters.
func elsewhere(a, b *rundir.Run) string {
	x, y := a.Environment, b.Environment
	for _, part := range []struct {
		what string
		a, b any
	}{
		{"CPU", x.CPU, y.CPU}, {"cores", x.Cores, y.Cores}, {"kernel", x.Kernel, y.Kernel}, {"niceness", x.Niceness, y.Niceness},
		{"Redis", x.Redis, y.Redis}, {"RocketMQ", x.RocketMQ, y.RocketMQ}, {"PostgreSQL", x.Postgres, y.Postgres}, {"Go", x.Go, y.Go},
	} {
		if part.a != part.b {
			return fmt.Sprintf("measured in two places: %s %v and %v", part.what, part.a, part.b)
		}
	}
	return ""
}
