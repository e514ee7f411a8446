package rundir

import (
	"encoding/json"
	"time"
)

// Snapshot is stores/snapshot.json: when and in what state the stores were
// copied.
type Snapshot struct {
	Schema    int       `json:"schema"` // SnapshotSchema
	TakenAt   time.Time `json:"taken_at"`
	Quiescent bool      `json:"quiescent"` // nothing pending anywhere, three polls running
	WaitedMS  int64     `json:"waited_ms"` // from the last answer to quiescence or the limit
	Pending   int64     `json:"pending"`   // reservations without a confirmed message, at the snapshot
	Lag       int64     `json:"lag"`       // messages not consumed, all groups, retry topics included
	Outbox    int64     `json:"outbox"`    // events not published
	Overdue   int64     `json:"overdue"`   // orders past their time to be paid
	Versions  Versions  `json:"versions"`
	// Database counters over the run.
	Commits  int64 `json:"commits"`
	WALBytes int64 `json:"wal_bytes"`
}

// SnapshotSchema is the version of the stores/ folder.
const SnapshotSchema = 3

// Versions of the servers, as they report them.
type Versions struct {
	Redis    string `json:"redis"`
	Postgres string `json:"postgres"`
	RocketMQ string `json:"rocketmq"`
}

// RedisKey is one key of an activity. Exactly one of String, Hash, ZSet is
// set, by Type; the change log is in its own file.
type RedisKey struct {
	Key      string             `json:"key"`
	Type     string             `json:"type"`
	ExpireAt int64              `json:"expire_at"` // Unix seconds, -1: never
	String   string             `json:"string,omitempty"`
	Hash     map[string]string  `json:"hash,omitempty"`
	ZSet     map[string]float64 `json:"zset,omitempty"`
	Set      []string           `json:"set,omitempty"`
}

// LogEntry is one entry of a change log, in order. Times are microseconds of
// Redis TIME.
type LogEntry struct {
	ActivityID   int64    `json:"activity_id"`
	SKUID        int64    `json:"sku_id"`
	ID           string   `json:"id"`
	Op           string   `json:"op"` // "init", "reserve", "return"
	Reservations []string `json:"reservations"`
	Users        []int64  `json:"users"`
	Stock        int64    `json:"stock"` // after it
	AtUS         int64    `json:"at_us"`
	OpenAtUS     int64    `json:"open_at_us,omitempty"` // "return": when the unit becomes reservable
}

// What begins the topics of messages that a group sent back, or that the
// broker gave up for it. Such a topic that does not exist has no messages.
const (
	RetryPrefix      = "%RETRY%"
	DeadLetterPrefix = "%DLQ%"
)

// Message is one message as the broker stores it: of the create topic, or of
// a group's retry or dead-letter topic.
type Message struct {
	Topic      string          `json:"topic"` // without a prefix of the run's
	Queue      int             `json:"queue"`
	Offset     int64           `json:"offset"`
	StoredAtMS int64           `json:"stored_at_ms"` // Unix milliseconds
	Keys       string          `json:"keys"`
	Body       json.RawMessage `json:"body,omitempty"`       // a JSON body as it is
	BodyBytes  []byte          `json:"body_bytes,omitempty"` // base64 where the body is no JSON
}

// Offset is how far a group has consumed a queue.
type Offset struct {
	Group    string `json:"group"`
	Topic    string `json:"topic"`
	Queue    int    `json:"queue"`
	Min      int64  `json:"min"`
	Max      int64  `json:"max"`      // the next offset to be written
	Consumed int64  `json:"consumed"` // the next offset to be consumed
}

// Tables lists the PostgreSQL tables in a snapshot, each in
// stores/postgres/NAME.jsonl: the rows of the planned activities and those of
// no activity, every column of the table plus committed_at:
// the commit time of the row's last change, microseconds (contracts.md
// section 5). Insert-only tables thereby tell when a thing happened.
func Tables() []string {
	return []string{"activity", "sku_inventory", "inventory_token", "orders", "order_items",
		"inventory_reservation", "inventory_ledger", "consumer_inbox", "event_outbox", "dead_letter"}
}

