// Package summary is what a run of `hotsku load` leaves behind and is judged
// by: figures, verdict, files, and the merge of shards. Everything here is a
// pure function of a finished run, or of the folder it left.
package summary

import (
	"fmt"
	"strings"
	"time"

	"github.com/hotsku/hotsku/loadgen"
	"github.com/hotsku/hotsku/loadgen/hdr"
	"github.com/hotsku/hotsku/loadgen/slo"
	"github.com/hotsku/hotsku/loadgen/wire"
)

// Schema is the version of the JSON form.
const Schema = 1

// SendLagLimitDefault is the P99 of send lag up to which a run says something
// about the server.
const SendLagLimitDefault = 10 * time.Millisecond

// Plan is what was to be offered. Shards of one run have equal plans.
type Plan struct {
	Request  string  `json:"request"` // method and URL as given
	Digest   string  `json:"digest"`  // of the whole request template
	Shape    string  `json:"shape"`
	RatePerS float64 `json:"rate_per_s"` // for shapes without a rate of their own
	Duration string  `json:"duration"`
	Seed     uint64  `json:"seed"`
	Users    uint64  `json:"users"` // 0: each request its own
	Client   string  `json:"client"`
	Conns    int     `json:"connections"`
	Depth    int     `json:"depth"`
	Timeout  string  `json:"timeout"`
	SLO      string  `json:"slo"`
	LagLimit string  `json:"send_lag_limit"`
	Shards   int     `json:"shards"`
}

// Account says what became of every request.
type Account struct {
	Scheduled  uint64 `json:"scheduled"`
	Sent       uint64 `json:"sent"`
	Completed  uint64 `json:"completed"`
	Failed     uint64 `json:"failed"`
	TimedOut   uint64 `json:"timed_out"`
	Dropped    uint64 `json:"dropped"`
	Unfinished uint64 `json:"unfinished"`
}

// String is the equation.
func (a Account) String() string {
	return fmt.Sprintf("scheduled %s = completed %s + failed %s + timed out %s + dropped %s + unfinished %s", thousands(a.Scheduled),
		thousands(a.Completed), thousands(a.Failed), thousands(a.TimedOut), thousands(a.Dropped), thousands(a.Unfinished))
}

// Balanced checks the equation.
func (a Account) Balanced() error {
	if sum := a.Completed + a.Failed + a.TimedOut + a.Dropped + a.Unfinished; sum != a.Scheduled || a.Sent != a.Scheduled-a.Dropped {
		return fmt.Errorf("the account does not balance: %s, sent %d", a, a.Sent)
	}
	return nil
}

// Strain is loadgen.Strain, in seconds and shares.
type Strain struct {
	GapS      float64 `json:"gap_s"`
	CatchUp   uint64  `json:"catch_up"`
	GCPauseS  float64 `json:"gc_pause_s"`
	GCPauses  uint64  `json:"gc_pauses"`
	Steal     float64 `json:"cpu_steal"`
	Busy      float64 `json:"cpu_busy"`
	FullS     float64 `json:"connections_full_s"`
	Stalls    uint64  `json:"history_stalls"`
	BacklogMx uint64  `json:"backlog_max"`
	InFlight  uint64  `json:"in_flight_max"`
	CPUS      float64 `json:"cpu_s"` // of the generator
}

// Point is an interval of the series.
type Point struct {
	AtMS      int64             `json:"at_ms"`
	Scheduled uint64            `json:"scheduled"`
	Completed uint64            `json:"completed"`
	Lost      uint64            `json:"lost"`
	P50       float64           `json:"p50_ms"`
	P99       float64           `json:"p99_ms"`
	Max       float64           `json:"max_ms"`
	Codes     map[string]uint64 `json:"codes,omitempty"`
}

// Verdicts, and the exit codes that go with them.
const (
	Pass         = "pass"
	Fail         = "fail"
	Inconclusive = "inconclusive"
)

// Summary is a run, or the merge of its shards.
type Summary struct {
	Schema      int                    `json:"schema"`
	Verdict     string                 `json:"verdict"`
	Reasons     []string               `json:"reasons"`
	Plan        Plan                   `json:"plan"`
	Shards      []Shard                `json:"shards"` // one, or those that were merged
	StartedAt   time.Time              `json:"started_at"`
	ElapsedS    float64                `json:"elapsed_s"`
	DrainS      float64                `json:"drain_s"` // from the last intended moment until the last request had ended
	RatePerS    float64                `json:"answers_per_s"`
	Account     Account                `json:"account"`
	Statuses    map[int]uint64         `json:"statuses"`
	Failures    map[string]uint64      `json:"failures"`
	LatencyMS   hdr.Summary            `json:"latency_ms"` // from the intended time
	ServiceMS   hdr.Summary            `json:"service_ms"` // from the write
	SendLagMS   hdr.Summary            `json:"send_lag_ms"`
	ByClassMS   map[string]hdr.Summary `json:"by_class_ms"`
	Connections map[string]uint64      `json:"connections"`
	Strain      Strain                 `json:"strain"`
	SLO         []slo.Result           `json:"slo"`
	StepMS      int64                  `json:"step_ms"`
	Series      []Point                `json:"series"`
	Interrupted bool                   `json:"interrupted"`

	// Histograms are saved beside the JSON form.
	Histograms hdr.Set `json:"-"`

	dir string // it was loaded from
}

