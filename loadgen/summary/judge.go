package summary

import (
	"fmt"
	"time"

	"github.com/hotsku/hotsku/loadgen"
	"github.com/hotsku/hotsku/loadgen/hdr"
	"github.com/hotsku/hotsku/loadgen/slo"
)

// ExitCode is what a command that judged the run ends with.
func (s *Summary) ExitCode() int {
	return map[string]int{Pass: 0, Fail: 1, Inconclusive: 2}[s.Verdict]
}

// judge gives the verdict: what the run did not prove comes first, then what
// it missed. A run that proved nothing does not pass.
func (s *Summary) judge() error {
	if err := s.Account.Balanced(); err != nil {
		return err
	}
	unproved, err := s.doubts()
	if err != nil {
		return err
	}
	var missed []string
	s.SLO = nil
	if s.Plan.SLO != "" {
		objectives, err := slo.Parse(s.Plan.SLO)
		if err != nil {
			return err
		}
		for _, o := range objectives {
			r := o.Judge(s.figure(o))
			s.SLO = append(s.SLO, r)
			switch r.Status {
			case slo.Missed:
				missed = append(missed, fmt.Sprintf("SLO %s missed: it is %s", o.Text, figureText(o.Kind, r.Measured)))
			case slo.Unmeasured:
				unproved = append(unproved, fmt.Sprintf("SLO %s: nothing was measured", o.Text))
			}
		}
	}
	s.Reasons = append(unproved, missed...)
	switch {
	case len(unproved) > 0:
		s.Verdict = Inconclusive
	case len(missed) > 0:
		s.Verdict = Fail
	default:
		s.Verdict = Pass
	}
	return nil
}

func figureText(k slo.Kind, v float64) string {
	switch k {
	case slo.Latency:
		return millis(v)
	case slo.Share:
		return fmt.Sprintf("%.4g %%", v*100)
	}
	return fmt.Sprintf("%.4g/s", v)
}

// figure is an objective's, in its unit.
func (s *Summary) figure(o slo.Objective) (v float64, measured bool) {
	a := s.Account
	if o.Kind == slo.Latency {
		of, percent := o.Quantile()
		h := s.Histograms[map[string]string{"": loadgen.HistogramLatency, "service": loadgen.HistogramService, "lag": loadgen.HistogramSendLag}[of]]
		switch {
		case h == nil || h.TotalCount() == 0:
			return 0, false
		case percent < 0:
			return h.Mean() / 1e6, true
		}
		return hdr.AtMS(h, percent), true
	}
	if o.Kind == slo.Rate {
		return s.RatePerS, s.ElapsedS > 0
	}
	of := func(class int) (n uint64) {
		for status, count := range s.Statuses {
			if status/100 == class {
				n += count
			}
		}
		return n
	}
	n := map[string]uint64{"failed": a.Failed, "timed_out": a.TimedOut, "dropped": a.Dropped, "unfinished": a.Unfinished, "4xx": of(4), "5xx": of(5),
		"errors": a.Scheduled - a.Completed + of(5)}[o.Metric]
	return float64(n) / float64(max(a.Scheduled, 1)), a.Scheduled > 0
}

// Beyond these a cause of send lag is worth naming.
const (
	stealMany  = 0.02
	busyMany   = 0.9
	fullOften  = 0.02 // of the run
	drainSlack = 1.0  // s
)

// doubts lists why the run says less than it was to say.
func (s *Summary) doubts() (reasons []string, err error) {
	limit, err := time.ParseDuration(s.Plan.LagLimit)
	if err != nil {
		return nil, fmt.Errorf("the plan's send lag limit: %w", err)
	}
	a := s.Account
	if s.Interrupted {
		reasons = append(reasons, "the run was interrupted")
	}
	if a.Completed == 0 {
		reasons = append(reasons, "not one answer came")
	}
	if s.SendLagMS.P99 > ms(limit) {
		reasons = append(reasons, fmt.Sprintf("requests were sent late: send lag P99 is %s, its limit %v; %s", millis(s.SendLagMS.P99), limit, s.cause()))
	}
	if a.Dropped > 0 && !s.Interrupted {
		reasons = append(reasons, fmt.Sprintf("%s requests were never sent: the load was not the planned one", thousands(a.Dropped)))
	}
	// A server that keeps up has answered the last request about as soon as any
	// other. The tenth percentile is one that no backlog has grown into.
	usual := 0.0
	if h := s.Histograms[loadgen.HistogramService]; h != nil {
		usual = hdr.AtMS(h, 10) / 1000
	}
	if late := s.DrainS > drainSlack+3*usual; late || a.Dropped > 0 && !s.Interrupted && s.Strain.FullS > 0 {
		reasons = append(reasons, fmt.Sprintf("the server did not sustain the load: the backlog reached %s requests beside %s in flight, and the last one ended %s after the schedule, while an answer takes about %s",
			thousands(s.Strain.BacklogMx), thousands(s.Strain.InFlight), seconds(s.DrainS), seconds(usual)))
	}
	return reasons, nil
}

// cause says what send lag came from, as far as it can be told. A sender that
// was away releases all at once when it is back, and finds connections full:
// so its absence comes first.
func (s *Summary) cause() string {
	st, late := s.Strain, s.SendLagMS.P99/1000
	switch {
	case st.GapS > late/2:
		return fmt.Sprintf("the sender was kept from running for up to %s%s", seconds(st.GapS), s.keeper())
	case st.FullS > fullOften*s.ElapsedS || st.FullS > late:
		return fmt.Sprintf("all connections were full or down for %s: the server did not keep up, or %d connections with %d requests in flight each are too few for its latency",
			seconds(st.FullS), s.Plan.Conns, s.Plan.Depth)
	case st.Stalls > 0:
		return fmt.Sprintf("the history's disk was too slow %d times", st.Stalls)
	}
	return "no cause is known" + s.keeper()
}

// keeper names who had the CPU instead.
func (s *Summary) keeper() string {
	st := s.Strain
	switch {
	case st.Steal > stealMany:
		return fmt.Sprintf("; the hypervisor gave %.0f %% of the CPU time to others", st.Steal*100)
	case st.GCPauseS > st.GapS/2 && st.GCPauses > 0:
		return fmt.Sprintf("; the garbage collector stopped it for up to %s", seconds(st.GCPauseS))
	case st.Busy > busyMany:
		return fmt.Sprintf("; the machine's CPUs were %.0f %% busy: give the generator one of its own", st.Busy*100)
	}
	return ""
}
