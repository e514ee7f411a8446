package rundir

import "time"

// RunSchema is the version of run.json.
const RunSchema = 3

// Verdicts. There is no zero verdict: a run never passes because nothing
// judged it.
const (
	VerdictPass         = "pass"
	VerdictFail         = "fail"
	VerdictInconclusive = "inconclusive"
)

// Statuses of an invariant.
const (
	StatusHeld       = "held"
	StatusViolated   = "violated"
	StatusNotChecked = "not_checked"
)

// Run is run.json: the verdict, and every figure a report shows. Latencies
// are milliseconds from the intended time unless they say service.
type Run struct {
	Schema    int       `json:"schema"`
	Verdict   string    `json:"verdict"`
	Reasons   []string  `json:"reasons"` // why it is not pass, most serious first
	ExitCode  int       `json:"exit_code"`
	Name      string    `json:"name"`
	Seed      uint64    `json:"seed"`
	Scheme    string    `json:"scheme"`
	StartedAt time.Time `json:"started_at"`
	Command   string    `json:"command"`

	Environment Environment        `json:"environment"`
	Load        LoadResult         `json:"load"`
	LatencyMS   Latencies          `json:"latency_ms"`
	Codes       map[string]int64   `json:"codes"`
	Orders      OrdersResult       `json:"orders"`
	Redis       RedisResult        `json:"redis"`
	MQ          MQResult           `json:"mq"`
	Postgres    PostgresResult     `json:"postgres"`
	CPUSeconds  map[string]float64 `json:"cpu_seconds,omitempty"` // by process, from the start of the load to quiescence
	Phases      []Phase            `json:"phases"`
	Stages      []Stage            `json:"stages"`
	Funnel      []FunnelStage      `json:"funnel"`
	Faults      []FaultResult      `json:"faults"`
	Invariants  []Invariant        `json:"invariants"`
	SLO         []SLOResult        `json:"slo"`
}

// Environment says where the figures were measured.
type Environment struct {
	CPU       string `json:"cpu"`
	Cores     int    `json:"cores"`
	MemoryGiB int    `json:"memory_gib"`
	Kernel    string `json:"kernel"`
	Go        string `json:"go"`
	Redis     string `json:"redis"`
	RocketMQ  string `json:"rocketmq"`
	Postgres  string `json:"postgres"`
	Colocated bool   `json:"colocated"` // generator and servers share the machine
	// Niceness is what processes gave way to others by, "postgres 5, outbox
	// 10"; empty: all were equal.
	Niceness string `json:"niceness,omitempty"`
}

// LoadResult is the generator's account:
// scheduled = completed + failed + timed_out + dropped + unfinished, and
// sent = scheduled - dropped.
type LoadResult struct {
	IntendedQPS  int64       `json:"intended_qps"`
	DurationS    float64     `json:"duration_s"`    // as planned
	AnsweredInS  float64     `json:"answered_in_s"` // from the start to the last answer, duration_s at least
	Scheduled    int64       `json:"scheduled"`
	Sent         int64       `json:"sent"`
	Completed    int64       `json:"completed"`
	Failed       int64       `json:"failed"`
	TimedOut     int64       `json:"timed_out"`
	Dropped      int64       `json:"dropped"`
	Unfinished   int64       `json:"unfinished"`
	DecidedRatio float64     `json:"decided_ratio"` // answers that judged the request, of scheduled
	SendLagMS    Percentiles `json:"send_lag_ms"`
}

// Percentiles of a latency in milliseconds; Count is the number of samples.
type Percentiles struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
}

// Latencies of the answers, in milliseconds.
type Latencies struct {
	All      Percentiles            `json:"all"`
	Accepted Percentiles            `json:"accepted"` // QUEUED, QUEUED_PENDING_MESSAGE, ORDER_CREATED
	Service  Percentiles            `json:"service"`  // from the write, beside the others
	ByCode   map[string]Percentiles `json:"by_code"`
}

// OrdersResult is what became of the accepted.
type OrdersResult struct {
	Accepted          int64       `json:"accepted"` // distinct reservations among accepted answers
	Created           int64       `json:"created"`  // order rows
	Valid             int64       `json:"valid"`    // CREATED or PAID
	Rejected          int64       `json:"rejected"`
	Oversold          int64       `json:"oversold"`           // valid orders without a unit of their own, as I1 counts them
	ConservationDelta int64       `json:"conservation_delta"` // units not in exactly one place
	Within3sRatio     float64     `json:"within_3s_ratio"`    // of valid orders, commit time - reserved_at
	LatencyMS         Percentiles `json:"latency_ms"`
	PerSPeak          int64       `json:"per_s_peak"`
	PerSecond         []OrdersAt  `json:"per_second"`
	HandOutMS         float64     `json:"hand_out_ms"` // first to last reservation
}

