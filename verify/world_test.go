package verify

import (
	"container/heap"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// world is a whole run in memory: a sale simulated by its rules, and the
// evidence it would leave. Tests write it to a folder, healthy or doctored.
type world struct {
	rng   *rand.Rand
	start time.Time

	plan         rundir.Plan
	snapshot     rundir.Snapshot
	records      []history.Record
	unrecorded   uint64
	keys         []rundir.RedisKey
	log          []rundir.LogEntry
	messages     []rundir.Message
	offsets      []rundir.Offset
	timeline     []rundir.TimelineEvent
	tokens       []rundir.TokenRow
	orders       []rundir.OrderRow
	items        []rundir.OrderItemRow
	skus         []rundir.SKURow
	reservations []rundir.ReservationRow
	ledger       []rundir.LedgerRow
	inbox        []rundir.InboxRow
	outbox       []rundir.OutboxRow

	// the simulation
	queue   eventQueue
	stock   int64
	openAt  int64 // ns since start
	free    []int // indexes of tokens
	held    []*simReservation
	byUser  map[int64]*simReservation
	byReq   map[uint32]*simReservation
	rejects bool
}

type simReservation struct {
	id         string
	user       int64
	ordinal    uint32
	at         int64
	status     seckill.ReservationStatus
	order      string
	compensate int64
	returned   bool
}

type event struct {
	at  int64
	do  func(at int64)
	seq int
}

type eventQueue []event

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(e any)   { *q = append(*q, e.(event)) }
func (q *eventQueue) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

// options of a simulated sale.
type options struct {
	seed      uint64
	stock     int64
	tokens    int64 // 0: as stock
	requests  int64
	repeat    uint32 // permille
	conflict  uint32
	sameUser  uint32
	rejects   bool  // some reservations end rejected, their units return
	failures  bool  // some requests get no answer
	step      int64 // ns between requests; long enough, returned units sell again
	contracts []string
}

const (
	activityID = 7
	skuID      = 11
)

func allInvariants() []string {
	var ids []string
	for _, c := range checks() {
		ids = append(ids, c.id)
	}
	return ids
}

// simulate runs a sale whose every promise is kept.
func simulate(o options) *world {
	if o.tokens == 0 {
		o.tokens = o.stock
	}
	if o.step == 0 {
		o.step = 50_000
	}
	w := &world{
		rng: rand.New(rand.NewPCG(o.seed, 1)), start: time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC),
		stock: o.stock, byUser: map[int64]*simReservation{}, byReq: map[uint32]*simReservation{}, rejects: o.rejects,
	}
	w.plan = rundir.Plan{
		Schema: rundir.PlanSchema, Name: "bench", Seed: o.seed, Scheme: "redis-mq-token", Command: "hotsku bench", CreatedAt: w.start,
		Activities: []rundir.Activity{{ActivityID: activityID, SKUID: skuID, Stock: o.stock, Tokens: o.tokens, Version: 1,
			StartsAt: w.start.Add(-time.Minute), EndsAt: w.start.Add(time.Hour)}},
		Workload: rundir.Workload{Seed: o.seed, FirstUser: 1000, RepeatPermille: o.repeat, ConflictPermille: o.conflict, SameUserPermille: o.sameUser},
		Load:     rundir.LoadPlan{RatePerS: int64(time.Second) / o.step, DurationMS: o.requests * o.step / 1e6, Scheduled: o.requests, Connections: 2, Depth: 8, TimeoutMS: 1000},
		SLOs:     []rundir.SLO{{Name: "answers", Metric: "latency_ms.all.p99", Op: "<", Target: 2000}, {Name: "in time", Metric: "orders.within_3s_ratio", Op: ">=", Target: 0.999}},
		SLOMode:  "enforce", Limits: rundir.Limits{SendLagP99MS: 5, ConvergeMS: 30000, GateLagMS: 200},
		Invariants: allInvariants(), LossContracts: o.contracts,
	}
	w.skus = []rundir.SKURow{{ActivityID: activityID, SKUID: skuID, TotalStock: o.tokens, PriceCents: 999, Allocator: "token"}}
	w.logEntry("init", nil, -int64(time.Second), 0)
	w.ledger = append(w.ledger, rundir.LedgerRow{LedgerID: 1, ActivityID: activityID, SKUID: skuID, EntryType: "ISSUE", Delta: o.tokens, CommittedAt: w.start.Add(-time.Minute)})
	for seq := range o.tokens {
		w.free = append(w.free, int(seq))
		w.tokens = append(w.tokens, rundir.TokenRow{TokenID: int64(w.rng.Uint64N(1<<40)<<20) + seq + 1, ActivityID: activityID, SKUID: skuID, Seq: seq + 1, Status: "AVAILABLE"})
	}
	for n := range uint64(o.requests) {
		w.request(n, o.step, o.failures)
	}
	for w.queue.Len() > 0 {
		e := heap.Pop(&w.queue).(event)
		e.do(e.at)
	}
	slices.SortFunc(w.records, func(a, b history.Record) int { return int(a.Done - b.Done) })
	w.finish()
	return w
}

