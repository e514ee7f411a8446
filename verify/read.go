package verify

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// reservationHash is a reservation as Redis holds it.
type reservationHash struct {
	messageID      string
	requestID      string
	user           int64
	status         string
	orderID        string
	reservedAtUS   int64
	compensatedAt  int64 // microseconds, 0 while it was not compensated
	compensationID string
	returned       bool
}

// requestRecord is what Redis keeps of a request id.
type requestRecord struct{ payloadHash, reservationID string }

// readStores joins every store's rows of the planned activities.
func (e *evidence) readStores() {
	snapshot, err := e.dir.ReadSnapshot()
	if err != nil {
		e.fault(fromSnapshot, err)
	}
	e.snapshot = snapshot
	seen := map[string]struct{}{}
	rows(e, fromKeys, func(k *rundir.RedisKey) {
		if _, twice := seen[k.Key]; twice && e.faults[fromKeys] == nil {
			e.fault(fromKeys, &rundir.EvidenceError{File: string(fromKeys), Offset: -1, Reason: "holds key " + k.Key + " twice"})
		}
		seen[k.Key] = struct{}{}
		e.redisKey(k)
	})
	rows(e, fromLog, e.logEntry)
	rows(e, fromSKUs, func(row *rundir.SKURow) {
		if s := e.bySKU[skuKey{row.ActivityID, row.SKUID}]; s != nil {
			s.skus = append(s.skus, *row)
		}
	})
	rows(e, fromTokens, func(t *rundir.TokenRow) {
		if s := e.bySKU[skuKey{t.ActivityID, t.SKUID}]; s != nil {
			s.tokens = append(s.tokens, t)
			s.tokenByID[t.TokenID] = t
		}
	})
	rows(e, fromOrders, func(o *rundir.OrderRow) {
		if s := e.bySKU[skuKey{o.ActivityID, o.SKUID}]; s != nil {
			s.orders = append(s.orders, o)
			s.ordersByUnit[o.InventoryTokenID] = append(s.ordersByUnit[o.InventoryTokenID], o)
			r := s.reservation(o.ReservationID)
			r.orders = append(r.orders, o)
		}
	})
	rows(e, fromReservations, func(row *rundir.ReservationRow) {
		if s := e.bySKU[skuKey{row.ActivityID, row.SKUID}]; s != nil {
			r := s.reservation(row.ReservationID)
			r.row, r.rows = row, r.rows+1
		}
	})
	rows(e, fromLedger, e.ledgerRow)
	rows(e, fromOutbox, e.outboxRow)
	rows(e, fromMessages, e.message)
	rows(e, fromInbox, func(row *rundir.InboxRow) {
		if row.ConsumerGroup != seckill.GroupOrder {
			return
		}
		for _, s := range e.sales {
			if r := s.byID[row.ReservationID]; r != nil {
				r.inbox = append(r.inbox, row.MessageID)
				if at := row.ReceivedAt; r.begun.IsZero() || at.Before(r.begun) {
					r.begun = at
				}
			}
		}
	})
	rows(e, fromItems, func(row *rundir.OrderItemRow) {
		for _, s := range e.sales {
			if row.SKUID == s.plan.SKUID {
				s.units[row.OrderID] += row.Quantity
			}
		}
	})
	e.letters = collect[rundir.DeadLetterRow](e, fromDeadLetters)
	// Nothing is judged by these yet; that they are whole is.
	rows(e, fromActivities, func(*struct{}) {})
	e.offsets = collect[rundir.Offset](e, fromOffsets)
}

func (e *evidence) redisKey(k *rundir.RedisKey) {
	for _, s := range e.sales {
		keys := seckill.KeysOf(s.plan.ActivityID, s.plan.SKUID)
		name, ok := strings.CutPrefix(k.Key, keys.Prefix())
		if !ok {
			continue
		}
		switch {
		case k.Key == keys.Stock():
			if stock, err := strconv.ParseInt(k.String, 10, 64); err == nil {
				s.stock = &stock
			}
		case k.Key == keys.Pending():
			s.pending = len(k.ZSet)
		case strings.HasPrefix(name, "user:"):
			if user, err := strconv.ParseInt(name[len("user:"):], 10, 64); err == nil {
				s.marks[user] = k.String
			}
		case strings.HasPrefix(name, "req:"):
			s.requests[name[len("req:"):]] = requestRecord{k.Hash["payload_hash"], k.Hash["reservation_id"]}
		case strings.HasPrefix(name, "resv:"):
			s.reservation(name[len("resv:"):]).hash = parseHash(k.Hash)
		}
		return
	}
}

