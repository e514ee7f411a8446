package seckill

// FaultPoint names a place inside a process where a chaos build may kill or
// delay it (architecture.md, contracts.md section 6).
type FaultPoint string

// The fault points.
const (
	FaultAccessBeforeReserve  FaultPoint = "access.before-reserve"
	FaultAccessAfterReserve   FaultPoint = "access.after-reserve"
	FaultAccessAfterSend      FaultPoint = "access.after-send"
	FaultConsumerBeforeTx     FaultPoint = "consumer.before-tx"
	FaultConsumerInTx         FaultPoint = "consumer.in-tx"
	FaultConsumerAfterCommit  FaultPoint = "consumer.after-commit"
	FaultOutboxBeforePublish  FaultPoint = "outbox.before-publish"
	FaultOutboxAfterPublish   FaultPoint = "outbox.after-publish"
	FaultScannerBeforeResend  FaultPoint = "scanner.before-resend"
	FaultProjectorBeforeWrite FaultPoint = "projector.before-write"
)

// FaultPoints lists all of them, for --help and for checking a name.
func FaultPoints() []FaultPoint {
	return []FaultPoint{
		FaultAccessBeforeReserve, FaultAccessAfterReserve, FaultAccessAfterSend,
		FaultConsumerBeforeTx, FaultConsumerInTx, FaultConsumerAfterCommit,
		FaultOutboxBeforePublish, FaultOutboxAfterPublish,
		FaultScannerBeforeResend, FaultProjectorBeforeWrite,
	}
}

// FaultHit is one line of the file a chaos build appends to, before it acts.
type FaultHit struct {
	Point  FaultPoint `json:"point"`
	Count  int64      `json:"count"` // how often the point was reached in this process
	Action string     `json:"action"`
	PID    int        `json:"pid"`
	At     string     `json:"at"` // RFC 3339 with nanoseconds
}
