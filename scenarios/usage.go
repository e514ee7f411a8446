package scenarios

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hotsku/hotsku/stack"
	"github.com/hotsku/hotsku/stack/proc"
	"github.com/hotsku/hotsku/verify/rundir"
)

// usageEvery is how often CPU time is read. One look at all processes costs
// about 2 ms of it.
const usageEvery = 500 * time.Millisecond

// generatorName is this process's among the others'.
const generatorName = "generator"

// usage follows the CPU time of every process from the start of the load on.
// It only ever grows: what a process had used stays when it is started anew.
type usage struct {
	samples []rundir.UsageAt
	total   map[string]float64
	last    map[string]float64 // as last read
}

// followUsage samples until ctx ends, and once more then.
func (r *runner) followUsage(ctx context.Context) {
	select {
	case <-r.loading:
	case <-ctx.Done():
		return
	}
	start := time.Now()
	tick := time.NewTicker(usageEvery)
	defer tick.Stop()
	for {
		if now := r.processTimes(); now != nil {
			r.usage.add(time.Since(start), now)
		}
		if ctx.Err() != nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// add takes a reading; what it does not have keeps its last figure.
func (u *usage) add(at time.Duration, now map[string]float64) {
	if u.total == nil {
		u.total, u.last = map[string]float64{}, map[string]float64{}
	}
	sample := rundir.UsageAt{AtMS: at.Milliseconds(), CPUSeconds: map[string]float64{}}
	for name, seconds := range now {
		grown := seconds - u.last[name]
		if grown < 0 { // another process of that name
			grown = seconds
		}
		u.total[name] += grown
		u.last[name] = seconds
	}
	for name, seconds := range u.total {
		sample.CPUSeconds[name] = seconds
	}
	u.samples = append(u.samples, sample)
}

// processTimes are the CPU seconds used so far, by process; nil if they
// cannot be read.
func (r *runner) processTimes() map[string]float64 {
	processes, err := proc.ReadTable()
	if err != nil {
		return nil
	}
	now := map[string]float64{}
	var own unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &own) == nil {
		now[generatorName] = time.Duration(own.Utime.Nano() + own.Stime.Nano()).Seconds()
	}
	for _, m := range r.fleet.Members() {
		now[m.Name()] = m.CPU(processes).Seconds()
	}
	for _, server := range r.stack.Servers() {
		if p, ok := server.(stack.Processed); ok {
			if used, err := p.Usage(processes); err == nil {
				now[server.Name()] = (used.User + used.System).Seconds()
			}
		}
	}
	return now
}