func parseHash(h map[string]string) *reservationHash {
	number := func(field string) int64 {
		n, _ := strconv.ParseInt(h[field], 10, 64) // an unreadable number is 0, which no check takes for good
		return n
	}
	return &reservationHash{
		messageID: h["message_id"], requestID: h["request_id"], user: number("user_id"), status: h["status"],
		orderID: h["order_id"], reservedAtUS: number("reserved_at"), compensatedAt: number("compensated_at"),
		compensationID: h["compensation_id"], returned: h["returned"] == "1",
	}
}

// Operations of the change log.
const (
	logInit    = "init"
	logReserve = "reserve"
	logReturn  = "return"
)

func (e *evidence) logEntry(entry *rundir.LogEntry) {
	s := e.bySKU[skuKey{entry.ActivityID, entry.SKUID}]
	if s == nil {
		return
	}
	s.log = append(s.log, *entry)
	for _, id := range entry.Reservations {
		switch r := s.reservation(id); entry.Op {
		case logReserve:
			r.reserves = append(r.reserves, entry)
		case logReturn:
			r.returns = append(r.returns, entry)
		}
	}
}

// Entry types of the ledger.
const (
	entryIssue  = "ISSUE"
	entrySale   = "SALE"
	entryReject = "REJECT"
	entryPay    = "PAY"
	entryCancel = "CANCEL"
	entryExpire = "EXPIRE"
)

func (e *evidence) ledgerRow(l *rundir.LedgerRow) {
	s := e.bySKU[skuKey{l.ActivityID, l.SKUID}]
	if s == nil {
		return
	}
	s.ledger = append(s.ledger, l)
	switch l.EntryType {
	case entrySale:
		r := s.reservation(l.ReservationID)
		r.sales = append(r.sales, l)
	case entryReject:
		r := s.reservation(l.ReservationID)
		r.rejects = append(r.rejects, l)
	case entryPay, entryCancel, entryExpire:
		r := s.reservation(l.ReservationID)
		r.closings = append(r.closings, l)
	}
}

func (e *evidence) outboxRow(row *rundir.OutboxRow) {
	ev, err := seckill.DecodeEvent(row.Payload)
	s := e.bySKU[skuKey{ev.ActivityID, ev.SKUID}]
	if s == nil {
		return
	}
	if row.PublishedAt == nil {
		e.outbox++
	}
	if err != nil || ev.EventType != row.EventType || ev.ReservationID != row.AggregateID {
		// Judged as the event it claims to be, of the reservation it claims.
		ev.EventType, ev.ReservationID = row.EventType, row.AggregateID
	}
	r := s.reservation(ev.ReservationID)
	r.events = append(r.events, ev)
}

func (e *evidence) message(m *rundir.Message) {
	at := position{m.Queue, m.Offset}
	d := delivery{topic: m.Topic, at: at}
	if d.topic == seckill.TopicOrderCreate {
		e.stored = append(e.stored, at)
	}
	if d.group() != seckill.GroupOrder { // given up, or no create message
		e.deliveries = append(e.deliveries, d)
		return
	}
	body := []byte(m.Body)
	if len(body) == 0 {
		body = m.BodyBytes
	}
	create, err := seckill.DecodeOrderCreate(body)
	s := e.bySKU[skuKey{create.ActivityID, create.SKUID}]
	d.foreign = s == nil && err == nil
	if s != nil && (err == nil || s.byID[create.ReservationID] != nil) {
		d.reservation = s.reservation(create.ReservationID)
	}
	if d.reservation == nil && !d.foreign {
		d.body = fmt.Sprintf("\\x%x", body)
	}
	e.deliveries = append(e.deliveries, d)
	if d.reservation == nil || d.topic != seckill.TopicOrderCreate {
		return
	}
	e.messages++
	d.reservation.messages = append(d.reservation.messages, storedMessage{
		id: create.MessageID, resend: create.RetryCount > 0, expires: create.ReservationExpiresAt, at: at, storedAtMS: m.StoredAtMS})
}

// messageIDs lists the different message ids of the stored messages.
func (r *reservation) messageIDs() []string {
	var ids []string
	for _, m := range r.messages {
		if !slices.Contains(ids, m.id) {
			ids = append(ids, m.id)
		}
	}
	return ids
}
