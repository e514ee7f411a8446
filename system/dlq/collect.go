package dlq

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hotsku/hotsku/system/seckill"
)

//go:embed sql/collect.sql
var collect string

// Delivery is one message of a dead-letter topic.
type Delivery struct {
	Topic  string // as the broker names it, ending in the group that gave up
	Queue  int
	Offset int64
	Body   []byte
}

// CollectorConfig bounds a collector. Zero values take the defaults.
type CollectorConfig struct {
	Pool       *pgxpool.Pool
	Call       time.Duration // one statement; default 5 s
	BackoffMin time.Duration // between tries while PostgreSQL is down; default 50 ms
	BackoffMax time.Duration // default 2 s
	Log        *slog.Logger  // default: discard
}

// Collector moves the messages of dead-letter topics into the table.
type Collector struct {
	cfg CollectorConfig

	Collected atomic.Int64
}

// NewCollector checks the configuration and returns a collector.
func NewCollector(c CollectorConfig) (*Collector, error) {
	if c.Call == 0 {
		c.Call = 5 * time.Second
	}
	if c.BackoffMin == 0 {
		c.BackoffMin = 50 * time.Millisecond
	}
	if c.BackoffMax == 0 {
		c.BackoffMax = 2 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.Pool == nil:
		return nil, errors.New("dead-letter collector: no pool")
	case c.Call < 0 || c.BackoffMin < 0 || c.BackoffMax < c.BackoffMin:
		return nil, errors.New("dead-letter collector: a time is negative, or the longest back-off below the shortest")
	}
	return &Collector{cfg: c}, nil
}

// Handle stores a batch, each message once however often it is delivered;
// nil acknowledges it. An outage of PostgreSQL is waited out; it returns an
// error only when ctx ends.
func (c *Collector) Handle(ctx context.Context, batch []Delivery) error {
	letters := make([]Letter, len(batch))
	for i, d := range batch {
		letters[i] = classify(d)
		c.cfg.Log.Error("the broker gave a message up", "topic", d.Topic, "queue", d.Queue, "offset", d.Offset,
			"class", letters[i].Class, "reservation_id", letters[i].ReservationID, "message_id", letters[i].MessageID)
	}
	for backoff := c.cfg.BackoffMin; ; backoff = min(2*backoff, c.cfg.BackoffMax) {
		stored, err := c.store(ctx, letters)
		if err == nil {
			c.Collected.Add(stored)
			return nil
		}
		c.cfg.Log.Warn("dead letters cannot be stored; waiting", "error", err, "messages", len(batch), "backoff", backoff)
		timer := time.NewTimer(backoff)
		select {
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(ctx.Err(), err)
		case <-timer.C:
		}
	}
}

func (c *Collector) store(ctx context.Context, letters []Letter) (int64, error) {
	n := len(letters)
	topics, messages, reservations, kinds := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	classes, reasons, notes := make([]string, n), make([]string, n), make([]string, n)
	queues, offsets, bodies, settled := make([]int, n), make([]int64, n), make([][]byte, n), make([]bool, n)
	for i := range letters {
		l := &letters[i]
		topics[i], messages[i], reservations[i], kinds[i] = l.Topic, l.MessageID, l.ReservationID, string(l.Kind)
		classes[i], reasons[i], notes[i] = string(l.Class), l.Reason, l.Note
		queues[i], offsets[i], bodies[i], settled[i] = l.Queue, l.Offset, l.Body, l.SettledAt != nil
		if bodies[i] == nil {
			bodies[i] = []byte{}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Call)
	defer cancel()
	tag, err := c.cfg.Pool.Exec(ctx, collect, topics, queues, offsets, messages, reservations, kinds, classes, reasons, bodies, settled, notes)
	if err != nil {
		return 0, fmt.Errorf("store dead letters: %w", err)
	}
	return tag.RowsAffected(), nil
}

// classify reads a message as far as it can be read.
func classify(d Delivery) Letter {
	l := Letter{Topic: d.Topic, Queue: d.Queue, Offset: d.Offset, Body: d.Body}
	var err error
	switch {
	case strings.HasSuffix(d.Topic, seckill.GroupProjector):
		var e seckill.Event
		l.Kind = KindEvent
		e, err = seckill.DecodeEvent(d.Body)
		l.ReservationID, l.MessageID = e.ReservationID, e.OperationID
	case strings.HasSuffix(d.Topic, seckill.GroupExpiry):
		l.Kind, l.SettledAt, l.Note = KindExpiryCheck, new(time.Time), "the sweeper expires its orders"
		_, err = seckill.DecodeExpiryCheck(d.Body)
	default:
		var m seckill.OrderCreateMessage
		l.Kind = KindOrderCreate
		m, err = seckill.DecodeOrderCreate(d.Body)
		l.ReservationID, l.MessageID = m.ReservationID, m.MessageID
	}
	switch {
	case err == nil:
		l.Class, l.Reason = ClassHandedBack, "no delivery was decided; the broker gave it up"
	case errors.Is(err, seckill.ErrNewerSchema):
		l.Class, l.Reason = ClassNewerSchema, err.Error()
	default:
		l.Class, l.Reason = ClassPoison, err.Error()
	}
	l.Reason = storable(l.Reason, 500)
	l.MessageID = storable(l.MessageID, 64)
	if !seckill.ValidReservationID(l.ReservationID) {
		l.ReservationID = ""
	}
	return l
}

// storable makes any string acceptable to a text column.
func storable(s string, limitBytes int) string {
	if len(s) > limitBytes {
		s = s[:limitBytes]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}