// Shard is one generator's part.
type Shard struct {
	Index     int       `json:"index"` // from 1
	Host      string    `json:"host"`
	StartedAt time.Time `json:"started_at"`
	ElapsedS  float64   `json:"elapsed_s"`
	Scheduled uint64    `json:"scheduled"`
}

// Class is the name of a code that Extract gives.
func Class(code uint8) string { return fmt.Sprintf("%dxx", code) }

// Extract is the extractor whose code is the status' class.
func Extract(status int, _ []byte) (code uint8, tag [16]byte) { return uint8(status / 100), tag }

// Of sums up one generator's run, whose extractor was Extract, and judges it.
func Of(res *loadgen.Result, plan Plan, index int, host string) (*Summary, error) {
	s := &Summary{
		Schema: Schema, Plan: plan, StartedAt: res.Started.UTC(), ElapsedS: res.Elapsed.Seconds(),
		Account: Account{Scheduled: res.Scheduled, Sent: res.Sent, Completed: res.Completed, Failed: res.Failed, TimedOut: res.TimedOut,
			Dropped: res.Dropped, Unfinished: res.Unfinished},
		Statuses: res.Statuses, Failures: map[string]uint64{}, Connections: map[string]uint64{"opened": res.Connections.Opened},
		Interrupted: res.Interrupted != nil, Histograms: res.Histograms(), StepMS: res.PointWidth.Milliseconds(), Series: seriesOf(res.Series),
		Strain: Strain{GapS: res.Strain.Gap.Seconds(), CatchUp: res.Strain.CatchUp, GCPauseS: res.Strain.GCPause.Seconds(), GCPauses: res.Strain.GCPauses,
			Steal: res.Strain.Steal, Busy: res.Strain.Busy, FullS: res.ConnsFull.Seconds(), Stalls: res.HistoryStalls,
			BacklogMx: res.BacklogMax, InFlight: res.InFlightMax, CPUS: res.CPU.Seconds()},
	}
	delete(s.Histograms, loadgen.HistogramAccepted) // no class of its own here
	for cause, n := range res.Failures {
		s.Failures[cause.String()] = n
	}
	for cause := range wire.Cause(wire.CauseCount) {
		if n := res.Connections.Failed[cause]; n > 0 {
			s.Connections["dial_"+strings.TrimPrefix(cause.String(), "dial_")] = n
		}
		if n := res.Connections.Lost[cause]; n > 0 && cause != wire.CauseNone {
			s.Connections["lost_"+cause.String()] = n
		}
	}
	s.DrainS = max(0, (res.Elapsed - res.Span).Seconds())
	s.Shards = []Shard{{Index: index, Host: host, StartedAt: s.StartedAt, ElapsedS: s.ElapsedS, Scheduled: res.Scheduled}}
	return s, s.finish()
}

func seriesOf(points []loadgen.Point) []Point {
	out := make([]Point, len(points))
	for i, p := range points {
		out[i] = Point{AtMS: p.From.Milliseconds(), Scheduled: p.Scheduled, Completed: p.Completed, Lost: p.Lost,
			P50: ms(p.P50), P99: ms(p.P99), Max: ms(p.Max), Codes: map[string]uint64{}}
		for code, n := range p.Codes {
			out[i].Codes[Class(code)] += n
		}
	}
	return out
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// finish derives what follows from the counts and histograms, and judges.
func (s *Summary) finish() error {
	if s.ElapsedS > 0 {
		s.RatePerS = float64(s.Account.Completed) / s.ElapsedS
	}
	s.LatencyMS = hdr.Summarize(s.Histograms[loadgen.HistogramLatency])
	s.ServiceMS = hdr.Summarize(s.Histograms[loadgen.HistogramService])
	s.SendLagMS = hdr.Summarize(s.Histograms[loadgen.HistogramSendLag])
	s.ByClassMS = map[string]hdr.Summary{}
	for code := range uint8(10) {
		if h := s.Histograms[fmt.Sprint(loadgen.HistogramCode, code)]; h != nil {
			s.ByClassMS[Class(code)] = hdr.Summarize(h)
		}
	}
	return s.judge()
}
