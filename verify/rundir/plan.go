package rundir

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// SLO modes of a plan.
const (
	SLOEnforce = "enforce" // a missed SLO fails the run
	SLOReport  = "report"  // it is shown only
)

// PlanSchema is the version of plan.json this build writes and reads.
const PlanSchema = 1

// Plan is plan.json: all that was decided before the first request, and all
// that a verdict may lean on beside the evidence.
type Plan struct {
	Schema    int       `json:"schema"`
	Name      string    `json:"name"` // "bench" or the scenario's name
	Seed      uint64    `json:"seed"`
	Scheme    string    `json:"scheme"`
	Command   string    `json:"command"` // the command line, to run it again
	CreatedAt time.Time `json:"created_at"`

	Activities []Activity `json:"activities"`
	Workload   Workload   `json:"workload"`
	Load       LoadPlan   `json:"load"`
	SLOs       []SLO      `json:"slos"`
	SLOMode    string     `json:"slo_mode"` // "enforce": a missed SLO fails the run; "report": it is shown only
	Limits     Limits     `json:"limits"`

	Invariants    []string  `json:"invariants"`     // required ids: not checked means inconclusive
	LossContracts []string  `json:"loss_contracts"` // declared losses this run may use (invariants.md)
	MustHits      []MustHit `json:"must_hits"`      // what the faults must have hit, else inconclusive
	// Outages are those by which the sale must have closed (invariant I11).
	Outages []Outage `json:"outages,omitempty"`
	// Schedule is the faults as drawn from the seed, in words.
	Schedule []string `json:"schedule,omitempty"`
}

// Declared loss contracts (invariants.md).
const (
	LossRedisFailover      = "redis-failover"       // a replica that lagged was promoted
	LossRedisRestoredOlder = "redis-restored-older" // Redis came back as of an earlier time
	LossRedisEverysec      = "redis-everysec"       // a SIGKILL may lose the writes of LossEverysecMS before it
	LossBrokerDisk         = "broker-lost-disk"     // every message stored until then is gone
)

// LossEverysecMS is what appendfsync everysec may lose: a second between two
// syncs, and another while one is late.
const LossEverysecMS = 2000

// LossContracts lists them.
func LossContracts() []string {
	return []string{LossRedisFailover, LossRedisRestoredOlder, LossRedisEverysec, LossBrokerDisk}
}

// Dependencies of an Outage.
const (
	OnRedis    = "redis" // without it nobody can be told anything, SOLD_OUT neither
	OnBroker   = "broker"
	OnPostgres = "postgres"
)

// Outage says from when on a fault must have closed the sale: LimitMS after
// it bit, until it is healed.
type Outage struct {
	Fault      string `json:"fault"` // actor of the timeline
	Dependency string `json:"dependency"`
	LimitMS    int64  `json:"limit_ms"`
	// ProbesPerS is how many reservations may be made a second all the same,
	// to find out whether it works again; all processes together.
	ProbesPerS int64 `json:"probes_per_s"`
}

func (o Outage) validate() error {
	switch {
	case o.Fault == "":
		return fmt.Errorf("plan.json: an outage names no fault")
	case o.Dependency != OnRedis && o.Dependency != OnBroker && o.Dependency != OnPostgres:
		return fmt.Errorf("plan.json: outage of %q by %s: must be of %s, %s or %s", o.Dependency, o.Fault, OnRedis, OnBroker, OnPostgres)
	case o.LimitMS <= 0 || o.ProbesPerS < 0:
		return fmt.Errorf("plan.json: outage by %s: limit %d ms must be positive, and %d probes a second not negative", o.Fault, o.LimitMS, o.ProbesPerS)
	}
	return nil
}

// Activity is one sale of one SKU.
type Activity struct {
	ActivityID int64     `json:"activity_id"`
	SKUID      int64     `json:"sku_id"`
	Stock      int64     `json:"stock"`  // units at the start, in Redis
	Tokens     int64     `json:"tokens"` // units at the start, in PostgreSQL; equals Stock unless a scenario says otherwise
	Version    int64     `json:"version"`
	Resell     bool      `json:"resell"`
	StartsAt   time.Time `json:"starts_at"`
	EndsAt     time.Time `json:"ends_at"`
}

// LoadPlan is what the generator was told. Durations are milliseconds.
type LoadPlan struct {
	RatePerS    int64 `json:"rate_per_s"`
	DurationMS  int64 `json:"duration_ms"`
	Scheduled   int64 `json:"scheduled"` // requests: rate x duration, exactly
	Connections int   `json:"connections"`
	Depth       int   `json:"depth"` // requests in flight a connection, at most
	TimeoutMS   int64 `json:"timeout_ms"`
}

// SLO is a figure that must be below (op "<") or at least (op ">=") Target.
// Metric names a figure of run.json by its path, e.g. "latency_ms.all.p99".
type SLO struct {
	Name   string  `json:"name"`
	Metric string  `json:"metric"`
	Op     string  `json:"op"`
	Target float64 `json:"target"`
}

// Limits beyond which a run proves nothing, or an invariant of time breaks.
// All are milliseconds.
type Limits struct {
	SendLagP99MS float64 `json:"send_lag_p99_ms"`        // above it the generator fell behind: inconclusive
	ConvergeMS   int64   `json:"converge_ms"`            // from the last answer to quiescence
	AmbiguityMS  int64   `json:"ambiguity_ms,omitempty"` // from an unknown outcome, or the last fault's end, to its end in the stores; 0: as converge_ms
	GateLagMS    int64   `json:"gate_lag_ms"`            // how long a gate may refuse on old knowledge
}

// MustHit says what a fault must have hit for the run to prove anything.
type MustHit struct {
	Fault   string `json:"fault"`
	Hit     string `json:"hit"` // e.g. "killed", "resent_by_scanner_only"
	AtLeast int64  `json:"at_least"`
}

// Validate checks what a reader of the plan relies on.
func (p *Plan) Validate() error {
	switch {
	case p.Schema != PlanSchema:
		return fmt.Errorf("plan.json: schema %d, this build reads %d", p.Schema, PlanSchema)
	case len(p.Activities) == 0:
		return fmt.Errorf("plan.json: no activity")
	case p.Load.Scheduled <= 0:
		return fmt.Errorf("plan.json: load.scheduled is %d, must be positive", p.Load.Scheduled)
	case p.SLOMode != SLOEnforce && p.SLOMode != SLOReport:
		return fmt.Errorf("plan.json: slo_mode %q, must be enforce or report", p.SLOMode)
	}
	for _, a := range p.Activities {
		if a.ActivityID <= 0 || a.SKUID <= 0 || a.Stock <= 0 || a.Tokens <= 0 {
			return fmt.Errorf("plan.json: activity %d SKU %d: ids, stock and tokens must be positive", a.ActivityID, a.SKUID)
		}
	}
	for _, c := range p.LossContracts {
		if !slices.Contains(LossContracts(), c) {
			return fmt.Errorf("plan.json: loss contract %q is not known: must be one of %s", c, strings.Join(LossContracts(), ", "))
		}
	}
	for _, o := range p.Outages {
		if err := o.validate(); err != nil {
			return err
		}
	}
	for _, s := range p.SLOs {
		if s.Op != "<" && s.Op != ">=" {
			return fmt.Errorf("plan.json: slo %q: op %q, must be < or >=", s.Name, s.Op)
		}
	}
	return nil
}
