package loadgen

import (
	"bytes"
	"math"
	"os"
	"runtime/metrics"
	"strconv"
	"time"
)

// Strain is what a generator that fell behind suffered from, as far as it can
// be told from inside.
type Strain struct {
	// Gap is the longest time between two wake-ups of the sender, and CatchUp
	// the most requests one wake-up released: after a stall all that became due
	// meanwhile goes out at once, as far as connections have room.
	Gap     time.Duration
	CatchUp uint64
	// GCPause is the longest time the garbage collector stopped the process for
	// (an upper bound), GCPauses how often.
	GCPause  time.Duration
	GCPauses uint64
	// Steal and Busy are the shares of this machine's CPU time that the
	// hypervisor gave to others, and that were used at all; -1 where the system
	// does not say.
	Steal, Busy float64
}

// gauge reads what the system and the runtime count up.
type gauge struct {
	pauses            []uint64 // by bucket
	bounds            []float64
	total, idle, lost uint64 // CPU time of the machine, in ticks
}

const gcPauses = "/sched/pauses/total/gc:seconds"

func readGauge() gauge {
	var g gauge
	sample := []metrics.Sample{{Name: gcPauses}}
	metrics.Read(sample)
	if sample[0].Value.Kind() == metrics.KindFloat64Histogram {
		h := sample[0].Value.Float64Histogram()
		g.pauses, g.bounds = h.Counts, h.Buckets
	}
	stat, err := os.ReadFile("/proc/stat")
	if err == nil {
		g.total, g.idle, g.lost = parseStat(stat)
	}
	return g
}

// parseStat reads the first line of /proc/stat: user, nice, system, idle,
// iowait, irq, softirq, steal.
func parseStat(stat []byte) (total, idle, steal uint64) {
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 9 || string(fields[0]) != "cpu" {
		return 0, 0, 0
	}
	for i, f := range fields[1:9] {
		n, err := strconv.ParseUint(string(f), 10, 64)
		if err != nil {
			return 0, 0, 0
		}
		total += n
		switch i {
		case 3, 4:
			idle += n
		case 7:
			steal = n
		}
	}
	return total, idle, steal
}

// since adds to s what was counted up from before to g.
func (g gauge) since(before gauge, s *Strain) {
	for i, n := range g.pauses {
		if i < len(before.pauses) {
			n -= before.pauses[i]
		}
		if n == 0 {
			continue
		}
		s.GCPauses += n
		bound := g.bounds[i+1]
		if math.IsInf(bound, 1) {
			bound = g.bounds[i]
		}
		s.GCPause = max(s.GCPause, time.Duration(bound*1e9))
	}
	s.Steal, s.Busy = -1, -1
	if total := g.total - before.total; g.total > before.total {
		s.Steal = float64(g.lost-before.lost) / float64(total)
		s.Busy = 1 - float64(g.idle-before.idle)/float64(total)
	}
}