func (w *world) schedule(at int64, do func(at int64)) {
	heap.Push(&w.queue, event{at, do, w.queue.Len()})
}

func (w *world) wall(at int64) time.Time { return w.start.Add(time.Duration(at)) }
func (w *world) us(at int64) int64       { return w.wall(at).UnixMicro() }
func (w *world) chance(permille int) bool {
	return w.rng.IntN(1000) < permille
}
func (w *world) between(lo, hi int64) int64 { return lo + w.rng.Int64N(hi-lo) }

func (w *world) logEntry(op string, r *simReservation, at, openAt int64) {
	e := rundir.LogEntry{ActivityID: activityID, SKUID: skuID, ID: fmt.Sprintf("%d-%d", w.us(at)/1000, len(w.log)), Op: op,
		Reservations: []string{}, Users: []int64{}, Stock: w.stock, AtUS: w.us(at)}
	if openAt != 0 {
		e.OpenAtUS = w.us(openAt)
	}
	if r != nil {
		if last := &w.log[len(w.log)-1]; op == "reserve" && last.Op == op && w.chance(500) { // one batch
			last.Reservations, last.Users = append(last.Reservations, r.id), append(last.Users, r.user)
			last.Stock, last.AtUS = w.stock, e.AtUS
			return
		}
		e.Reservations, e.Users = []string{r.id}, []int64{r.user}
	}
	w.log = append(w.log, e)
}

// request schedules the judging of request n, and its record.
func (w *world) request(n uint64, step int64, failures bool) {
	pick := w.plan.Workload.Pick(n)
	rec := history.Record{N: n, Subject: uint64(pick.User), Ordinal: pick.Ordinal, Intended: int64(n) * step, Outcome: history.Completed}
	rec.Sent = rec.Intended + w.between(0, 100_000)
	judged := rec.Sent + w.between(1000, 2_000_000)
	rec.Done = judged + w.between(1000, 2_000_000)
	fate := w.rng.IntN(1000)
	w.schedule(judged, func(at int64) {
		code, id := seckill.CodeRateLimited, ""
		if fate < 970 {
			code, id = w.judge(pick, at)
		}
		if tag, ok := seckill.ReservationTag([]byte(id)); ok {
			rec.Tag = tag
		}
		rec.Code, rec.Status = uint8(code), uint16(code.HTTPStatus())
		if failures {
			w.fail(&rec, fate)
		}
		w.records = append(w.records, rec)
	})
}

// fail takes the answer from some: judged or not, the user does not know.
func (w *world) fail(rec *history.Record, fate int) {
	without := func(o history.Outcome, after int64) {
		rec.Outcome, rec.Code, rec.Status, rec.Tag = o, 0, 0, [16]byte{}
		rec.Done += after
	}
	switch {
	case fate < 20:
		without(history.TimedOut, int64(time.Second))
	case fate < 30:
		without(history.Failed, 0)
		rec.Code = 4
	case fate < 35:
		without(history.Unfinished, 0)
	case fate < 45:
		rec.Code, rec.Status, rec.Tag = uint8(seckill.CodeUnavailable), 503, [16]byte{}
	}
}

// judge is the edge and the reserve script.
func (w *world) judge(pick rundir.Pick, at int64) (seckill.Code, string) {
	sellable := w.stock > 0 && at >= w.openAt
	_, member := w.byUser[pick.User]
	if !sellable && !member && w.chance(700) {
		return seckill.CodeSoldOut, "" // by the gate, before the conflict check
	}
	if r := w.byReq[pick.Ordinal]; r != nil {
		if r.user != pick.User {
			return seckill.CodeIdempotencyConflict, ""
		}
		if r.status == seckill.StatusPendingMessage {
			return seckill.CodeQueuedPending, r.id
		}
		return seckill.CodeQueued, r.id
	}
	if member {
		return seckill.CodeDuplicateUser, w.byUser[pick.User].id
	}
	if !sellable {
		return seckill.CodeSoldOut, ""
	}
	return w.reserve(pick, at)
}

