package rundir

// QueriesSchema is the version of queries.jsonl, named in each of its rows.
const QueriesSchema = 1

// CensusMax bounds the census: of more accepted requests than this, as many
// are asked for.
const CensusMax = 50_000

// What an owner asks of the orders role.
const (
	AskRequest = "request" // what became of my request
	AskPay     = "pay"
	AskCancel  = "cancel"
)

// Query is one line of queries.jsonl: what an owner asked, and what he was
// told. The census asks once for every accepted request, after the stores were
// copied; the others ask while the load lasts. Times are microseconds of the
// asker's wall clock.
type Query struct {
	Schema    int    `json:"schema"`
	Census    bool   `json:"census,omitempty"`
	Ask       string `json:"ask"`
	User      int64  `json:"user"`
	RequestID string `json:"request_id"`         // by which the asker came to ask
	Order     string `json:"order,omitempty"`    // pay, cancel: what for
	SentUS    int64  `json:"sent_us"`            // before its first byte was written
	DoneUS    int64  `json:"done_us"`            // after its answer was read, or given up
	Failed    string `json:"failed,omitempty"`   // why there is no answer: what follows is empty
	Code      string `json:"code,omitempty"`     // from here on as answered
	Status    string `json:"status,omitempty"`   //
	Reason    string `json:"reason,omitempty"`   //
	OrderID   string `json:"order_id,omitempty"` //
	// ReservationID is the one the answer names.
	ReservationID string `json:"reservation_id,omitempty"`
}
