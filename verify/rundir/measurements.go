package rundir

// Measurements is metrics/load.json: what the generator saw over time, for
// charts. All latencies are milliseconds from the intended time.
type Measurements struct {
	Schema int           `json:"schema"`
	StepMS int64         `json:"step_ms"`
	Series []SeriesPoint `json:"series"`
	Curve  []CurvePoint  `json:"curve"`  // all answers
	Curves []NamedCurve  `json:"curves"` // accepted, service, send lag
}

// MeasurementsSchema is the version of Measurements.
const MeasurementsSchema = 1

// SeriesPoint covers the requests intended in one step.
type SeriesPoint struct {
	AtMS      int64            `json:"at_ms"` // start of the step since the start of the load
	Scheduled int64            `json:"scheduled"`
	Completed int64            `json:"completed"`
	P50MS     float64          `json:"p50_ms"`
	P99MS     float64          `json:"p99_ms"`
	MaxMS     float64          `json:"max_ms"`
	Codes     map[string]int64 `json:"codes"`
}

// CurvePoint is one point of a percentile curve.
type CurvePoint struct {
	Quantile float64 `json:"quantile"` // 0 to 1
	MS       float64 `json:"ms"`
}

// NamedCurve is a percentile curve of a part of the answers.
type NamedCurve struct {
	Name  string       `json:"name"`
	Curve []CurvePoint `json:"curve"`
}

// Extras is metrics/extras.json: figures of run.json that were measured while
// the run went on and that no evidence can give again. They are shown, and
// decide nothing: no SLO may name one.
type Extras struct {
	Schema      int                `json:"schema"`
	Environment Environment        `json:"environment"`
	Redis       RedisResult        `json:"redis"`       // Reserved is counted by verify
	MQ          MQResult           `json:"mq"`          // Stored is counted by verify
	Postgres    PostgresResult     `json:"postgres"`    // WALBytes is the snapshot's
	CPUSeconds  map[string]float64 `json:"cpu_seconds"` // from the start of the load to quiescence
	Usage       []UsageAt          `json:"usage"`
	Funnel      []FunnelStage      `json:"funnel"` // ByCounters; empty: not measured
}

// ExtrasSchema is the version of Extras.
const ExtrasSchema = 3

// UsageAt is the CPU time that processes had used at a moment, milliseconds
// since the start of the load. Samples are in order.
type UsageAt struct {
	AtMS       int64              `json:"at_ms"`
	CPUSeconds map[string]float64 `json:"cpu_seconds"`
}