func (w *world) reserve(pick rundir.Pick, at int64) (seckill.Code, string) {
	var tag [16]byte
	for i := range tag {
		tag[i] = byte(w.rng.UintN(256))
	}
	r := &simReservation{id: seckill.ReservationIDOfTag(tag), user: pick.User, ordinal: pick.Ordinal, at: at, status: seckill.StatusPendingMessage}
	w.stock--
	w.held = append(w.held, r)
	w.byUser[r.user], w.byReq[r.ordinal] = r, r
	w.logEntry("reserve", r, at, 0)
	code := seckill.CodeQueued
	if w.chance(100) { // the send's outcome is unknown: the scanner sends again
		code = seckill.CodeQueuedPending
		if w.chance(500) {
			w.send(r, 0)
		}
		w.send(r, 1)
	} else {
		w.send(r, 0)
		r.status = seckill.StatusMessageSent
	}
	w.schedule(at+w.between(1_000_000, 20_000_000), func(at int64) { w.decide(r, at) })
	return code, r.id
}

func (w *world) send(r *simReservation, retry int) {
	cmd := seckill.SubmitCommand{ActivityID: activityID, SKUID: skuID, UserID: r.user, RequestID: w.plan.Workload.RequestID(r.ordinal), Quantity: 1}
	m := seckill.OrderCreateMessage{
		SchemaVersion: 1, EventType: seckill.EventTypeOrderCreateRequested, MessageID: seckill.MessageIDOf(r.id), MessageKey: r.id,
		RequestID: cmd.RequestID, ReservationID: r.id, ActivityID: activityID, SKUID: skuID, UserID: r.user,
		ReservedAt: w.wall(r.at), ReservationExpiresAt: w.wall(r.at).Add(time.Minute), RetryCount: retry,
		PayloadHash: seckill.PayloadHashPrefix + cmd.PayloadHash(), ActivityVersion: 1, CreatedAt: w.wall(r.at),
	}
	body, err := m.Encode()
	if err != nil {
		panic(err)
	}
	w.messages = append(w.messages, rundir.Message{Topic: seckill.TopicOrderCreate, Queue: 0, Offset: int64(len(w.messages)), StoredAtMS: w.us(r.at) / 1000, Keys: r.id, Body: body})
}

// decide is the consumer's transaction.
func (w *world) decide(r *simReservation, at int64) {
	committed := w.wall(at)
	request := w.plan.Workload.RequestID(r.ordinal)
	row := rundir.ReservationRow{ReservationID: r.id, MessageID: seckill.MessageIDOf(r.id), ActivityID: activityID, SKUID: skuID,
		UserID: r.user, RequestID: request, ReservedAt: w.wall(r.at).Truncate(time.Microsecond), CommittedAt: committed}
	entry := rundir.LedgerRow{LedgerID: int64(len(w.ledger) + 1), ActivityID: activityID, SKUID: skuID, ReservationID: r.id, CommittedAt: committed}
	ev := seckill.Event{SchemaVersion: 1, EventType: seckill.EventCompensate, ReservationID: r.id, ActivityID: activityID, SKUID: skuID, UserID: r.user}
	switch {
	case w.rejects && w.chance(150):
		r.status = []seckill.ReservationStatus{seckill.StatusRejectedLate, seckill.StatusRejectedVersion, seckill.StatusRejectedPoison}[w.rng.IntN(3)]
	case len(w.free) == 0:
		r.status = seckill.StatusRejectedNoFinalStock
	default:
		r.status = seckill.StatusOrderCreated
	}
	if r.status == seckill.StatusOrderCreated {
		t := &w.tokens[w.free[0]]
		w.free = w.free[1:]
		r.order = "ord_" + r.id[5:]
		t.Status, t.ReservationID, t.OrderID = "CLAIMED", &r.id, &r.order
		w.orders = append(w.orders, rundir.OrderRow{OrderID: r.order, ActivityID: activityID, SKUID: skuID, UserID: r.user, RequestID: request,
			ReservationID: r.id, InventoryTokenID: t.TokenID, AmountCents: 999, Status: "CREATED", CommittedAt: committed})
		w.items = append(w.items, rundir.OrderItemRow{OrderID: r.order, LineNo: 1, SKUID: skuID, Quantity: 1})
		entry.EntryType, entry.Delta, entry.OrderID, entry.TokenID = "SALE", -1, &r.order, &t.TokenID
		row.OrderID = &r.order
		ev.EventType, ev.OrderID = seckill.EventOrderCreated, r.order
	} else {
		row.ReturnStock = r.status.ReturnsStock(false)
		entry.EntryType = "REJECT"
		if row.ReturnStock {
			entry.RedisReturn = 1
		}
		ev.OperationID, ev.ReturnStock = seckill.OperationIDOf(r.id), row.ReturnStock
		w.schedule(at+w.between(500_000, 10_000_000), func(at int64) { w.compensate(r, row.ReturnStock, at) })
	}
	row.Status, ev.Status = string(r.status), r.status
	payload, err := json.Marshal(ev)
	if err != nil {
		panic(err)
	}
	w.reservations = append(w.reservations, row)
	w.ledger = append(w.ledger, entry)
	w.inbox = append(w.inbox, rundir.InboxRow{ConsumerGroup: seckill.GroupOrder, MessageID: row.MessageID, ReservationID: r.id, CommittedAt: committed})
	w.outbox = append(w.outbox, rundir.OutboxRow{EventID: int64(len(w.outbox) + 1), EventType: ev.EventType, AggregateID: r.id, Payload: payload, PublishedAt: &committed})
}