// The rows verify reads. Columns it does not need are in the files too.
type (
	// SKURow is a row of sku_inventory.
	SKURow struct {
		ActivityID int64  `json:"activity_id"`
		SKUID      int64  `json:"sku_id"`
		TotalStock int64  `json:"total_stock"`
		PriceCents int64  `json:"price_cents"`
		Allocator  string `json:"allocator"`
	}
	// TokenRow is a row of inventory_token.
	TokenRow struct {
		TokenID       int64   `json:"token_id"`
		ActivityID    int64   `json:"activity_id"`
		SKUID         int64   `json:"sku_id"`
		Seq           int64   `json:"seq"`
		Status        string  `json:"status"`
		ReservationID *string `json:"reservation_id"`
		OrderID       *string `json:"order_id"`
	}
	// OrderRow is a row of orders.
	OrderRow struct {
		OrderID          string    `json:"order_id"`
		ActivityID       int64     `json:"activity_id"`
		SKUID            int64     `json:"sku_id"`
		UserID           int64     `json:"user_id"`
		RequestID        string    `json:"request_id"`
		ReservationID    string    `json:"reservation_id"`
		InventoryTokenID int64     `json:"inventory_token_id"`
		AmountCents      int64     `json:"amount_cents"`
		Status           string    `json:"status"`
		CommittedAt      time.Time `json:"committed_at"`
	}
	// OrderItemRow is a row of order_items.
	OrderItemRow struct {
		OrderID  string `json:"order_id"`
		LineNo   int    `json:"line_no"`
		SKUID    int64  `json:"sku_id"`
		Quantity int64  `json:"quantity"`
	}
	// ReservationRow is a row of inventory_reservation.
	ReservationRow struct {
		ReservationID string    `json:"reservation_id"`
		MessageID     string    `json:"message_id"`
		ActivityID    int64     `json:"activity_id"`
		SKUID         int64     `json:"sku_id"`
		UserID        int64     `json:"user_id"`
		RequestID     string    `json:"request_id"`
		Status        string    `json:"status"`
		OrderID       *string   `json:"order_id"`
		ReturnStock   bool      `json:"return_stock"`
		ReservedAt    time.Time `json:"reserved_at"`
		CommittedAt   time.Time `json:"committed_at"`
	}
	// LedgerRow is a row of inventory_ledger, which is insert-only: the
	// CommittedAt of its SALE is the creation time of the order.
	LedgerRow struct {
		LedgerID      int64     `json:"ledger_id"`
		ActivityID    int64     `json:"activity_id"`
		SKUID         int64     `json:"sku_id"`
		ReservationID string    `json:"reservation_id"`
		OrderID       *string   `json:"order_id"`
		TokenID       *int64    `json:"token_id"`
		EntryType     string    `json:"entry_type"` // ISSUE, SALE, REJECT, PAY, CANCEL, EXPIRE
		Delta         int64     `json:"delta"`
		RedisReturn   int64     `json:"redis_return"`
		CommittedAt   time.Time `json:"committed_at"`
	}
	// InboxRow is a row of consumer_inbox.
	InboxRow struct {
		ConsumerGroup string    `json:"consumer_group"`
		MessageID     string    `json:"message_id"`
		ReservationID string    `json:"reservation_id"`
		ReceivedAt    time.Time `json:"received_at,omitzero"` // when its transaction began
		CommittedAt   time.Time `json:"committed_at"`
	}
	// OutboxRow is a row of event_outbox.
	OutboxRow struct {
		EventID     int64           `json:"event_id"`
		EventType   string          `json:"event_type"`
		AggregateID string          `json:"aggregate_id"`
		Payload     json.RawMessage `json:"payload"`
		PublishedAt *time.Time      `json:"published_at"`
	}
	// DeadLetterRow is a row of dead_letter.
	DeadLetterRow struct {
		Topic         string `json:"topic"` // as the broker names it
		Queue         int    `json:"queue_id"`
		Offset        int64  `json:"queue_offset"`
		MessageID     string `json:"message_id"`
		ReservationID string `json:"reservation_id"`
		Class         string `json:"class"`
		Reason        string `json:"reason"`
		Body          string `json:"body"` // \x and hex
	}
)

// TimelineEvent is one line of timeline.jsonl: what was done to whom, when,
// and what it hit.
type TimelineEvent struct {
	AtMS   int64            `json:"at_ms"` // since the start of the load; negative before it
	Actor  string           `json:"actor"` // "bench", a fault's name, "faultpoint"
	Target string           `json:"target"`
	Event  string           `json:"event"` // e.g. "load started", "armed", "killed", "restarted", "healed"
	Hits   map[string]int64 `json:"hits,omitempty"`
	Detail string           `json:"detail,omitempty"`
}