// OrdersAt counts orders committed in one second since the first reservation.
type OrdersAt struct {
	Second int   `json:"second"`
	Orders int64 `json:"orders"`
}

// RedisResult, MQResult and PostgresResult are the stores' own figures. A nil
// one was not measured, which is not 0: a process that is killed takes its
// counts with it.
type RedisResult struct {
	LuaP99MS *float64 `json:"lua_p99_ms"` // reserve script, as access saw it
	Reserved int64    `json:"reserved"`
	Calls    *int64   `json:"calls"`
}

// MQResult counts the create messages.
type MQResult struct {
	Sends          *int64   `json:"sends"`   // batches sent by access
	Unknown        *int64   `json:"unknown"` // of them, with no confirmation
	Stored         int64    `json:"stored"`  // create messages found at the broker
	OldestAgeMSMax *float64 `json:"oldest_age_ms_max"`
	Redelivered    *int64   `json:"redelivered"`
}

// PostgresResult is over the time of the run.
type PostgresResult struct {
	TxPerS      *float64 `json:"tx_per_s"`
	WALBytes    int64    `json:"wal_bytes"`
	LockWaitMS  *float64 `json:"lock_wait_ms"`
	ClaimsEmpty *int64   `json:"claims_empty"`
}

// Who counted a stage of the funnel. The three do not count the same things (a
// request whose answer was lost may have reserved), so that no stage of one
// may stand before a stage of another.
const (
	ByHistory  = "history"  // the generator: requests and answers
	ByCounters = "counters" // the access processes: requests they parsed
	ByStores   = "stores"   // the stores: reservations
)

// FunnelStage counts what entered a stage and, of that, what passed it (10.1).
// What passes a stage enters the next of the same source.
type FunnelStage struct {
	Source string `json:"source"`
	Stage  string `json:"stage"`
	In     int64  `json:"in"`
	Out    int64  `json:"out"`
}

// Phase is a part of a run: what was asked for and answered in it, by when it
// was due, and what each store wrote, by the store's own time. Times are
// milliseconds since the start of the load. Cores are CPU seconds a second, by
// process; absent if they were not measured.
type Phase struct {
	Name         string             `json:"name"`
	FromMS       float64            `json:"from_ms"`
	UntilMS      float64            `json:"until_ms"`
	DuePerS      float64            `json:"due_per_s"`
	AnsweredPerS float64            `json:"answered_per_s"`
	LatencyMS    Percentiles        `json:"latency_ms"`
	ReservedPerS float64            `json:"reserved_per_s"` // Redis
	StoredPerS   float64            `json:"stored_per_s"`   // create messages, at the broker
	OrderedPerS  float64            `json:"ordered_per_s"`  // PostgreSQL
	Cores        map[string]float64 `json:"cores,omitempty"`
}

// Stage is a part of the way of accepted requests, and the time it took.
type Stage struct {
	Name string      `json:"name"`
	MS   Percentiles `json:"ms"`
}

// FaultResult says what a fault did.
type FaultResult struct {
	Name    string           `json:"name"`
	Target  string           `json:"target"`
	AtMS    int64            `json:"at_ms"` // since the start of the load
	UntilMS int64            `json:"until_ms"`
	Hits    map[string]int64 `json:"hits"`
	Bit     bool             `json:"bit"`
}

// Invariant is one judged promise. Witness shows the first violations, ids
// and rows and the delta; for not_checked it names the file.
type Invariant struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	Status     string   `json:"status"`
	Checked    int64    `json:"checked"`
	Violations int64    `json:"violations"`
	Witness    []string `json:"witness,omitempty"`
}

// SLOResult is one judged figure. One that was not measured is neither met nor
// missed, and its Measured says nothing.
type SLOResult struct {
	Name     string  `json:"name"`
	Metric   string  `json:"metric"`
	Op       string  `json:"op"`
	Target   float64 `json:"target"`
	Measured float64 `json:"measured"`
	OK       bool    `json:"ok"`

	NotMeasured bool `json:"not_measured,omitempty"`
}