// compensate is the projector.
func (w *world) compensate(r *simReservation, giveBack bool, at int64) {
	r.compensate, r.returned = at, giveBack
	if !giveBack {
		return
	}
	w.stock++
	openAt := int64(0)
	if w.stock == 1 {
		openAt = at + 220_000_000
		w.openAt = openAt
	}
	w.logEntry("return", r, at, openAt)
}

// finish leaves the stores as a snapshot would find them.
func (w *world) finish() {
	k := seckill.KeysOf(activityID, skuID)
	w.keys = append(w.keys,
		rundir.RedisKey{Key: k.Stock(), Type: "string", ExpireAt: -1, String: fmt.Sprint(w.stock)},
		rundir.RedisKey{Key: k.Meta(), Type: "hash", ExpireAt: -1, Hash: map[string]string{"status": "RUNNING"}})
	for _, r := range w.held {
		cmd := seckill.SubmitCommand{ActivityID: activityID, SKUID: skuID, UserID: r.user, Quantity: 1}
		request := w.plan.Workload.RequestID(r.ordinal)
		h := map[string]string{"reservation_id": r.id, "message_id": seckill.MessageIDOf(r.id), "request_id": request, "user_id": fmt.Sprint(r.user),
			"status": string(r.status), "payload_hash": cmd.PayloadHash(), "reserved_at": fmt.Sprint(w.us(r.at))}
		if r.order != "" {
			h["order_id"] = r.order
		}
		if r.compensate != 0 {
			h["compensated_at"], h["compensation_id"], h["returned"] = fmt.Sprint(w.us(r.compensate)), seckill.OperationIDOf(r.id), "0"
			if r.returned {
				h["returned"] = "1"
			}
		}
		w.keys = append(w.keys,
			rundir.RedisKey{Key: k.Reservation(r.id), Type: "hash", ExpireAt: -1, Hash: h},
			rundir.RedisKey{Key: k.User(r.user), Type: "string", ExpireAt: -1, String: r.id},
			rundir.RedisKey{Key: k.Request(request), Type: "hash", ExpireAt: -1,
				Hash: map[string]string{"payload_hash": cmd.PayloadHash(), "code": "QUEUED", "reservation_id": r.id}})
	}
	n := int64(len(w.messages))
	w.offsets = []rundir.Offset{{Group: seckill.GroupOrder, Topic: seckill.TopicOrderCreate, Queue: 0, Min: 0, Max: n, Consumed: n}}
	w.timeline = []rundir.TimelineEvent{{AtMS: 0, Actor: "bench", Target: "load", Event: "load started"}}
	w.snapshot = rundir.Snapshot{Schema: rundir.SnapshotSchema, TakenAt: w.wall(int64(time.Minute)), Quiescent: true, WaitedMS: 700,
		Versions: rundir.Versions{Redis: "7.0.15", Postgres: "15.18", RocketMQ: "5.5.0"}, WALBytes: 1 << 20}
}
