package verify

import (
	"container/heap"
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
	queries      []rundir.Query
	letters      []rundir.DeadLetterRow
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
	ends    bool
	resell  bool
	paid    map[string]bool // by reservation
	// closed is when the sale is closed by an outage, ns since the start
	closed struct{ from, to int64 }
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
	ends      bool  // some orders are paid, cancelled, or expire
	resell    bool  // their units are sold again
	failures  bool  // some requests get no answer
	step      int64 // ns between requests; long enough, returned units sell again
	contracts []string
	outage    string // the dependency that is down in the middle of the sale, "" for none
}

const (
	activityID = 7
	skuID      = 11
)

func allInvariants() []string {
	var ids []string
	for _, c := range checks() {
		if c.id != failClosed.id { // an outage's
			ids = append(ids, c.id)
		}
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
		stock: o.stock, byUser: map[int64]*simReservation{}, byReq: map[uint32]*simReservation{}, paid: map[string]bool{}, rejects: o.rejects, ends: o.ends, resell: o.resell,
	}
	w.plan = rundir.Plan{
		Schema: rundir.PlanSchema, Name: "bench", Seed: o.seed, Scheme: "redis-mq-token", Command: "hotsku bench", CreatedAt: w.start,
		Activities: []rundir.Activity{{ActivityID: activityID, SKUID: skuID, Stock: o.stock, Tokens: o.tokens, Version: 1, Resell: o.resell,
			StartsAt: w.start.Add(-time.Minute), EndsAt: w.start.Add(time.Hour)}},
		Workload: rundir.Workload{Seed: o.seed, FirstUser: 1000, RepeatPermille: o.repeat, ConflictPermille: o.conflict, SameUserPermille: o.sameUser},
		Load:     rundir.LoadPlan{RatePerS: int64(time.Second) / o.step, DurationMS: o.requests * o.step / 1e6, Scheduled: o.requests, Connections: 2, Depth: 8, TimeoutMS: 1000},
		SLOs:     []rundir.SLO{{Name: "answers", Metric: "latency_ms.all.p99", Op: "<", Target: 2000}, {Name: "in time", Metric: "orders.within_3s_ratio", Op: ">=", Target: 0.999}},
		SLOMode:  "enforce", Limits: rundir.Limits{SendLagP99MS: 5, ConvergeMS: 30000, GateLagMS: 200},
		Invariants: allInvariants(), LossContracts: o.contracts,
	}
	w.skus = []rundir.SKURow{{ActivityID: activityID, SKUID: skuID, TotalStock: o.stock, PriceCents: 999, Allocator: "token"}}
	w.logEntry("init", nil, -int64(time.Second), 0)
	w.ledger = append(w.ledger, rundir.LedgerRow{LedgerID: 1, ActivityID: activityID, SKUID: skuID, EntryType: "ISSUE", Delta: o.tokens, CommittedAt: w.start.Add(-time.Minute)})
	for seq := range o.tokens {
		w.free = append(w.free, int(seq))
		w.tokens = append(w.tokens, rundir.TokenRow{TokenID: int64(w.rng.Uint64N(1<<40)<<20) + seq + 1, ActivityID: activityID, SKUID: skuID, Seq: seq + 1, Status: "AVAILABLE"})
	}
	if o.outage != "" {
		w.goDown(o.outage, o.requests*o.step)
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

func (w *world) snapshotAt() time.Time { return w.wall(int64(time.Minute)) }

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
	w.census()
	n := int64(len(w.messages))
	w.offsets = []rundir.Offset{{Group: seckill.GroupOrder, Topic: seckill.TopicOrderCreate, Queue: 0, Min: 0, Max: n, Consumed: n}}
	w.timeline = append(w.timeline, rundir.TimelineEvent{AtMS: 0, Actor: "bench", Target: "load", Event: "load started"},
		rundir.TimelineEvent{AtMS: 61000, Actor: "bench", Target: "access-1", Event: EventLogRead, Hits: map[string]int64{"lines": 40, HitPanics: 0}})
	w.snapshot = rundir.Snapshot{Schema: rundir.SnapshotSchema, TakenAt: w.snapshotAt(), Quiescent: true, WaitedMS: 700,
		Versions: rundir.Versions{Redis: "7.0.15", Postgres: "15.18", RocketMQ: "5.5.0"}, WALBytes: 1 << 20}
}
